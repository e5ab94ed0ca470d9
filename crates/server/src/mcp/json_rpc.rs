//! Parses JSON-RPC messages strictly, and connects the channels of a transport to rmcp with one response per request id.

use super::batch::{self, Batch, Outgoing};
use super::response_room::{Queued, ResponseRoom};
use super::{dialect, error, initialize};
use crate::http::{self, Problem};
use bytes::Bytes;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::mpsc;

/// Queued messages per direction. A client that sends without reading is blocked.
pub const QUEUED_MAX: usize = 64;

/// Messages in one batch.
pub const BATCH_MAX: usize = QUEUED_MAX;

/// Longest request id, and longest progress token.
const LABEL_BYTES_MAX: usize = 1 << 10;
/// Values in the `_meta` of a message. They are kept while the request waits, and take more memory than their text.
const META_VALUES_MAX: usize = 256;

/// A message and its JSON.
pub struct Incoming {
    pub message: ClientJsonRpcMessage,
    pub bytes: Bytes,
}

/// A JSON-RPC error, to be sent to the client.
pub type ErrorMessage = Box<ServerJsonRpcMessage>;

/// A message or a batch from the client.
pub enum Received<M> {
    Single(M),
    /// Items that are not valid messages are errors.
    Batch(Vec<Result<M, ErrorMessage>>),
}

/// Whether a batch is allowed. Only clients of 2025-03-26 may send one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batches {
    Accepted,
    Refused,
}

/// Parses a message or a batch.
pub fn read(bytes: Bytes, batches: Batches) -> Result<Received<Incoming>, ErrorMessage> {
    http::aside(bytes.len(), || read_now(bytes, batches))
}

fn read_now(bytes: Bytes, batches: Batches) -> Result<Received<Incoming>, ErrorMessage> {
    let invalid = |text: &str| Box::new(error_message(error::invalid_request(text), None));
    if !bytes.trim_ascii_start().starts_with(b"[") {
        initialize::check_length(&bytes).map_err(|error| Box::new(error_message(error, None)))?;
        return read_one(http::json_object(&bytes).map_err(parse_error)?, bytes).map(Received::Single);
    }
    if batches == Batches::Refused {
        return Err(invalid("batches are not supported in this protocol version: send the messages one by one"));
    }
    let Value::Array(items) = http::json_value(&bytes).map_err(parse_error)? else { return Err(invalid("this is not a JSON-RPC message")) };
    match items.len() {
        0 => return Err(invalid("the batch is empty")),
        count if count > BATCH_MAX => return Err(invalid(&format!("the batch has {count} messages: at most {BATCH_MAX} are allowed"))),
        _ => {}
    }
    if items.iter().any(|item| item["method"] == "initialize") {
        return Err(invalid("`initialize` can't be part of a batch: send it separately first"));
    }
    let read_item = |item| match item {
        Value::Object(object) => {
            let bytes = serde_json::to_vec(&object).unwrap_or_default();
            read_one(object, bytes.into())
        }
        _ => Err(invalid("this is not a JSON-RPC message: it is not an object")),
    };
    Ok(Received::Batch(items.into_iter().map(read_item).collect()))
}

fn parse_error(problem: Problem) -> ErrorMessage {
    error_message(error::parse_error(problem.detail()), None).into()
}

fn read_one(mut object: Map<String, Value>, bytes: Bytes) -> Result<Incoming, ErrorMessage> {
    let bytes = match dialect::rename(&mut object) {
        true => serde_json::to_vec(&object).map(Bytes::from).unwrap_or(bytes),
        false => bytes,
    };
    if let Err(error) = check_labels(&object) {
        return Err(error_message(error, None).into());
    }
    let id = object.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if let Err(error) = initialize::check(&object) {
        return Err(error_message(error, id).into());
    }
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Ok(Incoming { message, bytes }),
        Err(error) => Err(error_message(error::invalid_request(format!("this is not a JSON-RPC message: {error}")), id).into()),
    }
}

/// Bounds what is repeated in responses and notifications, or kept as long as a request lasts.
fn check_labels(message: &Map<String, Value>) -> Result<(), ErrorData> {
    let meta = message.get("params").and_then(|params| params.get("_meta"));
    for (name, label) in [("id", message.get("id")), ("progressToken", meta.and_then(|meta| meta.get("progressToken")))] {
        if let Some(bytes) = label.and_then(Value::as_str).map(str::len).filter(|bytes| *bytes > LABEL_BYTES_MAX) {
            return Err(error::invalid_request(format!("`{name}` has {bytes} bytes: at most {LABEL_BYTES_MAX} are allowed")));
        }
    }
    match meta.map_or(0, count_values) {
        count if count > META_VALUES_MAX => {
            Err(error::invalid_request(format!("`_meta` has {count} values: at most {META_VALUES_MAX} are allowed")))
        }
        _ => Ok(()),
    }
}

/// The nesting of a parsed message is bounded.
fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(members) => members.values().map(count_values).sum(),
        _ => 0,
    }
}

impl Received<Incoming> {
    pub fn messages(self) -> Received<ClientJsonRpcMessage> {
        match self {
            Self::Single(incoming) => Received::Single(incoming.message),
            Self::Batch(items) => Received::Batch(items.into_iter().map(|item| item.map(|incoming| incoming.message)).collect()),
        }
    }
}

/// The error for a request with the id of a pending one. It has no id, because the client would take it for the response to the first.
pub fn duplicate_id(id: &RequestId) -> ServerJsonRpcMessage {
    error_message(error::invalid_request(format!("the request id {id} is in use by a pending request: ids must be unique")), None)
}

pub fn error_message(error: ErrorData, id: Option<RequestId>) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(error, id)
}

/// A transport for rmcp over two channels, for stdio and SSE.
pub struct ChannelTransport {
    incoming: mpsc::Receiver<Received<ClientJsonRpcMessage>>,
    outgoing: mpsc::Sender<Queued>,
    /// Where long responses count until they are sent. None if the only client is the one that started the server.
    room: Option<ResponseRoom>,
    version: Arc<Version>,
    pending: HashSet<RequestId>,
    /// Messages of a batch that rmcp has not received yet.
    unread: VecDeque<ClientJsonRpcMessage>,
    batches: Vec<Batch>,
}

/// The negotiated protocol version, as far as the reader of a connection needs it.
#[derive(Debug, Default)]
pub struct Version {
    has_batches: AtomicBool,
}

impl Version {
    pub fn batches(&self) -> Batches {
        if self.has_batches.load(Relaxed) { Batches::Accepted } else { Batches::Refused }
    }

    fn set(&self, version: &ProtocolVersion) {
        self.has_batches.store(has_batches(version), Relaxed);
    }
}

/// Only 2025-03-26 requires servers to accept batches. 2025-06-18 removed them.
pub fn has_batches(version: &ProtocolVersion) -> bool {
    *version == ProtocolVersion::V_2025_03_26
}

/// The client has disconnected.
#[derive(Debug, thiserror::Error)]
#[error("the client has disconnected")]
pub struct Disconnected;

impl ChannelTransport {
    pub fn new(incoming: mpsc::Receiver<Received<ClientJsonRpcMessage>>, outgoing: mpsc::Sender<Queued>, version: Arc<Version>) -> Self {
        Self { incoming, outgoing, room: None, version, pending: HashSet::new(), unread: VecDeque::new(), batches: Vec::new() }
    }

    /// Counts long responses: a client that does not read its stream gets errors instead.
    pub fn with_room(self, room: ResponseRoom) -> Self {
        Self { room: Some(room), ..self }
    }

    fn queued(&mut self, message: Outgoing) -> Queued {
        let rooms = self.room.as_mut().map(|room| room.rooms_of(&message)).unwrap_or_default();
        Queued::new(message, rooms)
    }

    /// Queues the messages of a batch. Its invalid items are answered together with the others.
    fn open_batch(&mut self, items: Vec<Result<ClientJsonRpcMessage, ErrorMessage>>) {
        let mut batch = Batch::default();
        for item in items {
            match item {
                Ok(JsonRpcMessage::Request(request)) if !self.pending.insert(request.id.clone()) => {
                    batch.responses.push(duplicate_id(&request.id));
                }
                Ok(message) => {
                    if let JsonRpcMessage::Request(request) = &message {
                        batch.unanswered.insert(request.id.clone());
                    }
                    self.unread.push_back(message);
                }
                Err(error) => batch.responses.push(*error),
            }
        }
        self.batches.push(batch);
    }

    /// Cancellation-safe: responses are removed only after a slot is reserved.
    async fn send_complete_batches(&mut self) {
        while batch::is_any_complete(&mut self.batches) {
            let outgoing = self.outgoing.clone();
            let Ok(place) = outgoing.reserve().await else { return };
            if let Some(responses) = batch::take_complete(&mut self.batches) {
                place.send(self.queued(Outgoing::Batch(responses)));
            }
        }
    }
}

impl Transport<RoleServer> for ChannelTransport {
    type Error = Disconnected;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Disconnected>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => {
                if let Some(version) = dialect::negotiated_version(&response.result) {
                    self.version.set(&version);
                }
                Some(&response.id)
            }
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = id {
            self.pending.remove(id);
        }
        let message = match &mut self.room {
            Some(room) => room.admit(message),
            None => message,
        };
        let answer = match batch::add(&mut self.batches, message) {
            Some(message) => Some(Outgoing::Single(message.into())),
            None if batch::is_any_complete(&mut self.batches) => batch::take_complete(&mut self.batches).map(Outgoing::Batch),
            None => None,
        };
        let answer = answer.map(|answer| self.queued(answer));
        let outgoing = self.outgoing.clone();
        async move {
            match answer {
                Some(answer) => outgoing.send(answer).await.map_err(|_| Disconnected),
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.send_complete_batches().await;
            let message = match self.unread.pop_front() {
                Some(message) => message,
                None => match self.incoming.recv().await? {
                    Received::Batch(items) => {
                        self.open_batch(items);
                        continue;
                    }
                    Received::Single(JsonRpcMessage::Request(request)) if !self.pending.insert(request.id.clone()) => {
                        let _ = self.outgoing.send(Queued::new(Outgoing::Single(duplicate_id(&request.id).into()), Vec::new())).await;
                        continue;
                    }
                    Received::Single(message) => message,
                },
            };
            // A cancelled request is not answered.
            if let JsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                && let Some(id) = &cancelled.params.request_id
            {
                self.pending.remove(id);
                batch::remove(&mut self.batches, id);
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Disconnected> {
        self.incoming.close();
        Ok(())
    }
}
