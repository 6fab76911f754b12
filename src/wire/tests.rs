//! Whatever a service sends, reading it neither panics nor takes long.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::cases::cases;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::accounts::Account;
use super::blueprints::{Blueprint, BlueprintPage};
use super::devboxes::{Devbox, DevboxPage};
use super::executions::Execution;
use super::policies::{NetworkPolicy, NetworkPolicyPage};
use super::snapshots::{Snapshot, SnapshotPage, SnapshotStatus};

/// Reads it as every type there is; gives how many took it.
fn read_as_all(text: &[u8]) -> usize {
    fn taken<T: DeserializeOwned>(text: &[u8]) -> usize {
        usize::from(serde_json::from_slice::<T>(text).is_ok())
    }
    taken::<Account>(text)
        + taken::<Blueprint>(text)
        + taken::<BlueprintPage>(text)
        + taken::<Devbox>(text)
        + taken::<DevboxPage>(text)
        + taken::<Execution>(text)
        + taken::<NetworkPolicy>(text)
        + taken::<NetworkPolicyPage>(text)
        + taken::<Snapshot>(text)
        + taken::<SnapshotPage>(text)
        + taken::<SnapshotStatus>(text)
}

const FIELDS: [&str; 24] = [
    "id",
    "status",
    "state",
    "name",
    "create_time_ms",
    "metadata",
    "launch_parameters",
    "after_idle",
    "idle_time_seconds",
    "keep_alive_time_seconds",
    "custom_cpu_cores",
    "tunnel",
    "auth_token",
    "failure_reason",
    "devboxes",
    "snapshots",
    "network_policies",
    "egress",
    "allow_all",
    "has_more",
    "exit_status",
    "stdout",
    "size_bytes",
    "snapshot",
];

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(&FIELDS[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

/// Any JSON, with the fields that are read more often than others.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((field(), inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_json_is_read_or_refused(value in value()) {
        read_as_all(value.to_string().as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_all(&bytes);
    }

    #[test]
    fn json_that_is_cut_or_changed_anywhere_is_read_or_refused(
        value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut text = value.to_string().into_bytes();
        let at = at.index(text.len());
        read_as_all(&text[..at]);
        text[at] = byte;
        read_as_all(&text);
    }
}

#[test]
fn numbers_out_of_range_are_refused_and_unknown_fields_passed_over() {
    for text in [
        r#"{"id":"x","create_time_ms":1e999}"#,
        r#"{"id":"x","launch_parameters":{"keep_alive_time_seconds":1e999}}"#,
    ] {
        assert!(serde_json::from_str::<Devbox>(text).is_err(), "{text}");
    }
    for number in ["1e3", "-1.5", "9223372036854775808", "1e300"] {
        let text = format!(r#"{{"exit_status":{number}}}"#);
        assert!(serde_json::from_str::<Execution>(&text).is_err(), "{text}");
    }
    let odd = r#"{"id":"x","create_time_ms":-1e300,"new":{"deep":[1,{"er":null}]}}"#;
    assert_eq!(serde_json::from_str::<Devbox>(odd).unwrap().id, "x");
}

#[test]
fn json_that_is_too_deep_is_refused_or_passed_over_without_recursion() {
    let nested = |open: &str, close: &str| {
        let depth = 100_000;
        format!("{}null{}", open.repeat(depth), close.repeat(depth))
    };
    assert_eq!(read_as_all(nested("[", "]").as_bytes()), 0);
    assert!(read_as_all(nested(r#"{"new":"#, "}").as_bytes()) > 0);
    // A field that is kept whatever it is.
    let policy = format!(r#"{{"egress":{{"x":{}}}}}"#, nested("[", "]"));
    assert!(serde_json::from_str::<NetworkPolicy>(&policy).is_err());
}

#[test]
fn a_page_of_more_items_than_anybody_asks_for_is_refused_early() {
    let page = |items: usize| format!(r#"{{"devboxes":[{}{{}}]}}"#, "{},".repeat(items - 1));
    let read = |text: &str| serde_json::from_str::<DevboxPage>(text);
    assert_eq!(read(&page(10_000)).unwrap().devboxes.len(), 10_000);
    assert!(read(&page(10_001)).is_err());
    // 15 MB of empty objects would become gigabytes of Devboxes.
    let long = page(5_000_000);
    let started = Instant::now();
    assert!(read(&long).is_err());
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(
        serde_json::from_str::<SnapshotPage>(r#"{"snapshots":null}"#)
            .unwrap()
            .snapshots
            .is_empty()
    );
}

/// The time for input of twice the size is about twice as long: four times
/// would be quadratic, and the margin is for a busy machine.
#[test]
fn reading_takes_time_in_proportion_to_the_size() {
    let input = |size: usize| {
        let pairs = (0..size).map(|number| format!(r#""k{number}":"v""#));
        let metadata = pairs.collect::<Vec<_>>().join(",");
        let text = "x\\ud83d".repeat(size);
        format!(
            r#"{{"id":"x","metadata":{{{metadata}}},"stdout":"{text}","egress":{{{metadata}}}}}"#
        )
    };
    let fastest = |text: &str| {
        let times = (0..5).map(|_| {
            let started = Instant::now();
            read_as_all(text.as_bytes());
            started.elapsed()
        });
        times.min().unwrap_or_default().as_secs_f64()
    };
    let (small, large) = (input(5_000), input(40_000));
    let ratio = fastest(&large) / fastest(&small);
    assert!(
        ratio < 8.0 * 3.0,
        "{ratio} times as long for 8 times as much"
    );
}
