//! Emits what a Node addon needs from the linker; nothing without the `node` feature.

fn main() {
    #[cfg(feature = "node")]
    napi_build::setup();
}
