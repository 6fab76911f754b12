//! Credentials and settings, checked once, before any request.
//!
//! It owns every rule of `credentials` and `config` in `connect`: names,
//! types, bounds and what excludes what. It must not know how a setting is
//! sent. An unknown key at any level is refused with the nearest known one,
//! because a misspelt `newtork` would otherwise open the network. Start
//! reading at [`Config::parse`].

mod base_url;
mod credentials;
pub mod features;
mod fields;
mod settings;
mod sizes;
mod timeouts;

pub use credentials::{Credentials, TunnelForm};
pub use settings::{Access, Config, Image, Lifecycle, Network, parse_lifetime, parse_network};
pub use sizes::Size;
pub use timeouts::Timeouts;
