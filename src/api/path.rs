//! Paths and queries with what callers gave percent-encoded.
//!
//! An id comes from a saved reference, so it may hold anything: `/`, `?`, `..`
//! or a control character must not lead to another endpoint.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986, less the dot: a
/// segment that is `.` or `..` would be resolved away by URL parsers.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// `/v1/` and then the segments, each encoded.
pub fn path<const N: usize>(segments: [&str; N]) -> String {
    let mut out = String::with_capacity(64);
    out.push_str("/v1");
    for segment in segments {
        out.push('/');
        out.extend(utf8_percent_encode(segment, SEGMENT));
    }
    out
}

/// Appends `?name=value`, or `&name=value` after the first.
pub fn query(path: &mut String, name: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.extend(utf8_percent_encode(name, SEGMENT));
    path.push('=');
    path.extend(utf8_percent_encode(value, SEGMENT));
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;
    use crate::cases::cases;

    proptest! {
        #![proptest_config(cases(1000))]

        #[test]
        fn any_id_and_any_value_stay_where_they_were_put(
            id in prop_oneof![any::<String>(), "[./%?#&= \\\\a]{0,12}"],
            name in any::<String>(),
            value in any::<String>(),
        ) {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
            let mut written = path(["devboxes", &id, "execute"]);
            let segments: Vec<_> = written.split('/').collect();
            prop_assert_eq!(segments.len(), 5);
            prop_assert_eq!(decoded(segments[3]), Ok(id));
            prop_assert!(!written.contains(['?', '#', '.', '&', '=', ' ']));
            query(&mut written, &name, &value);
            query(&mut written, "limit", "1");
            let (_, pairs) = written.split_once('?').unwrap();
            let pairs: Vec<_> = pairs.split('&').map(|pair| pair.split_once('=').unwrap()).collect();
            prop_assert_eq!(pairs.len(), 2);
            prop_assert_eq!(decoded(pairs[0].0), Ok(name));
            prop_assert_eq!(decoded(pairs[0].1), Ok(value));
        }
    }

    #[test]
    fn a_hostile_id_stays_one_segment() {
        assert_eq!(path(["devboxes", "dbx_1"]), "/v1/devboxes/dbx_1");
        assert_eq!(
            path(["devboxes", "../x?y#z/é\n"]),
            "/v1/devboxes/%2E%2E%2Fx%3Fy%23z%2F%C3%A9%0A"
        );
        assert_eq!(path(["devboxes", ".."]), "/v1/devboxes/%2E%2E");
    }

    #[test]
    fn query_pairs_are_joined_and_encoded() {
        let mut out = path(["devboxes"]);
        query(&mut out, "limit", "20");
        query(&mut out, "metadata[a.b]", "v 1&x");
        assert_eq!(out, "/v1/devboxes?limit=20&metadata%5Ba%2Eb%5D=v%201%26x");
    }
}
