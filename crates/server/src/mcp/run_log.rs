//! Log messages of the run that a request of 2026-07-28 started or waited for. They are sent on the response stream before the result, if the
//! request has a log level.

use super::listen;
use super::session_metadata::Era;
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
    /// `None` if the request has no log level, or neither starts nor follows a running execution.
    pub fn requested(
        context: &RequestContext<RoleServer>,
        service: &Service,
        caller: &Caller,
        operation: &Operation,
        arguments: &Arguments,
    ) -> Option<Self> {
        let level_min = context.meta.log_level().filter(|_| Era::of(context) == Era::Modern).map(listen::level)?;
        // The end of an execution is logged once, to the request that waited for it.
        let is_running = |id: &str| service.executions().running(caller, id).is_some();
        let follows = operation.follows_execution && arguments.get("execution_id").and_then(Value::as_str).is_some_and(is_running);
        (operation.runs_code || follows).then(|| Self { peer: context.peer.clone(), level_min, entered: caller.entered_id() })
    }

    /// Sends the warnings of a record and, if the execution has ended, its final status.
    pub async fn send(&self, record: &Value) {
        let Some(execution) = record["execution_id"].as_str().and_then(|id| id.parse::<ExecutionId>().ok()) else { return };
        let warnings = record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut messages: Vec<_> = warnings.map(|warning| (Level::Warning, warning.to_owned())).collect();
        let status = record["status"].as_str().and_then(Status::from_name);
        messages.extend(status.filter(|status| status.is_terminal()).map(|status| end_message(status, record["error"].as_str())));
        for (level, text) in messages.into_iter().filter(|(level, _)| *level >= self.level_min) {
            let (method, mut params) = listen::notification(Event::log(level, execution.clone(), &text));
            if let Some(session) = self.entered {
                params["_meta"] = json!({ Era::Modern.key(): { "sessionId": session } });
            }
            // An error means that the client has disconnected. The record has the same information.
            let _ = listen::notify(&self.peer, (method, params)).await;
        }
    }
}
