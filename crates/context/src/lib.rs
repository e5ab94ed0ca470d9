//! Conversation contexts for MCP servers in Rust: records per session what has been called, fetched and searched.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod access;
pub mod check;
mod clock;
mod contexts;
mod document;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod history;
mod json_size;
pub mod limits;
mod migration;
mod parsed;
mod preferences;
mod record;
mod recorder;
mod session_id;
mod session_locks;
pub mod store;
mod summariser;
mod summary;
pub mod text;
mod timestamp;
mod weight;
pub mod window;
mod wrap;

pub use access::Access;
pub use check::ResourceCheck;
pub use clock::{Clock, ManualClock, SystemClock};
pub use contexts::{Contexts, Counts};
pub use document::Document;
pub use error::{Error, Refused, StoreError, Unreadable};
pub use health::{StoreHealth, Upkeep};
pub use history::{NewResource, query_hash};
pub use record::{OutputFormat, Preferences, Record, Resource, ResourceType, SCHEMA_VERSION, Search, ToolCall};
pub use recorder::{CONTEXT_TOOLS, Outcome, Recorder, RecorderCounts, ToolEnd};
pub use session_id::{InvalidSessionId, NoRandomness, SessionId};
pub use store::ContextStore;
pub use summariser::{Summariser, Telling};
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use wrap::{Audited, Encrypted, InvalidKeyFile, Keyring, Meter, Metered, Metrics};
