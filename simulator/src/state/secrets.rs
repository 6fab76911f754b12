//! Secrets: values by name that a box may be given as variables. A value is
//! never shown again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ids;
use crate::error::{ApiError, ApiResult};

/// The body of a create.
#[derive(Deserialize)]
pub(crate) struct CreateSecret {
    name: String,
    value: String,
}

/// The body of an update.
#[derive(Deserialize)]
pub(crate) struct UpdateSecret {
    value: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Secret {
    pub(crate) id: String,
    account_id: String,
    name: String,
    value: String,
    create_time_ms: i64,
    update_time_ms: i64,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Secret")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Secret {
    /// The SecretView, which has no value.
    pub(crate) fn view(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "create_time_ms": self.create_time_ms,
            "update_time_ms": self.update_time_ms,
        })
    }
}

/// All secrets, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Mutex<Vec<Secret>>);

impl Secrets {
    /// A duplicate name is 400 (certain), as is one that no variable can have.
    pub(crate) fn create(
        &self,
        account_id: &str,
        request: CreateSecret,
        now_ms: i64,
    ) -> ApiResult<Secret> {
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && name
                    .bytes()
                    .next()
                    .is_some_and(|first| !first.is_ascii_digit())
        };
        if !is_name(&request.name) {
            return Err(ApiError::bad_request(
                "name must be that of an environment variable",
            ));
        }
        let mut secrets = self.lock();
        if position(&secrets, account_id, &request.name).is_some() {
            return Err(ApiError::bad_request(format!(
                "a secret named {} exists",
                request.name
            )));
        }
        let secret = Secret {
            id: ids::fresh("sec"),
            account_id: account_id.to_owned(),
            name: request.name,
            value: request.value,
            create_time_ms: now_ms,
            update_time_ms: now_ms,
        };
        secrets.push(secret.clone());
        Ok(secret)
    }

    pub(crate) fn get(&self, account_id: &str, name: &str) -> ApiResult<Secret> {
        let secrets = self.lock();
        position(&secrets, account_id, name)
            .and_then(|index| secrets.get(index).cloned())
            .ok_or_else(|| ApiError::not_found("secret", name))
    }

    pub(crate) fn update(
        &self,
        account_id: &str,
        name: &str,
        request: UpdateSecret,
        now_ms: i64,
    ) -> ApiResult<Secret> {
        let mut secrets = self.lock();
        let secret = position(&secrets, account_id, name)
            .and_then(|index| secrets.get_mut(index))
            .ok_or_else(|| ApiError::not_found("secret", name))?;
        secret.value = request.value;
        secret.update_time_ms = now_ms;
        Ok(secret.clone())
    }

    pub(crate) fn delete(&self, account_id: &str, name: &str) -> ApiResult<Secret> {
        let mut secrets = self.lock();
        let index = position(&secrets, account_id, name)
            .ok_or_else(|| ApiError::not_found("secret", name))?;
        Ok(secrets.remove(index))
    }

    /// The value for a box; a name that is not there is 400 (unknown).
    pub(crate) fn value(&self, account_id: &str, name: &str) -> ApiResult<String> {
        self.get(account_id, name)
            .map(|secret| secret.value)
            .map_err(|error| ApiError::bad_request(error.message))
    }

    /// Newest first.
    pub(crate) fn list(&self, account_id: &str) -> Vec<Secret> {
        let secrets = self.lock();
        secrets
            .iter()
            .rev()
            .filter(|secret| secret.account_id == account_id)
            .cloned()
            .collect()
    }

    pub(super) fn saved(&self) -> Vec<Secret> {
        self.lock().clone()
    }

    pub(super) fn restore(&self, secrets: Vec<Secret>) {
        *self.lock() = secrets;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position(secrets: &[Secret], account_id: &str, name: &str) -> Option<usize> {
    secrets
        .iter()
        .position(|secret| secret.account_id == account_id && secret.name == name)
}
