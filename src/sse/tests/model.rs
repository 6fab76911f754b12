//! A model of the service: output that a process wrote, sent in chunks from an
//! offset, in every reading of offsets that the bookkeeping must survive.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::sse::OffsetMode;

/// The least that a chunk can be cut to.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// As it stands in the JSON string.
    pub(super) json: String,
    /// Units of offset that it counts for.
    pub(super) units: u64,
}

/// What one character of output is on the wire.
#[derive(Debug, Clone)]
pub(super) enum Atom {
    Text(char),
    /// A sequence of this many bytes that is not UTF-8, sent as U+FFFD.
    Bad {
        bytes: u64,
    },
    /// A character above U+FFFF that may be cut between its escaped halves, of
    /// which the first counts for this many units.
    Halves {
        character: char,
        first_units: u64,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) pieces: Vec<Piece>,
    /// Units before each piece, and before the end.
    before: Vec<u64>,
    /// What a reader must get, all in all.
    pub(super) text: String,
}

impl Output {
    /// `counts_text`: offsets count the text as sent, not what was written.
    pub(super) fn of(atoms: &[Atom], counts_text: bool) -> Self {
        let mut output = Self {
            pieces: Vec::new(),
            before: Vec::new(),
            text: String::new(),
        };
        for atom in atoms {
            match atom {
                Atom::Text(character) => {
                    output.text.push(*character);
                    let json = serde_json::to_string(character).unwrap();
                    let units = character.len_utf8() as u64;
                    let json = json[1..json.len() - 1].to_owned();
                    output.pieces.push(Piece { json, units });
                }
                Atom::Bad { bytes } => {
                    output.text.push('\u{FFFD}');
                    let units = if counts_text { 3 } else { *bytes };
                    output.pieces.push(Piece {
                        json: "\u{FFFD}".into(),
                        units,
                    });
                }
                Atom::Halves {
                    character,
                    first_units,
                } => {
                    output.text.push(*character);
                    let mut units = [0; 2];
                    character.encode_utf16(&mut units);
                    for (half, units) in units.iter().zip([*first_units, 4 - first_units]) {
                        output.pieces.push(Piece {
                            json: format!("\\u{half:04x}"),
                            units,
                        });
                    }
                }
            }
        }
        let mut total = 0;
        output.before.push(0);
        for piece in &output.pieces {
            total += piece.units;
            output.before.push(total);
        }
        output
    }

    pub(super) fn units(&self) -> u64 {
        self.units_before(self.pieces.len())
    }

    fn units_before(&self, piece: usize) -> u64 {
        self.before[piece]
    }

    fn piece_at(&self, offset: u64) -> usize {
        self.before
            .partition_point(|before| *before < offset)
            .min(self.pieces.len())
    }
}

/// How the service behaves.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) output: Output,
    pub(super) mode: OffsetMode,
    /// Sizes of chunks in pieces, taken in turn.
    pub(super) sizes: Vec<usize>,
    /// Chunks lie where they lie, whatever offset is asked for; only the ones
    /// before it are left out.
    pub(super) stored: bool,
    /// Ends of lines, taken in turn.
    pub(super) line_ends: Vec<&'static str>,
}

/// A chunk as a range of pieces.
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    /// Units of text on this connection.
    pub(super) units: u64,
}

impl Service {
    pub(super) fn largest_chunk_units(&self) -> u64 {
        let largest = *self.sizes.iter().max().unwrap();
        let pieces = &self.output.pieces;
        (0..pieces.len())
            .map(|from| {
                pieces
                    .iter()
                    .skip(from)
                    .take(largest)
                    .map(|piece| piece.units)
                    .sum()
            })
            .max()
            .unwrap_or(0)
    }

    /// Everything from `offset` on, starting `shift` pieces earlier (or later).
    pub(super) fn open(&self, offset: u64, turn: usize, shift: isize) -> Sent {
        let pieces = &self.output.pieces;
        let wanted = self
            .output
            .piece_at(offset)
            .saturating_add_signed(-shift)
            .min(pieces.len());
        let mut sizes = self
            .sizes
            .iter()
            .cycle()
            .skip(if self.stored { 0 } else { turn });
        let mut ends = self.line_ends.iter().cycle().skip(turn);
        let mut from = if self.stored { 0 } else { wanted };
        let mut sent = Sent {
            bytes: Vec::new(),
            units: 0,
        };
        while from < pieces.len() {
            let to = (from + sizes.next().unwrap()).min(pieces.len());
            if to > wanted {
                let chunk = &pieces[from..to];
                let units: u64 = chunk.iter().map(|piece| piece.units).sum();
                let json: String = chunk.iter().map(|piece| piece.json.as_str()).collect();
                let before = self.output.units_before(from);
                let offset = match self.mode {
                    OffsetMode::Start => before,
                    OffsetMode::End => before + units,
                };
                let mut event = String::new();
                if turn % 3 == 1 {
                    write!(event, ": alive{}", ends.next().unwrap()).unwrap();
                }
                let end = ends.next().unwrap();
                let line = format!(r#"data: {{"output":"{json}","offset":{offset}}}"#);
                write!(event, "{line}{end}{end}").unwrap();
                sent.bytes.extend_from_slice(event.as_bytes());
                sent.units += units;
            }
            from = to;
        }
        sent
    }
}

/// What the output may have in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Only text whose bytes are its units.
    Plain,
    /// Replaced bytes too.
    Replaced,
    /// Halves of surrogate pairs too.
    Any,
}

pub(super) fn atoms(content: Content) -> impl Strategy<Value = Vec<Atom>> {
    let text = prop::sample::select(vec![
        'a', 'b', 'y', '\n', '"', '\\', '\u{1b}', 'é', '日', '\u{FFFD}', '😀', '\u{FEFF}',
    ]);
    let plain_text = text
        .clone()
        .prop_map(|c| if c == '\u{FFFD}' { 'z' } else { c });
    let replaced = (1u64..=3).prop_map(|bytes| Atom::Bad { bytes });
    let halves = (1u64..=3).prop_map(|first_units| Atom::Halves {
        character: '😀',
        first_units,
    });
    let atom = match content {
        Content::Plain => plain_text.prop_map(Atom::Text).boxed(),
        Content::Replaced => prop_oneof![4 => text.prop_map(Atom::Text), 2 => replaced].boxed(),
        Content::Any => {
            prop_oneof![4 => text.prop_map(Atom::Text), 2 => replaced, 1 => halves].boxed()
        }
    };
    prop::collection::vec(atom, 0..60)
}

pub(super) fn service(content: Content) -> impl Strategy<Value = Service> {
    (
        atoms(content),
        any::<bool>(),
        prop::sample::select(vec![OffsetMode::Start, OffsetMode::End]),
        prop::collection::vec(1usize..12, 1..6),
        any::<bool>(),
        prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 1..4),
    )
        .prop_map(
            |(atoms, counts_text, mode, sizes, stored, line_ends)| Service {
                output: Output::of(&atoms, counts_text),
                mode,
                sizes,
                stored,
                line_ends,
            },
        )
}
