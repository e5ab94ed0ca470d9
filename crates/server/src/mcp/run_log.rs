//! Log messages of the run that a request of 2026-07-28 began or waited for. They leave before its answer, on the stream of that answer, and only
//! where the request itself asks for them.

use super::listen;
use super::session_meta::Era;
use crate::api::{Arguments, Operation};
use heapstead_service::{Caller, Event, Level, Service, end_message};
use heapstead_types::{ExecutionId, SessionId, Status};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};

pub struct RunLog {
    peer: Peer<RoleServer>,
    level_min: Level,
    entered: Option<SessionId>,
}

impl RunLog {
    /// None where the request asks for no log messages, or can see no run end.
    pub fn asked_for(
        context: &RequestContext<RoleServer>,
        service: &Service,
        caller: &Caller,
        operation: &Operation,
        arguments: &Arguments,
    ) -> Option<Self> {
        let level_min = context.meta.log_level().filter(|_| Era::of(context) == Era::Modern).map(listen::level)?;
        // The end of an execution that ended before was logged to the caller that waited then.
        let is_running = |id: &str| service.executions().running(caller, id).is_some();
        let follows = operation.follows_execution && arguments.get("execution_id").and_then(Value::as_str).is_some_and(is_running);
        (operation.runs_code || follows).then(|| Self { peer: context.peer.clone(), level_min, entered: caller.entered_id() })
    }

    /// Sends what the record in an answer has to tell: warnings, and the end if it has come.
    pub async fn tell(&self, record: &Value) {
        let Some(execution) = record["execution_id"].as_str().and_then(|id| id.parse::<ExecutionId>().ok()) else { return };
        let warnings = record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut messages: Vec<_> = warnings.map(|warning| (Level::Warning, warning.to_owned())).collect();
        let status = record["status"].as_str().and_then(Status::from_name);
        messages.extend(status.filter(|status| status.is_terminal()).map(|status| end_message(status, record["error"].as_str())));
        for (level, text) in messages.into_iter().filter(|(level, _)| *level >= self.level_min) {
            let (method, mut params) = listen::told(Event::log(level, execution.clone(), &text));
            if let Some(session) = self.entered {
                params["_meta"] = json!({ Era::Modern.key(): { "sessionId": session } });
            }
            // A client that has left misses nothing that the record does not have.
            let _ = listen::notify(&self.peer, (method, params)).await;
        }
    }
}
