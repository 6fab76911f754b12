//! `config`: what every Devbox of a connection gets.

use serde_json::Value;

use super::credentials::Credentials;
use super::features::unsupported;
use super::fields::{Fields, wrong_type};
use super::sizes::{self, Size};
use super::timeouts::Timeouts;
use crate::error::{Error, Result};

/// Shortest and longest lifetime in seconds. Runloop's own maximum is 48 h (certain).
const LIFETIME_SECONDS: (u32, u32) = (60, 172_800);

/// Shortest and longest idle time in seconds. Runloop publishes no bounds for
/// it; the longest is that of a lifetime.
const IDLE_SECONDS: (u32, u32) = (1, 172_800);

const DEFAULT_LIFETIME_SECONDS: u32 = 900;

/// The image that stands for "no blueprint".
const DEFAULT_IMAGE: &str = "runloop-default";

/// What a Devbox may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nothing: the policy `beachside-blocked`. The default.
    Blocked,
    /// Everything: no policy.
    Internet,
}

/// What a Devbox starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// Runloop's own image. The default.
    Default,
    /// A blueprint, by id where one has that id, else by name.
    Blueprint(String),
}

/// When a Devbox ends or sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Shut down after so many seconds, whatever it does. The default, with 900.
    Lifetime {
        /// 60 to 172800.
        seconds: u32,
    },
    /// Suspended after so many idle seconds.
    Idle {
        /// 1 to 172800.
        seconds: u32,
    },
}

/// Who may open a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Who sends the header. The default.
    Protected,
    /// Everybody who knows the URL.
    Public,
}

/// Credentials and settings, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Key and addresses.
    pub credentials: Credentials,
    /// What a Devbox may reach.
    pub network: Network,
    /// What it starts from.
    pub image: Image,
    /// Its size; `None` is Runloop's default.
    pub size: Option<Size>,
    /// When it ends or sleeps.
    pub lifecycle: Lifecycle,
    /// Who may open its previews.
    pub preview: Access,
    /// How long to wait.
    pub timeouts: Timeouts,
}

impl Config {
    /// Checks `credentials` and `config` as `connect` was given them; `null` is empty.
    ///
    /// Reads the environment variable `RUNLOOP_BASE_URL` where no `baseUrl` is given.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` names the field; `UNSUPPORTED` names what Runloop cannot do.
    pub fn parse(credentials: &Value, config: &Value) -> Result<Self> {
        Self::parse_in(credentials, config, |name| std::env::var(name).ok())
    }

    /// Like [`Self::parse`], for a caller with environment variables of its own:
    /// those of a JavaScript environment are not always the process's.
    ///
    /// # Errors
    /// Those of [`Self::parse`].
    pub fn parse_in(
        credentials: &Value,
        config: &Value,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        Self::parse_with(credentials, config, environment).map_err(|error| error.during("connect"))
    }

    fn parse_with(
        credentials: &Value,
        config: &Value,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let present = |value| Some(value).filter(|value: &&Value| !value.is_null());
        let known = [
            "network",
            "image",
            "resources",
            "lifecycle",
            "preview",
            "snapshots",
            "timeouts",
        ];
        // First: a mistyped apiKey of runloop({ … }) stands here, and is better news than a missing one.
        let fields = Fields::of("config", present(config), &known)?;
        let credentials = Credentials::parse(present(credentials), environment)?;
        let resources = Fields::of(
            "config.resources",
            fields.any("resources"),
            &["vcpus", "memoryMiB"],
        )?;
        parse_snapshots(fields.any("snapshots"))?;
        Ok(Self {
            credentials,
            network: fields
                .any("network")
                .map_or(Ok(Network::Blocked), parse_network)?,
            image: fields
                .any("image")
                .map_or(Ok(Image::Default), parse_image)?,
            size: sizes::smallest(
                resources.positive("vcpus")?,
                resources.positive("memoryMiB")?,
            )?,
            lifecycle: parse_lifecycle(fields.any("lifecycle"))?,
            preview: parse_preview(fields.any("preview"))?,
            timeouts: Timeouts::parse(fields.any("timeouts"))?,
        })
    }
}

/// Reads a `network` setting, of the connection or of one call.
///
/// # Errors
/// `UNSUPPORTED` for an allowlist, `INVALID_ARGUMENT` for anything unknown.
pub fn parse_network(value: &Value) -> Result<Network> {
    match value {
        Value::String(text) if text == "blocked" => Ok(Network::Blocked),
        Value::String(text) if text == "internet" => Ok(Network::Internet),
        Value::Object(object) if object.contains_key("allow") => Err(unsupported("network.allow")),
        other => Err(wrong_type("network", "\"blocked\" or \"internet\"", other)),
    }
}

/// Reads the `lifetimeSeconds` of one call.
///
/// # Errors
/// `INVALID_ARGUMENT` outside 60 to 172800, or for another key.
pub fn parse_lifetime(value: &Value) -> Result<Option<u32>> {
    let fields = Fields::of("lifecycle", Some(value), &["lifetimeSeconds"])?;
    fields.whole("lifetimeSeconds", LIFETIME_SECONDS.0, LIFETIME_SECONDS.1)
}

fn parse_image(value: &Value) -> Result<Image> {
    let name = match value {
        Value::String(name) => name,
        Value::Object(object) => match (object.get("kind"), object.get("name")) {
            (Some(Value::String(kind)), Some(Value::String(name))) if kind == "prepared" => name,
            (Some(Value::String(kind)), _) if kind == "oci" => {
                return Err(unsupported("images.oci"));
            }
            (Some(Value::String(kind)), _) if kind == "build" => {
                return Err(unsupported("images.build"));
            }
            _ => return Err(wrong_image(value)),
        },
        _ => return Err(wrong_image(value)),
    };
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(wrong_image(value));
    }
    Ok(if name == DEFAULT_IMAGE {
        Image::Default
    } else {
        Image::Blueprint(name.clone())
    })
}

fn wrong_image(found: &Value) -> Error {
    let expected = "\"runloop-default\", or the id or name of a blueprint";
    wrong_type("config.image", expected, found)
}

fn parse_lifecycle(value: Option<&Value>) -> Result<Lifecycle> {
    let known = ["lifetimeSeconds", "idleSeconds", "suspension"];
    let fields = Fields::of("config.lifecycle", value, &known)?;
    let suspension = Fields::of(
        "config.lifecycle.suspension",
        fields.any("suspension"),
        &["preserve"],
    )?;
    parse_preserve(&suspension, "lifecycle.suspension.preserve")?;
    let lifetime = fields.whole("lifetimeSeconds", LIFETIME_SECONDS.0, LIFETIME_SECONDS.1)?;
    let idle = fields.whole("idleSeconds", IDLE_SECONDS.0, IDLE_SECONDS.1)?;
    match (lifetime, idle) {
        (Some(_), Some(_)) => Err(Error::invalid_argument(
            "config.lifecycle must have lifetimeSeconds or idleSeconds, not both: \
             Runloop ignores the lifetime of a Devbox that sleeps when idle",
        )),
        (_, Some(seconds)) => Ok(Lifecycle::Idle { seconds }),
        (seconds, None) => Ok(Lifecycle::Lifetime {
            seconds: seconds.unwrap_or(DEFAULT_LIFETIME_SECONDS),
        }),
    }
}

fn parse_preview(value: Option<&Value>) -> Result<Access> {
    let fields = Fields::of("config.preview", value, &["access"])?;
    match fields.any("access") {
        None => Ok(Access::Protected),
        Some(Value::String(text)) if text == "protected" => Ok(Access::Protected),
        Some(Value::String(text)) if text == "public" => Ok(Access::Public),
        Some(other) => Err(fields.wrong("access", "\"protected\" or \"public\"", other)),
    }
}

fn parse_snapshots(value: Option<&Value>) -> Result<()> {
    let fields = Fields::of("config.snapshots", value, &["preserve", "retentionSeconds"])?;
    if fields.any("retentionSeconds").is_some() {
        return Err(Error::unsupported(
            "snapshots.retentionSeconds",
            "Runloop keeps a snapshot until it is deleted",
        ));
    }
    parse_preserve(&fields, "snapshots.preserve")
}

fn parse_preserve(fields: &Fields<'_>, feature: &'static str) -> Result<()> {
    match fields.any("preserve") {
        None => Ok(()),
        Some(Value::String(text)) if text == "filesystem" => Ok(()),
        Some(Value::String(text)) if text == "filesystem+memory" => Err(Error::unsupported(
            feature,
            "Runloop keeps the disk only, not memory",
        )),
        Some(other) => Err(fields.wrong("preserve", "\"filesystem\"", other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Code;

    fn parse(config: Value) -> Result<Config> {
        Config::parse_with(&json!({ "apiKey": "ak_1" }), &config, |_| None)
    }

    fn refusal(config: Value) -> (Code, String) {
        let error = parse(config).unwrap_err();
        (error.code(), error.feature().unwrap_or_default().to_owned())
    }

    #[test]
    fn r5_r7_r8_r9_r11_without_settings_the_defaults_hold() {
        for config in [
            Value::Null,
            json!({}),
            json!({ "resources": {}, "lifecycle": {} }),
        ] {
            let config = parse(config).unwrap();
            assert_eq!(config.network, Network::Blocked);
            assert_eq!(config.image, Image::Default);
            assert_eq!(config.size, None);
            assert_eq!(config.lifecycle, Lifecycle::Lifetime { seconds: 900 });
            assert_eq!(config.preview, Access::Protected);
            assert_eq!(config.timeouts, Timeouts::default());
        }
    }

    #[test]
    fn r6_the_network_is_blocked_or_internet_and_an_allowlist_is_unsupported() {
        assert_eq!(
            parse(json!({ "network": "internet" })).unwrap().network,
            Network::Internet
        );
        let unsupported = (Code::Unsupported, "network.allow".to_owned());
        for allow in [json!([]), json!(["x.com"])] {
            assert_eq!(
                refusal(json!({ "network": { "allow": allow } })),
                unsupported
            );
        }
        for wrong in [
            json!("Internet"),
            json!(""),
            json!(null),
            json!(true),
            json!({}),
        ] {
            assert_eq!(
                refusal(json!({ "network": wrong })).0,
                Code::InvalidArgument,
                "{wrong}"
            );
        }
    }

    #[test]
    fn r7_an_image_is_the_default_or_a_blueprint() {
        let image = |image: Value| parse(json!({ "image": image })).unwrap().image;
        assert_eq!(image(json!("runloop-default")), Image::Default);
        assert_eq!(
            image(json!("my/blue print")),
            Image::Blueprint("my/blue print".into())
        );
        let prepared = json!({ "kind": "prepared", "name": "bp_1" });
        assert_eq!(image(prepared), Image::Blueprint("bp_1".into()));
        for (image, feature) in [
            (
                json!({ "kind": "oci", "reference": "debian:12" }),
                "images.oci",
            ),
            (json!({ "kind": "build", "definition": {} }), "images.build"),
        ] {
            assert_eq!(
                refusal(json!({ "image": image })),
                (Code::Unsupported, feature.to_owned())
            );
        }
        for wrong in [
            json!(""),
            json!(" "),
            json!("a\nb"),
            json!(7),
            json!({ "kind": "x" }),
        ] {
            assert_eq!(
                refusal(json!({ "image": wrong })).0,
                Code::InvalidArgument,
                "{wrong}"
            );
        }
    }

    #[test]
    fn r8_sizes_beyond_the_largest_and_numbers_that_are_none_are_refused() {
        let resources = |resources: Value| refusal(json!({ "resources": resources }));
        assert_eq!(resources(json!({ "vcpus": 17 })).0, Code::Unsupported);
        assert_eq!(
            resources(json!({ "memoryMiB": 65537 })).0,
            Code::Unsupported
        );
        for wrong in [json!(0), json!(-1), json!("2"), json!(null)] {
            assert_eq!(
                resources(json!({ "vcpus": wrong })).0,
                Code::InvalidArgument,
                "{wrong}"
            );
        }
        assert_eq!(resources(json!({ "cpus": 2 })).0, Code::InvalidArgument);
        let size = parse(json!({ "resources": { "vcpus": 1, "memoryMiB": 4096 } }))
            .unwrap()
            .size;
        assert_eq!(size.map(|size| size.name), Some("MEDIUM"));
    }

    #[test]
    fn r9_r10_a_lifetime_or_an_idle_time_but_not_both() {
        let lifecycle = |value: Value| parse(json!({ "lifecycle": value }));
        for seconds in [60, 900, 172_800] {
            let config = lifecycle(json!({ "lifetimeSeconds": seconds })).unwrap();
            assert_eq!(config.lifecycle, Lifecycle::Lifetime { seconds });
        }
        let config = lifecycle(json!({ "idleSeconds": 5 })).unwrap();
        assert_eq!(config.lifecycle, Lifecycle::Idle { seconds: 5 });
        for wrong in [
            json!({ "lifetimeSeconds": 59 }),
            json!({ "lifetimeSeconds": 172_801 }),
            json!({ "lifetimeSeconds": 60.5 }),
            json!({ "lifetimeSeconds": "60" }),
            json!({ "idleSeconds": 0 }),
            json!({ "lifetimeSeconds": 60, "idleSeconds": 60 }),
        ] {
            let error = lifecycle(wrong.clone()).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{wrong}");
            assert!(error.message().starts_with("config.lifecycle"), "{error}");
        }
    }

    #[test]
    fn r11_previews_are_protected_or_public() {
        let access = |value: Value| parse(json!({ "preview": { "access": value } }));
        assert_eq!(access(json!("public")).unwrap().preview, Access::Public);
        assert_eq!(
            access(json!("protected")).unwrap().preview,
            Access::Protected
        );
        assert_eq!(
            access(json!("open")).unwrap_err().code(),
            Code::InvalidArgument
        );
    }

    #[test]
    fn r12_disk_is_kept_and_memory_and_retention_are_unsupported() {
        parse(json!({
            "snapshots": { "preserve": "filesystem" },
            "lifecycle": { "suspension": { "preserve": "filesystem" } },
        }))
        .unwrap();
        let memory = json!("filesystem+memory");
        for (config, feature) in [
            (
                json!({ "snapshots": { "preserve": memory } }),
                "snapshots.preserve",
            ),
            (
                json!({ "snapshots": { "retentionSeconds": 60 } }),
                "snapshots.retentionSeconds",
            ),
            (
                json!({ "lifecycle": { "suspension": { "preserve": memory } } }),
                "lifecycle.suspension.preserve",
            ),
        ] {
            assert_eq!(refusal(config), (Code::Unsupported, feature.to_owned()));
        }
        assert_eq!(
            refusal(json!({ "snapshots": { "preserve": "disk" } })).0,
            Code::InvalidArgument
        );
    }

    #[test]
    fn r5_r6_a_network_that_is_none_is_named_by_its_kind_and_text_is_not_repeated() {
        for (network, given) in [
            (json!(true), "not true"),
            (json!(7), "not 7"),
            (json!("ak_s3cr3t"), "not another string"),
            (json!([]), "not an array"),
        ] {
            let error = parse(json!({ "network": network })).unwrap_err();
            let expected = format!("network must be \"blocked\" or \"internet\", {given}");
            assert_eq!(error.message(), expected);
        }
    }

    #[test]
    fn an_unknown_key_at_any_level_is_refused_by_its_name() {
        for (config, key) in [
            (json!({ "newtork": "blocked" }), "newtork"),
            (json!({ "resources": { "vcpu": 1 } }), "vcpu"),
            (json!({ "lifecycle": { "lifetime": 60 } }), "lifetime"),
            (
                json!({ "lifecycle": { "suspension": { "keep": 1 } } }),
                "keep",
            ),
            (json!({ "preview": { "acess": "public" } }), "acess"),
            (json!({ "snapshots": { "preserv": "x" } }), "preserv"),
            (json!({ "timeouts": { "start": 1 } }), "start"),
        ] {
            let error = parse(config).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(&format!("{key:?}")), "{error}");
        }
        for wrong in [json!([]), json!("blocked"), json!(7)] {
            assert_eq!(refusal(wrong).0, Code::InvalidArgument);
        }
    }

    #[test]
    fn v17_a_configuration_shows_no_key() {
        let config = Config::parse(&json!({ "apiKey": "ak_s3cr3t" }), &Value::Null).unwrap();
        assert!(!format!("{config:?}").contains("s3cr3t"));
    }
}
