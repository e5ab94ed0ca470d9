//! The executable of libFuzzer. `cargo fuzz` builds one for each target, with the target's name; `fuzz/run` builds one for all of them,
//! `heapstead-fuzz`, which takes the name from the environment variable `FUZZ_TARGET`.
#![no_main]

use heapstead_fuzz::{Target, target};
use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let named = || target(&std::env::var("FUZZ_TARGET").ok()?);
    target(env!("CARGO_BIN_NAME")).or_else(named).expect("FUZZ_TARGET is the name of a target")
});

fuzz_target!(|bytes: &[u8]| -> Corpus { TARGET(bytes) });
