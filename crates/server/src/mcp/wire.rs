//! Messages between bytes and rmcp: read strictly, and each id answered once.

use super::dialect;
use crate::http;
use bytes::Bytes;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::HashSet;
use std::future::Future;
use tokio::sync::mpsc;

/// Messages on their way in one direction. A client that sends faster than it reads waits for itself.
pub const QUEUED_MAX: usize = 64;

/// A message, and the bytes that rmcp reads as that message.
pub struct Incoming {
    pub message: ClientJsonRpcMessage,
    pub bytes: Bytes,
}

/// The message that a text is, or what JSON-RPC says when it is none.
pub fn read(bytes: Bytes) -> Result<Incoming, Box<ServerJsonRpcMessage>> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(refusal(ErrorData::invalid_request("several messages at once are not taken: send them one by one", None), None).into());
    }
    let mut object =
        http::json_object(&bytes).map_err(|problem| Box::new(refusal(ErrorData::parse_error(problem.detail().to_owned(), None), None)))?;
    let bytes = match dialect::rename(&mut object) {
        true => serde_json::to_vec(&object).map(Bytes::from).unwrap_or(bytes),
        false => bytes,
    };
    let id = object.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Ok(Incoming { message, bytes }),
        Err(error) => Err(refusal(ErrorData::invalid_request(format!("this is not a JSON-RPC message: {error}"), None), id).into()),
    }
}

/// What is said of a second request with the id of one that is not answered yet. It bears no id: that one belongs to the first.
pub fn already_asked(id: &RequestId) -> ServerJsonRpcMessage {
    refusal(ErrorData::invalid_request(format!("the request {id} is not answered yet: ids must differ"), None), None)
}

pub fn refusal(error: ErrorData, id: Option<RequestId>) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(error, id)
}

/// A connection that stays: what was read comes in on one channel, what is to be written goes out on another.
pub struct Connection {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<ServerJsonRpcMessage>,
    unanswered: HashSet<RequestId>,
}

/// The other end is gone.
#[derive(Debug, thiserror::Error)]
#[error("the client is gone")]
pub struct Gone;

impl Connection {
    pub fn new(incoming: mpsc::Receiver<ClientJsonRpcMessage>, outgoing: mpsc::Sender<ServerJsonRpcMessage>) -> Self {
        Self { incoming, outgoing, unanswered: HashSet::new() }
    }
}

impl Transport<RoleServer> for Connection {
    type Error = Gone;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => self.unanswered.remove(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().is_some_and(|id| self.unanswered.remove(id)),
            _ => false,
        };
        let outgoing = self.outgoing.clone();
        async move { outgoing.send(message).await.map_err(|_| Gone) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.incoming.recv().await?;
            match &message {
                JsonRpcMessage::Request(request) if !self.unanswered.insert(request.id.clone()) => {
                    let _ = self.outgoing.send(already_asked(&request.id)).await;
                }
                JsonRpcMessage::Notification(notification) => {
                    // What is cancelled is never answered.
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.unanswered.remove(id);
                    }
                    return Some(message);
                }
                _ => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.incoming.close();
        Ok(())
    }
}
