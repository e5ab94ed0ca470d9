//! What tests stand on: an engine with a canary beside it, processes seen through `/proc`, and the runner of the hostile suite.
#![forbid(unsafe_code)]

mod fixture;
pub mod hostile;
mod memory;
mod process;
mod surroundings;

pub use fixture::{Fixture, FixtureError, Run, Seen};
pub use memory::{MemoryWatch, private_bytes_max};
pub use process::Process;
pub use surroundings::Surroundings;
