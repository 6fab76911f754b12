//! Accounts and the keys that speak for them.
//!
//! One account exists from the start and owns every key that no other account
//! claims, unless a key is pinned. Tests add further accounts to show that a
//! reference of one is nothing to another.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{ids, time};

const KEY_PREFIX: &str = "ak_";

/// What may be set on an account; an absent field keeps its value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountChange {
    /// The account; absent means the one that exists from the start.
    pub(crate) id: Option<String>,
    /// Renames the account.
    pub(crate) new_id: Option<String>,
    /// A key that from now on speaks for this account only.
    pub(crate) api_key: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) tier: Option<String>,
    pub(crate) account_status: Option<String>,
}

#[derive(Debug, Clone)]
struct Account {
    id: Arc<str>,
    name: String,
    tier: String,
    status: String,
    created_at_ms: i64,
}

#[derive(Debug)]
struct Book {
    main: Arc<str>,
    accounts: HashMap<Arc<str>, Account>,
    keys: HashMap<String, Arc<str>>,
    pinned_key: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Accounts(RwLock<Book>);

impl Accounts {
    pub(crate) fn new(pinned_key: Option<String>, now_ms: i64) -> Self {
        let main = Account::new(Arc::from(ids::fresh("acc")), now_ms);
        Self(RwLock::new(Book {
            main: Arc::clone(&main.id),
            accounts: HashMap::from([(Arc::clone(&main.id), main)]),
            keys: HashMap::new(),
            pinned_key,
        }))
    }

    /// The account that a key speaks for, if the key is good.
    pub(crate) fn id_for_key(&self, key: &str) -> Option<Arc<str>> {
        let book = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = book.keys.get(key) {
            return Some(Arc::clone(owner));
        }
        let good = match &book.pinned_key {
            Some(pinned) => pinned == key,
            None => key.len() > KEY_PREFIX.len() && key.starts_with(KEY_PREFIX),
        };
        good.then(|| Arc::clone(&book.main))
    }

    /// The `GET /v1/accounts/me` view.
    pub(crate) fn view(&self, id: &str) -> Option<Value> {
        let book = self.0.read().unwrap_or_else(PoisonError::into_inner);
        book.accounts.get(id).map(Account::view)
    }

    /// Makes or changes an account and gives its view.
    pub(crate) fn change(&self, change: AccountChange, now_ms: i64) -> Value {
        let mut book = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let id = change.id.map_or_else(|| Arc::clone(&book.main), Arc::from);
        let mut account = book
            .accounts
            .remove(&id)
            .unwrap_or_else(|| Account::new(Arc::clone(&id), now_ms));
        if let Some(new_id) = change.new_id {
            account.id = Arc::from(new_id);
            if book.main == id {
                book.main = Arc::clone(&account.id);
            }
            for owner in book.keys.values_mut().filter(|owner| **owner == id) {
                *owner = Arc::clone(&account.id);
            }
        }
        account.name = change.name.unwrap_or(account.name);
        account.tier = change.tier.unwrap_or(account.tier);
        account.status = change.account_status.unwrap_or(account.status);
        if let Some(key) = change.api_key {
            book.keys.insert(key, Arc::clone(&account.id));
        }
        let view = account.view();
        book.accounts.insert(Arc::clone(&account.id), account);
        view
    }
}

impl Account {
    fn new(id: Arc<str>, now_ms: i64) -> Self {
        Self {
            id,
            name: "Simulated account".to_owned(),
            tier: "ACCOUNT_TIER_PRO".to_owned(),
            status: "ACCOUNT_STATUS_ENABLED".to_owned(),
            created_at_ms: now_ms,
        }
    }

    /// `created_at` is a string on the service; its format is unknown.
    fn view(&self) -> Value {
        json!({
            "id": &*self.id,
            "name": self.name,
            "tier": self.tier,
            "account_status": self.status,
            "created_at": time::rfc3339(self.created_at_ms),
            "billing": { "account_billing_type": "STRIPE" },
        })
    }
}
