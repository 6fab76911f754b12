//! The rules in force and how often each has acted.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{Method, Uri};
use serde_json::{Value, json};

use super::rule::{Action, Rule};
use super::sse::SseFault;
use crate::state::build::BuildOutcome;
use crate::state::script::Script;
use crate::state::snapshots::SnapshotOutcome;

/// A rule with its counters.
#[derive(Debug)]
struct Active {
    id: String,
    rule: Arc<Rule>,
    seen: u64,
    acted: u64,
}

/// All rules, in the order they were posted.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    rules: Vec<Active>,
    next_id: u64,
}

/// The rules that act on one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hits(Vec<Hit>);

#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) id: String,
    rule: Arc<Rule>,
}

impl Hits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|hit| hit.id.as_str())
    }

    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.0.iter().map(|hit| &hit.rule.action)
    }
}

/// The rules that act on the request that a route is serving.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faulted(Arc<Hits>);

impl<S: Sync> FromRequestParts<S> for Faulted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get().cloned().unwrap_or_default()))
    }
}

impl Faulted {
    /// The route answers as if it had acted, and does not act.
    pub(crate) fn has_no_effect(&self) -> bool {
        self.0
            .actions()
            .any(|action| matches!(action, Action::NoEffect(_)))
    }

    /// The script for the box that the route makes.
    pub(crate) fn devbox_script(&self) -> Option<Script> {
        self.0.actions().find_map(|action| match action {
            Action::DevboxScript(script) => Some(script.clone()),
            _ => None,
        })
    }

    pub(crate) fn snapshot_outcome(&self) -> SnapshotOutcome {
        let found = self.0.actions().find_map(|action| match action {
            Action::SnapshotOutcome(outcome) => Some(outcome.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    pub(crate) fn build_outcome(&self) -> BuildOutcome {
        let found = self.0.actions().find_map(|action| match action {
            Action::BuildOutcome(outcome) => Some(outcome.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    pub(crate) fn sse(&self) -> Option<SseFault> {
        self.0.actions().find_map(|action| match action {
            Action::Sse(fault) => Some(fault.clone()),
            _ => None,
        })
    }
}

impl Faults {
    /// Adds a rule and gives its id; a rule with the same id is replaced.
    pub(crate) fn add(&self, rule: Rule) -> String {
        let mut book = self.lock();
        book.next_id += 1;
        let id = rule
            .id
            .clone()
            .unwrap_or_else(|| format!("fault_{}", book.next_id));
        book.rules.retain(|active| active.id != id);
        book.rules.push(Active {
            id: id.clone(),
            rule: Arc::new(rule),
            seen: 0,
            acted: 0,
        });
        id
    }

    /// Removes one rule, or all. Whether there was one.
    pub(crate) fn remove(&self, id: Option<&str>) -> bool {
        let mut book = self.lock();
        let before = book.rules.len();
        book.rules
            .retain(|active| id.is_some_and(|id| active.id != id));
        book.rules.len() < before
    }

    /// The rules with their counters.
    pub(crate) fn view(&self) -> Vec<Value> {
        let book = self.lock();
        let rows = book.rules.iter().map(|active| {
            json!({
                "id": active.id,
                "match": active.rule.matcher,
                "action": active.rule.action,
                "seen": active.seen,
                "acted": active.acted,
            })
        });
        rows.collect()
    }

    /// Counts a request and gives the rules that act on it.
    pub(crate) fn hits(&self, method: &Method, uri: &Uri, body: Option<&Value>) -> Hits {
        let mut book = self.lock();
        if book.rules.is_empty() {
            return Hits::default();
        }
        let query: BTreeMap<_, _> = crate::routes::query_pairs(uri.query()).collect();
        let mut hits = Vec::new();
        for active in &mut book.rules {
            let matcher = &active.rule.matcher;
            if !matcher.fits(method, uri.path(), &query, body) {
                continue;
            }
            active.seen += 1;
            let has_begun = active.seen > matcher.after;
            let is_spent = matcher.count.is_some_and(|count| active.acted >= count);
            if has_begun && !is_spent {
                active.acted += 1;
                hits.push(Hit {
                    id: active.id.clone(),
                    rule: Arc::clone(&active.rule),
                });
            }
        }
        Hits(hits)
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
