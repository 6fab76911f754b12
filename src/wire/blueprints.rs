//! `/v1/blueprints`.

use serde::Deserialize;

use super::many;

/// A blueprint, as far as the adapter looks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Blueprint {
    /// Opaque.
    pub id: String,
    /// Not unique: every build of a name has its own id.
    pub name: Option<String>,
    /// `build_complete`, `failed` and others.
    pub status: Option<String>,
    /// `created` or `deleted`.
    pub state: Option<String>,
}

/// A page of blueprints.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct BlueprintPage {
    /// The items.
    #[serde(deserialize_with = "many::read")]
    pub blueprints: Vec<Blueprint>,
    /// Whether another page follows.
    pub has_more: Option<bool>,
}
