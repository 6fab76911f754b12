//! What a connection must never show: its key and the tokens of its tunnels.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Tokens that are remembered; the oldest is forgotten first.
const MAX_TOKENS: usize = 256;

/// The secrets of one connection. `Debug` shows none.
pub struct Secrets {
    api_key: String,
    tokens: Mutex<VecDeque<String>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Those of a new connection.
    #[must_use]
    pub fn new(api_key: impl Into<String>) -> Self {
        Self {
            api_key: api_key.into(),
            tokens: Mutex::default(),
        }
    }

    /// Remembers the token of a tunnel.
    pub fn learn(&self, token: &str) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if token.is_empty() || tokens.iter().any(|known| known == token) {
            return;
        }
        if tokens.len() == MAX_TOKENS {
            tokens.pop_front();
        }
        tokens.push_back(token.to_owned());
    }

    /// The text without them and without `more`.
    #[must_use]
    pub fn redact(&self, text: &str, more: &[&str]) -> String {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let mut secrets: Vec<&str> = Vec::with_capacity(1 + more.len() + tokens.len());
        secrets.push(&self.api_key);
        secrets.extend_from_slice(more);
        secrets.extend(tokens.iter().map(String::as_str));
        crate::error::redact(text, &secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v17_the_key_learnt_tokens_and_what_a_call_adds_are_taken_out() {
        let secrets = Secrets::new("ak_0123456789");
        secrets.learn("tok_0123456789");
        let text = secrets.redact(
            "ak_0123456789 tok_0123456789 env_0123456789",
            &["env_0123456789"],
        );
        assert_eq!(text, "[redacted] [redacted] [redacted]");
        assert!(!format!("{secrets:?}").contains("0123"));
    }

    #[test]
    fn only_so_many_tokens_are_remembered() {
        let secrets = Secrets::new("ak_0123456789");
        for number in 0..=MAX_TOKENS {
            secrets.learn(&format!("token-{number:08}"));
        }
        assert_eq!(secrets.redact("token-00000000", &[]), "token-00000000");
        assert_eq!(secrets.redact("token-00000001", &[]), "[redacted]");
    }
}
