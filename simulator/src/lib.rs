//! A local Runloop API v1 with real processes behind it.
