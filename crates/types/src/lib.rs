//! Ids, limits, statuses and errors that all other crates share. No I/O and no dependency on other Heapstead crates.
#![forbid(unsafe_code)]

mod budget_holder;
mod engine_id;
mod error_code;
mod execution_id;
mod failure;
mod heap_key;
mod hex_text;
mod json_text;
mod kept_result;
pub mod limits;
mod permission;
mod principal;
mod random;
mod server_id;
mod session_id;
mod session_name;
mod shared_text;
mod status;

pub use budget_holder::BudgetHolder;
pub use engine_id::{EngineId, EngineMismatch, digest};
pub use error_code::{ErrorCode, Fault};
pub use execution_id::{ExecutionId, InvalidExecutionId};
pub use failure::{Failure, Stage};
pub use heap_key::{HeapKey, InvalidHeapKey};
pub use hex_text::is_lowercase_hex;
pub use json_text::JsonMeasure;
pub use kept_result::{KEEP_RESULT, without_keep_result};
pub use limits::{LimitError, LimitMaxima, Limits};
pub use permission::{InvalidPermission, Permission, Permissions};
pub use principal::{InvalidPrincipal, Principal};
pub use random::random_bytes;
pub use server_id::{InvalidServerId, ServerId};
pub use session_id::{InvalidSessionId, SessionId};
pub use session_name::{InvalidSessionName, SESSION_NAME_CHARS_MAX, SessionName};
pub use shared_text::SharedText;
pub use status::Status;
