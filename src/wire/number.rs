//! Numbers as the service reads them.

use serde::Serializer;

/// Writes a whole number without a fraction: the service declares integers,
/// and need not take `900.0` for one. Reading stays lenient.
pub(super) fn write<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        None => serializer.serialize_none(),
        // Exact: below 2^53 every whole number is the same in both types.
        Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            serializer.serialize_i64(*number as i64)
        }
        Some(number) => serializer.serialize_f64(*number),
    }
}
