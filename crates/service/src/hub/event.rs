//! What happens, and what changes can be asked for.

use heapstead_types::{ExecutionId, SessionId};
use serde_json::Value;

/// Listeners of one scope are told the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    Session(SessionId),
    /// What belongs to no session: a connection, by its id.
    Connection(String),
    /// One request that listens.
    Request(u64),
}

/// What changes can be asked for.
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
    /// Of a call that asked for it, and the connection that it asked on, where that is told already.
    Progress {
        token: Value,
        secs: f64,
        message: String,
        connection: Option<String>,
    },
}

/// What of an error or a warning is told; the record has it all.
const TEXT_CHARS_MAX: usize = 16_000;

impl Event {
    pub fn log(level: Level, execution: ExecutionId, text: &str) -> Self {
        Self::Log { level, execution, text: text.chars().take(TEXT_CHARS_MAX).collect() }
    }

    /// What it takes up.
    pub fn bytes(&self) -> usize {
        let text = match self {
            Self::Updated(_) => 0,
            Self::Log { text, .. } => text.len(),
            Self::Progress { message, .. } => message.len(),
        };
        size_of::<Self>() + text
    }
}

/// How much a log message matters; the names are those of syslog.
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
