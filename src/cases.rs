//! How many inputs a generated test tries. For tests only.

use proptest::prelude::ProptestConfig;

/// `count` in `make test`; TEST_SCALE multiplies it, PROPTEST_CASES replaces it.
///
/// An input that failed is kept below `proptest-regressions/` and tried first.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let number = |name| std::env::var(name).ok()?.parse::<f64>().ok();
    let scaled = f64::from(count) * number("TEST_SCALE").unwrap_or(1.0);
    // `as` saturates, and nobody waits for more than that.
    let cases = number("PROPTEST_CASES").unwrap_or(scaled).ceil().max(1.0) as u32;
    ProptestConfig {
        cases,
        // A local rejection is no sign of a bad strategy in a run of millions.
        max_local_rejects: cases.saturating_mul(10).max(65_536),
        ..ProptestConfig::default()
    }
}
