//! The unguessable name of one call, and the guest paths that carry it.

use std::fmt;

/// 128 random bits as 32 lowercase hexadecimal digits: the name of one call inside the guest.
///
/// It marks the call's record and every path the call makes, so that a later script finds them
/// without having been told. It is no secret from the guest: it stands in directory names there.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Nonce(String);

impl Nonce {
    /// Makes a nonce of `random` bytes, which must come from a cryptographic generator and serve
    /// one call only.
    #[must_use]
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(random)))
    }

    /// The 32 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the caller uploads the command's standard input before it runs the wrapper.
    #[must_use]
    pub fn stdin_path(&self) -> String {
        format!("/tmp/beachside-stdin-{}", self.0)
    }

    /// Where a script travels that is too long for one command string.
    #[must_use]
    pub fn script_path(&self) -> String {
        format!("/tmp/beachside-script-{}", self.0)
    }

    /// Where the caller uploads a file's content before it is moved to its place.
    #[must_use]
    pub fn file_path(&self) -> String {
        format!("/tmp/beachside-file-{}", self.0)
    }

    /// What the name of the call's private directory begins with; `mktemp` adds six characters.
    #[must_use]
    pub fn directory_prefix(&self) -> String {
        format!("/tmp/beachside-{}.", self.0)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Nonce({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Nonce;

    #[test]
    fn a_nonce_is_32_digits_whatever_the_bytes() {
        assert_eq!(Nonce::from_random([0; 16]).as_str(), "0".repeat(32));
        assert_eq!(Nonce::from_random([0xff; 16]).as_str(), "f".repeat(32));
        let mut bytes = [0; 16];
        bytes[15] = 0x0a;
        assert!(Nonce::from_random(bytes).as_str().ends_with("00a"));
    }

    #[test]
    fn every_path_of_a_call_lies_in_tmp_and_carries_the_nonce() {
        let nonce = Nonce::from_random([7; 16]);
        for path in [
            nonce.stdin_path(),
            nonce.script_path(),
            nonce.file_path(),
            nonce.directory_prefix(),
        ] {
            assert!(path.starts_with("/tmp/beachside-"), "{path}");
            assert!(path.contains(nonce.as_str()), "{path}");
        }
    }
}
