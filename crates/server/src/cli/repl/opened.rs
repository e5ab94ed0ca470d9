//! Finds the session that the user named, or opens one.

use super::names;
use crate::cli::backend::{BackendError, Runner};
use crate::cli::heaps::text;
use heapstead_service::{EndLogical, logical_id};
use heapstead_types::SessionId;
use serde_json::Value;

/// Names are invented until one is free; with a number, the second almost always is.
const ATTEMPTS_MAX: u32 = 8;

/// A session: a logical session whose intent is its name, or any opened session by its handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// With which requests name it.
    pub handle: String,
    /// With which the user continues it: its name, or the handle if the server does not remember names.
    pub name: String,
    /// Completed turns, undone ones included.
    pub turns: u64,
    pub is_new: bool,
    /// What the user has to know if state is gone.
    pub lost: Option<String>,
}

impl OpenedSession {
    /// The session with this name or handle. A name that is not in use opens a session.
    pub async fn find(runner: &Runner, name: &str) -> Result<Self, BackendError> {
        if name.parse::<SessionId>().is_ok() || logical_id(name).is_some() {
            let turns = turns(runner, name).await?;
            return Ok(Self { handle: name.to_owned(), name: name.to_owned(), turns, is_new: false, lost: None });
        }
        let found = Self::of_intent(runner, name).await?;
        if found.name != name {
            // Otherwise every start with this name would open another session.
            runner.backend.end_session(&found.handle, EndLogical::Forget).await?;
            return Err(BackendError::NoNames { name: name.to_owned() });
        }
        Ok(found)
    }

    /// A new session, with a name that the owner does not use yet.
    pub async fn invent(runner: &Runner) -> Result<Self, BackendError> {
        let mut attempt = 0;
        loop {
            let name = names::invented(attempt);
            let opened = Self::of_intent(runner, &name).await?;
            attempt += 1;
            if opened.is_new {
                return Ok(opened);
            }
            if attempt == ATTEMPTS_MAX {
                return Err(BackendError::SessionExists { name });
            }
        }
    }

    async fn of_intent(runner: &Runner, intent: &str) -> Result<Self, BackendError> {
        let context = runner.session_context(intent).await?;
        let handle = text(&context["logical_session_id"]).to_owned();
        // Callers without credentials share an owner. The server gives them the id alone, and the same intent opens another session.
        let has_names = text(&context["logical_session_ref"]) != handle;
        let is_new = context["wave"]["mode"] == "open";
        let turns = if is_new { 0 } else { turns(runner, &handle).await? };
        let lost = loss(&context["continuity"]);
        Ok(Self { name: if has_names { intent.to_owned() } else { handle.clone() }, handle, turns, is_new, lost })
    }
}

/// What a session has lost, by the `continuity` of an answer.
pub fn loss(continuity: &Value) -> Option<String> {
    if continuity["stale_binding_recovered"] != true {
        return None;
    }
    Some(match continuity["turn"].as_u64() {
        Some(turn) => format!("the session continues from before turn {turn}, which did something else when it was repeated"),
        None => {
            format!("the state of the session is gone ({}): it starts with a fresh heap", text(&continuity["reason"]).replace('_', " "))
        }
    })
}

async fn turns(runner: &Runner, handle: &str) -> Result<u64, BackendError> {
    Ok(runner.backend.session(handle).await?["runs"].as_u64().unwrap_or_default())
}
