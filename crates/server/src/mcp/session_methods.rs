//! `sessions/create`, `sessions/delete`, `sessions/list` and `sessions/resume`.

use super::error::{self, from_service};
use super::session_metadata::{Era, session_id};
use heapstead_service::{Caller, EndLogical, EnteredSession, Service, ServiceError};
use heapstead_store::records::OpenedSession;
use rmcp::ErrorData;
use rmcp::model::CustomResult;
use serde_json::{Value, json};

/// Sessions on a page of the list.
const PAGE_MAX: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Create,
    Delete,
    List,
    Resume,
}

/// When a request refreshes the TTL of the session that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// When it enters the session.
    Now,
    /// When the run that it starts is accepted.
    ByRun,
}

impl Method {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "sessions/create" => Some(Self::Create),
            "sessions/delete" => Some(Self::Delete),
            "sessions/list" => Some(Self::List),
            "sessions/resume" => Some(Self::Resume),
            _ => None,
        }
    }
}

pub async fn create(service: &Service, caller: &Caller) -> Result<CustomResult, ErrorData> {
    let session = service.sessions().open(caller).await.map_err(from_service)?;
    session_result(service, &session).await
}

/// Deletes the session of the request.
pub async fn delete(service: &Service, caller: &Caller, era: Era) -> Result<CustomResult, ErrorData> {
    let id = caller.entered_id().ok_or_else(|| era.required())?.to_string();
    match service.sessions().end(caller, &id, EndLogical::ClearState).await {
        Ok(()) => Ok(CustomResult::new(json!({}))),
        // Another request deleted it first.
        Err(ServiceError::NotFound { .. }) => Err(era.not_found(&id)),
        Err(error) => Err(from_service(error)),
    }
}

pub async fn list(service: &Service, caller: &Caller, params: &Value) -> Result<CustomResult, ErrorData> {
    let cursor = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor.as_str()),
        Some(_) => return Err(error::invalid_params("`cursor` is not a string")),
    };
    let page = service.sessions().list_opened(caller, cursor, Some(PAGE_MAX)).await.map_err(from_service)?;
    let sessions: Vec<_> = page
        .sessions
        .into_iter()
        .map(|session| {
            let mut shown = json!({ "sessionId": session.session_id, "createdAt": session.created_at, "lastUsedAt": session.last_used_at });
            if let Some(expires_at) = session.expires_at {
                shown["expiresAt"] = expires_at.into();
            }
            shown
        })
        .collect();
    Ok(CustomResult::new(match page.next_cursor {
        Some(cursor) => json!({ "sessions": sessions, "nextCursor": cursor }),
        None => json!({ "sessions": sessions }),
    }))
}

pub async fn resume(service: &Service, caller: &Caller, params: &Value, era: Era) -> Result<CustomResult, ErrorData> {
    let id = params.get("sessionId").ok_or_else(|| error::invalid_params("`sessionId` is missing"))?;
    let id = session_id(id).map_err(|why| error::invalid_params(format!("`sessionId` {why}")))?;
    let entered = find(service, caller, &id, era, Refresh::Now).await?;
    session_result(service, entered.session()).await
}

/// Looks up a session of this caller.
pub async fn find(service: &Service, caller: &Caller, id: &str, era: Era, refresh: Refresh) -> Result<EnteredSession, ErrorData> {
    let (sessions, parsed) = (service.sessions(), id.parse().map_err(|_| era.not_found(id))?);
    let entered = match refresh {
        Refresh::Now => sessions.enter(caller, parsed).await,
        Refresh::ByRun => sessions.enter_for_run(caller, parsed).await,
    };
    entered.map_err(|error| match error {
        ServiceError::NotFound { .. } => era.not_found(id),
        error => from_service(error),
    })
}

/// The metadata that the client sends with its next request.
pub async fn metadata(service: &Service, session: &OpenedSession) -> Result<Value, ServiceError> {
    let mut metadata = json!({ "sessionId": session.id, "state": service.sessions().seal_state(session).await? });
    if let Some(expires_at) = session.expires_at {
        metadata["expiresAt"] = heapstead_service::iso_8601(expires_at).into();
    }
    Ok(metadata)
}

async fn session_result(service: &Service, session: &OpenedSession) -> Result<CustomResult, ErrorData> {
    Ok(CustomResult::new(json!({ "session": metadata(service, session).await.map_err(from_service)? })))
}
