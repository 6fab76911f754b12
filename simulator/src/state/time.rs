//! Epoch milliseconds as text.

/// RFC 3339 in UTC, with milliseconds.
pub(crate) fn rfc3339(epoch_ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (year, month, day) = civil_date(epoch_ms.div_euclid(DAY_MS));
    let in_day = epoch_ms.rem_euclid(DAY_MS);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        in_day / 3_600_000,
        in_day / 60_000 % 60,
        in_day / 1000 % 60,
        in_day % 1000,
    )
}

/// Year, month and day of a day count since 1970-01-01, in the proleptic
/// Gregorian calendar: years start in March, so that the leap day comes last.
fn civil_date(days_since_epoch: i64) -> (i64, i64, i64) {
    let shifted = days_since_epoch + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn days_around_leap_days_are_named_right() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_772_323_199_999), "2026-02-28T23:59:59.999Z");
        assert_eq!(rfc3339(1_772_323_200_000), "2026-03-01T00:00:00.000Z");
    }
}
