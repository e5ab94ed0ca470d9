//! Conversation contexts: what a conversation has done, recorded call by call, and the tools that read and change it.

mod recording;
mod store;
mod tools;

pub use recording::CallRecording;
pub use store::{ContextPlace, ContextSettings, ContextStoreError, OpenContexts};
pub use tools::{CheckRequest, Cleared, NewFinding, ShownContext};

pub(crate) use recording::{Call, Conversations};
pub(crate) use store::bytes_in;

use crate::Stores;

/// Operations on conversation contexts.
pub struct Contexts<'a>(pub(crate) &'a Stores);
