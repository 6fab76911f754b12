//! Accounts and the keys that speak for them.
//!
//! One account exists from the start and owns every key that no other account
//! claims, unless a key is pinned. Tests add further accounts to show that a
//! reference of one is nothing to another.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ids, time};

const KEY_PREFIX: &str = "ak_";

/// What may be set on an account; an absent field keeps its value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountChange {
    /// The account; absent means the one that exists from the start.
    pub(crate) id: Option<String>,
    /// Shows it by this id from now on; what it owns stays its own.
    pub(crate) new_id: Option<String>,
    /// A key that from now on speaks for this account only.
    pub(crate) api_key: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) tier: Option<String>,
    pub(crate) account_status: Option<String>,
}

/// Names an account inside the simulator: what its resources carry. Unlike the
/// id that clients see, it never changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct AccountKey(Arc<str>);

impl From<String> for AccountKey {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl From<AccountKey> for String {
    fn from(key: AccountKey) -> Self {
        key.0.to_string()
    }
}

impl Deref for AccountKey {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for AccountKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Account {
    key: AccountKey,
    /// What clients see; may be changed.
    id: String,
    name: String,
    tier: String,
    status: String,
    created_at_ms: i64,
}

/// All accounts and who speaks for them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Book {
    main: AccountKey,
    accounts: HashMap<AccountKey, Account>,
    api_keys: HashMap<String, AccountKey>,
    /// The start's business, not the state's.
    #[serde(skip)]
    pinned_api_key: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Accounts(RwLock<Book>);

impl Accounts {
    pub(crate) fn new(pinned_api_key: Option<String>, now_ms: i64) -> Self {
        let main = Account::new(ids::fresh("acc"), now_ms);
        Self(RwLock::new(Book {
            main: main.key.clone(),
            accounts: HashMap::from([(main.key.clone(), main)]),
            api_keys: HashMap::new(),
            pinned_api_key,
        }))
    }

    /// The account that a key speaks for, if the key is good.
    pub(crate) fn for_api_key(&self, api_key: &str) -> Option<AccountKey> {
        let book = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = book.api_keys.get(api_key) {
            return Some(owner.clone());
        }
        let is_good = match &book.pinned_api_key {
            Some(pinned) => pinned == api_key,
            None => api_key.len() > KEY_PREFIX.len() && api_key.starts_with(KEY_PREFIX),
        };
        is_good.then(|| book.main.clone())
    }

    /// The `GET /v1/accounts/me` view.
    pub(crate) fn view(&self, key: &str) -> Option<Value> {
        let book = self.0.read().unwrap_or_else(PoisonError::into_inner);
        book.accounts.get(key).map(Account::view)
    }

    pub(super) fn saved(&self) -> Book {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn restore(&self, saved: Book) {
        let mut book = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let pinned_api_key = book.pinned_api_key.take();
        *book = Book {
            pinned_api_key,
            ..saved
        };
    }

    /// Makes or changes an account and gives its view.
    pub(crate) fn change(&self, change: AccountChange, now_ms: i64) -> Value {
        let mut book = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let key = match &change.id {
            None => Some(book.main.clone()),
            Some(id) => {
                let known = book.accounts.values().find(|account| account.id == *id);
                known.map(|account| account.key.clone())
            }
        };
        let known = key.and_then(|key| book.accounts.remove(&key));
        let mut account = known.unwrap_or_else(|| {
            Account::new(change.id.unwrap_or_else(|| ids::fresh("acc")), now_ms)
        });
        account.id = change.new_id.unwrap_or(account.id);
        account.name = change.name.unwrap_or(account.name);
        account.tier = change.tier.unwrap_or(account.tier);
        account.status = change.account_status.unwrap_or(account.status);
        if let Some(api_key) = change.api_key {
            book.api_keys.insert(api_key, account.key.clone());
        }
        let view = account.view();
        book.accounts.insert(account.key.clone(), account);
        view
    }
}

impl Account {
    fn new(id: String, now_ms: i64) -> Self {
        Self {
            key: AccountKey(Arc::from(ids::token(21))),
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
            "id": self.id,
            "name": self.name,
            "tier": self.tier,
            "account_status": self.status,
            "created_at": time::rfc3339(self.created_at_ms),
            "billing": { "account_billing_type": "STRIPE" },
        })
    }
}
