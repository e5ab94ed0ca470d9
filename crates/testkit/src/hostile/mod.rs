//! The hostile suite: runs each case of `tests/hostile/NNN_name/{main.js|main.ts, expect.toml}` in several ways, and checks for side effects.
//!
//! ```text
//! suite (libtest-mimic: a test per case and way) ─► trial process (in place of the server) ─► trial: run, compare, check for leaks
//! ```

mod case;
mod expected;
mod suite;
mod trial;
mod trial_process;

pub use case::{Case, Form, Mode, OUTPUT_BYTES_MAX};
pub use expected::Expected;
pub use suite::main;
