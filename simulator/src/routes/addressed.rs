//! The Devbox and the execution that a request's path names.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use crate::error::ApiError;
use crate::layers::Caller;
use crate::state::World;
use crate::state::devboxes::Devbox;
use crate::state::executions::Execution;

/// The box that `{id}` names; another account's is a 404 like one that is not
/// there.
#[derive(Debug)]
pub(super) struct OfDevbox(pub(super) Arc<Devbox>);

/// The same and the execution on it that `{execution_id}` names.
#[derive(Debug)]
pub(super) struct OfExecution {
    pub(super) devbox: Arc<Devbox>,
    pub(super) execution: Arc<Execution>,
}

impl FromRequestParts<Arc<World>> for OfDevbox {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, world: &Arc<World>) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, world).await?;
        let id = named(parts, "id").await?;
        world.devboxes.get(&caller.account_id, &id).map(Self)
    }
}

impl FromRequestParts<Arc<World>> for OfExecution {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, world: &Arc<World>) -> Result<Self, ApiError> {
        let OfDevbox(devbox) = OfDevbox::from_request_parts(parts, world).await?;
        let execution = devbox
            .executions
            .get(&named(parts, "execution_id").await?)?;
        Ok(Self { devbox, execution })
    }
}

async fn named(parts: &mut Parts, name: &str) -> Result<String, ApiError> {
    let Path(mut names) = Path::<HashMap<String, String>>::from_request_parts(parts, &())
        .await
        .map_err(|error| ApiError::bad_request(error.body_text()))?;
    names
        .remove(name)
        .ok_or_else(|| ApiError::internal("the route's path does not name it"))
}
