//! Events, topics and scopes.

use crate::Caller;
use heapstead_types::{ExecutionId, SessionId};
use serde_json::Value;

/// Subscribers of one scope receive the same events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    Session(SessionId),
    /// A connection, by its id, for events outside of sessions.
    Connection(String),
    /// One request that subscribes.
    Request(u64),
}

impl Scope {
    /// The scope of a caller's subscriptions and log level: the session that its request has entered, else its connection.
    pub fn of(caller: &Caller) -> Option<Self> {
        let connection = || caller.connection.as_ref().map(|connection| Self::Connection(connection.id.clone()));
        caller.entered_id().map(Self::Session).or_else(connection)
    }
}

/// What can be subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    Execution(ExecutionId),
    Output(ExecutionId),
    Head(SessionId),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Updated(Topic),
    Log {
        level: Level,
        execution: ExecutionId,
        text: String,
    },
    /// Progress of a call, and the connection that it was made on, which receives it directly.
    Progress {
        token: Value,
        secs: f64,
        message: String,
        connection: Option<String>,
    },
}

/// Most characters of an error or warning in an event; the record has all of it.
const TEXT_CHARS_MAX: usize = 16_000;

impl Event {
    pub fn log(level: Level, execution: ExecutionId, text: &str) -> Self {
        Self::Log { level, execution, text: text.chars().take(TEXT_CHARS_MAX).collect() }
    }

    /// Its size in memory.
    pub fn bytes(&self) -> usize {
        let text = match self {
            Self::Updated(_) => 0,
            Self::Log { text, .. } => text.len(),
            // A token is a number or a short text.
            Self::Progress { token, message, .. } => message.len() + token.as_str().map_or(0, str::len),
        };
        size_of::<Self>() + text
    }
}

/// Level of a log message, as in syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    Debug,
    #[default]
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}
