//! Ids, limits, states and errors that every other crate shares. No I/O, no dependency on anything else of Heapstead.
#![forbid(unsafe_code)]

mod end;
mod engine_id;
mod execution_id;
mod heap_key;
pub mod limits;
mod record;

pub use end::{Failure, Stage, Status};
pub use engine_id::{EngineId, EngineMismatch, digest};
pub use execution_id::ExecutionId;
pub use heap_key::{HeapKey, InvalidHeapKey};
pub use limits::{LimitError, Limits};
pub use record::ExecutionRecord;
