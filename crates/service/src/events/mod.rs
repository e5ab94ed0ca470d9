//! Events: subscriptions of clients, and followers that publish what happens to executions and sessions.
//!
//! ```text
//! hub/              bounded event buffers per scope, and their subscribers
//! subscriptions.rs  who may subscribe to what
//! followers.rs      tasks that watch executions and heads, and publish changes
//! ```

pub(crate) mod followers;
mod hub;
mod subscriptions;

pub use followers::end_message;
pub use hub::{Delivery, EVENT_BYTES_MAX, Event, Level, Position, Scope, Subscriber, TOPICS_BYTES_MAX, Topic};

pub(crate) use hub::Hub;

use crate::Stores;

/// Operations on subscriptions.
pub struct Events<'a>(pub(crate) &'a Stores);
