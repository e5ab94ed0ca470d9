//! Runs every case of `tests/hostile`. See the README there.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    heapstead_testkit::hostile::main(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile"))
}
