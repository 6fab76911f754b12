//! The `runloop-simulator` binary.

fn main() {}
