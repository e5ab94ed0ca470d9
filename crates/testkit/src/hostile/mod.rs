//! The hostile suite: `tests/hostile/NNN_name/{main.js|main.ts, expect.toml}`, each case run in several ways, with everything around it watched.
//!
//! ```text
//! suite (libtest-mimic: a test per case and way) ─► lane process (stands where the server will) ─► trial: run, compare, look around
//! ```

mod case;
mod expected;
mod lane;
mod suite;
mod trial;

pub use case::{Case, Form, Mode, OUTPUT_BYTES_MAX};
pub use expected::Expected;
pub use suite::main;
