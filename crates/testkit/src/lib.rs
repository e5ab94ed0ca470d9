//! Support for tests: an engine with a canary heap, information on processes from `/proc`, and the runner of the hostile suite.
#![forbid(unsafe_code)]

mod fixture;
pub mod hostile;
mod memory;
mod process;
mod resource_state;

pub use fixture::{Fixture, FixtureError, ObservedRun, Run};
pub use memory::{MemoryWatch, private_bytes_max};
pub use process::Process;
pub use resource_state::ResourceState;
