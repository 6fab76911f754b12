//! Gathers the body of an answer.

use bytes::Bytes;

/// A body as it arrives.
///
/// Nearly every answer is one piece, which is passed on as it is. More are
/// copied once each, into room for the announced length, so that a file of
/// 64 MiB is in memory once and not as its pieces besides.
pub(super) struct Gathered {
    announced_bytes: usize,
    first: Bytes,
    joined: Vec<u8>,
}

impl Gathered {
    /// `announced_bytes` may be wrong or 0; it is only room, and must have been limited.
    pub(super) fn new(announced_bytes: usize) -> Self {
        Self {
            announced_bytes,
            first: Bytes::new(),
            joined: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    pub(super) fn push(&mut self, piece: Bytes) {
        if self.len() == 0 {
            self.first = piece;
            return;
        }
        if self.joined.is_empty() {
            let first = std::mem::take(&mut self.first);
            let least = first.len() + piece.len();
            self.joined.reserve_exact(self.announced_bytes.max(least));
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&piece);
    }

    pub(super) fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_passed_on_without_a_copy() {
        let piece = Bytes::from(vec![7; 100]);
        let mut body = Gathered::new(0);
        body.push(piece.clone());
        assert_eq!(body.into_bytes().as_ptr(), piece.as_ptr());
    }

    #[test]
    fn pieces_are_joined_in_order_whatever_was_announced() {
        for announced in [0, 3, 6, 100] {
            let mut body = Gathered::new(announced);
            for piece in ["ab", "", "cd", "ef"] {
                body.push(Bytes::from_static(piece.as_bytes()));
            }
            assert_eq!(body.len(), 6);
            assert_eq!(body.into_bytes(), "abcdef");
        }
        assert!(Gathered::new(9).into_bytes().is_empty());
    }
}
