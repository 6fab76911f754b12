//! The sizes of a Devbox, and the smallest that covers a minimum.

use crate::error::{Error, Result};

/// A size that Runloop offers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// The provider's name of it.
    pub name: &'static str,
    /// Virtual CPUs.
    pub vcpus: f64,
    /// Memory in MiB.
    pub memory_mib: u32,
}

impl Size {
    /// Whether it must be sent as numbers instead of by name.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.name == CUSTOM
    }
}

const CUSTOM: &str = "CUSTOM_SIZE";

const fn size(name: &'static str, vcpus: f64, memory_gib: u32) -> Size {
    Size {
        name,
        vcpus,
        memory_mib: memory_gib * 1024,
    }
}

/// Ordered so that the first that covers a minimum is the smallest.
/// Certain: the table stands in the official TypeScript client.
const SIZES: [Size; 8] = [
    size("X_SMALL", 0.5, 1),
    size("SMALL", 1.0, 2),
    size("MEDIUM", 2.0, 4),
    size("LARGE", 2.0, 8),
    size("X_LARGE", 4.0, 16),
    size("XX_LARGE", 8.0, 32),
    size(CUSTOM, 16.0, 32),
    size(CUSTOM, 16.0, 64),
];

/// The smallest size with at least this; `None` when neither is asked for.
///
/// # Errors
/// `UNSUPPORTED` above 16 vCPU or 64 GiB.
pub(super) fn smallest(vcpus: Option<f64>, memory_mib: Option<f64>) -> Result<Option<Size>> {
    if vcpus.is_none() && memory_mib.is_none() {
        return Ok(None);
    }
    let (least_vcpus, least_memory) = (vcpus.unwrap_or(0.0), memory_mib.unwrap_or(0.0));
    let covers =
        |size: &&Size| size.vcpus >= least_vcpus && f64::from(size.memory_mib) >= least_memory;
    if let Some(size) = SIZES.iter().find(covers) {
        return Ok(Some(*size));
    }
    let feature = if least_vcpus > 16.0 {
        "resources.vcpus"
    } else {
        "resources.memoryMiB"
    };
    Err(Error::unsupported(
        feature,
        "Runloop's largest Devbox has 16 vCPU and 65536 MiB",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn of(
        vcpus: impl Into<Option<f64>>,
        memory: impl Into<Option<f64>>,
    ) -> (&'static str, f64, u32) {
        let size = smallest(vcpus.into(), memory.into()).unwrap().unwrap();
        (size.name, size.vcpus, size.memory_mib / 1024)
    }

    #[test]
    fn r8_the_smallest_size_that_covers_both_minima_is_taken() {
        assert_eq!(of(0.5, 1024.0), ("X_SMALL", 0.5, 1));
        assert_eq!(of(0.1, 1.0), ("X_SMALL", 0.5, 1));
        assert_eq!(of(0.6, 1024.0), ("SMALL", 1.0, 2));
        assert_eq!(of(1.0, 4096.0), ("MEDIUM", 2.0, 4));
        assert_eq!(of(2.0, 4097.0), ("LARGE", 2.0, 8));
        assert_eq!(of(3.0, 1.0), ("X_LARGE", 4.0, 16));
        assert_eq!(of(8.0, 32768.0), ("XX_LARGE", 8.0, 32));
        assert_eq!(of(8.5, 1.0), ("CUSTOM_SIZE", 16.0, 32));
        assert_eq!(of(8.0, 32769.0), ("CUSTOM_SIZE", 16.0, 64));
        assert_eq!(of(0.5, 65536.0), ("CUSTOM_SIZE", 16.0, 64));
    }

    #[test]
    fn r8_either_minimum_may_be_left_out_and_neither_means_the_default() {
        assert_eq!(of(4.0, None), ("X_LARGE", 4.0, 16));
        assert_eq!(of(None, 8192.0), ("LARGE", 2.0, 8));
        assert_eq!(smallest(None, None).unwrap(), None);
    }

    #[test]
    fn r8_more_than_the_largest_size_is_unsupported_and_names_the_field() {
        for (vcpus, memory, feature) in [
            (Some(16.5), None, "resources.vcpus"),
            (None, Some(65537.0), "resources.memoryMiB"),
            (Some(17.0), Some(1.0), "resources.vcpus"),
        ] {
            let error = smallest(vcpus, memory).unwrap_err();
            assert_eq!(
                (error.code(), error.feature()),
                (Code::Unsupported, Some(feature))
            );
        }
    }
}
