//! Ids, limits, states and errors that every other crate shares. No I/O and no dependency on other Heapstead crates.
#![forbid(unsafe_code)]

mod end;
mod engine_id;
mod error_code;
mod execution_id;
mod heap_key;
mod json_text;
pub mod limits;
mod principal;
mod random;
mod server_id;
mod session_id;
mod session_name;

pub use end::{Failure, Stage, Status};
pub use engine_id::{EngineId, EngineMismatch, digest};
pub use error_code::{ErrorCode, Fault};
pub use execution_id::{ExecutionId, InvalidExecutionId};
pub use heap_key::{HeapKey, InvalidHeapKey};
pub use json_text::JsonMeasure;
pub use limits::{LimitError, Limits};
pub use principal::{InvalidPrincipal, Principal};
pub use random::random_bytes;
pub use server_id::{InvalidServerId, ServerId};
pub use session_id::{InvalidSessionId, SessionId};
pub use session_name::{InvalidSessionName, SESSION_NAME_CHARS_MAX, SessionName};
