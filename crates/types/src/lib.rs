//! Ids, limits, states and errors that every other crate shares. No I/O, no dependency on anything else of Heapstead.
#![forbid(unsafe_code)]

mod end;
mod engine_id;
mod execution_id;
mod heap_key;
mod json_text;
pub mod limits;
mod principal;
mod session_id;
mod session_name;

pub use end::{Failure, Stage, Status};
pub use engine_id::{EngineId, EngineMismatch, digest};
pub use execution_id::{ExecutionId, InvalidExecutionId};
pub use heap_key::{HeapKey, InvalidHeapKey};
pub use json_text::JsonMeasure;
pub use limits::{LimitError, Limits};
pub use principal::{InvalidPrincipal, Principal};
pub use session_id::{InvalidSessionId, SessionId};
pub use session_name::{InvalidSessionName, SESSION_NAME_CHARS_MAX, SessionName};
