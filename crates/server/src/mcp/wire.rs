//! Messages between bytes and rmcp: read strictly, and each id answered once.

use super::batch::{self, Answer, Batch};
use super::{dialect, error, introduction};
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

/// Messages on their way in one direction. A client that sends faster than it reads waits for itself.
pub const QUEUED_MAX: usize = 64;

/// Messages in one batch: as many as may wait on a connection.
const BATCH_MAX: usize = QUEUED_MAX;

/// A message, and the bytes that rmcp reads as that message.
pub struct Incoming {
    pub message: ClientJsonRpcMessage,
    pub bytes: Bytes,
}

pub type Refusal = Box<ServerJsonRpcMessage>;

/// What a client says at once.
pub enum Said<M> {
    One(M),
    /// A batch: what is no message is refused by itself.
    Several(Vec<Result<M, Refusal>>),
}

/// Whether a text may be a batch, which only clients of 2025-03-26 may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batches {
    Taken,
    Refused,
}

/// The message or messages that a text is, or what JSON-RPC says when it is none.
pub fn read(bytes: Bytes, batches: Batches) -> Result<Said<Incoming>, Refusal> {
    let invalid = |text: &str| Box::new(refusal(error::invalid_request(text), None));
    if !bytes.trim_ascii_start().starts_with(b"[") {
        return read_one(http::json_object(&bytes).map_err(unparsed)?, bytes).map(Said::One);
    }
    if batches == Batches::Refused {
        return Err(invalid("several messages at once are not taken: send them one by one"));
    }
    let Value::Array(items) = http::json_value(&bytes).map_err(unparsed)? else { return Err(invalid("this is not a JSON-RPC message")) };
    match items.len() {
        0 => return Err(invalid("the batch is empty")),
        count if count > BATCH_MAX => return Err(invalid(&format!("the batch has {count} messages: at most {BATCH_MAX} are allowed"))),
        _ => {}
    }
    if items.iter().any(|item| item["method"] == "initialize") {
        return Err(invalid("`initialize` can't be part of a batch: send it by itself first"));
    }
    let read_item = |item| match item {
        Value::Object(object) => {
            let bytes = serde_json::to_vec(&object).unwrap_or_default();
            read_one(object, bytes.into())
        }
        _ => Err(invalid("this is not a JSON-RPC message: it is not an object")),
    };
    Ok(Said::Several(items.into_iter().map(read_item).collect()))
}

fn unparsed(problem: Problem) -> Refusal {
    refusal(error::parse_error(problem.detail()), None).into()
}

fn read_one(mut object: Map<String, Value>, bytes: Bytes) -> Result<Incoming, Refusal> {
    let bytes = match dialect::rename(&mut object) {
        true => serde_json::to_vec(&object).map(Bytes::from).unwrap_or(bytes),
        false => bytes,
    };
    let id = object.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if let Err(error) = introduction::check(&object) {
        return Err(refusal(error, id).into());
    }
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Ok(Incoming { message, bytes }),
        Err(error) => Err(refusal(error::invalid_request(format!("this is not a JSON-RPC message: {error}")), id).into()),
    }
}

impl Said<Incoming> {
    pub fn messages(self) -> Said<ClientJsonRpcMessage> {
        match self {
            Self::One(incoming) => Said::One(incoming.message),
            Self::Several(items) => Said::Several(items.into_iter().map(|item| item.map(|incoming| incoming.message)).collect()),
        }
    }
}

/// What is said of a second request with the id of one that is not answered yet. It bears no id: that one belongs to the first.
pub fn already_asked(id: &RequestId) -> ServerJsonRpcMessage {
    refusal(error::invalid_request(format!("the id {id} belongs to a request that is not answered yet: ids must be unique")), None)
}

pub fn refusal(error: ErrorData, id: Option<RequestId>) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(error, id)
}

/// A connection that stays: what was read comes in on one channel, what is to be written goes out on another.
pub struct Connection {
    incoming: mpsc::Receiver<Said<ClientJsonRpcMessage>>,
    outgoing: mpsc::Sender<Answer>,
    version: Arc<Version>,
    unanswered: HashSet<RequestId>,
    /// Messages of a batch that are still to be handed on.
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
        if self.has_batches.load(Relaxed) { Batches::Taken } else { Batches::Refused }
    }

    fn agreed(&self, version: &ProtocolVersion) {
        self.has_batches.store(has_batches(version), Relaxed);
    }
}

/// One version asked servers to take batches; the one before had no word on them, the one after took them away.
pub fn has_batches(version: &ProtocolVersion) -> bool {
    *version == ProtocolVersion::V_2025_03_26
}

/// The other end is gone.
#[derive(Debug, thiserror::Error)]
#[error("the client is gone")]
pub struct Gone;

impl Connection {
    pub fn new(incoming: mpsc::Receiver<Said<ClientJsonRpcMessage>>, outgoing: mpsc::Sender<Answer>, version: Arc<Version>) -> Self {
        Self { incoming, outgoing, version, unanswered: HashSet::new(), unread: VecDeque::new(), batches: Vec::new() }
    }

    /// Takes a batch apart. What of it is refused is answered with the rest of it.
    fn open_batch(&mut self, items: Vec<Result<ClientJsonRpcMessage, Refusal>>) {
        let mut batch = Batch::default();
        for item in items {
            match item {
                Ok(JsonRpcMessage::Request(request)) if !self.unanswered.insert(request.id.clone()) => {
                    batch.answers.push(already_asked(&request.id));
                }
                Ok(message) => {
                    if let JsonRpcMessage::Request(request) = &message {
                        batch.unanswered.insert(request.id.clone());
                    }
                    self.unread.push_back(message);
                }
                Err(refusal) => batch.answers.push(*refusal),
            }
        }
        self.batches.push(batch);
    }

    /// May be left in the middle: an answer is only taken once there is room for it.
    async fn send_finished_batches(&mut self) {
        while batch::is_any_finished(&mut self.batches) {
            let Ok(room) = self.outgoing.reserve().await else { return };
            if let Some(answers) = batch::take_finished(&mut self.batches) {
                room.send(Answer::Several(answers));
            }
        }
    }
}

impl Transport<RoleServer> for Connection {
    type Error = Gone;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => {
                if let Some(version) = dialect::agreed_version(&response.result) {
                    self.version.agreed(&version);
                }
                Some(&response.id)
            }
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = id {
            self.unanswered.remove(id);
        }
        let answer = match batch::add(&mut self.batches, message) {
            Some(message) => Some(Answer::One(message.into())),
            None if batch::is_any_finished(&mut self.batches) => batch::take_finished(&mut self.batches).map(Answer::Several),
            None => None,
        };
        let outgoing = self.outgoing.clone();
        async move {
            match answer {
                Some(answer) => outgoing.send(answer).await.map_err(|_| Gone),
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.send_finished_batches().await;
            let message = match self.unread.pop_front() {
                Some(message) => message,
                None => match self.incoming.recv().await? {
                    Said::Several(items) => {
                        self.open_batch(items);
                        continue;
                    }
                    Said::One(JsonRpcMessage::Request(request)) if !self.unanswered.insert(request.id.clone()) => {
                        let _ = self.outgoing.send(Answer::One(already_asked(&request.id).into())).await;
                        continue;
                    }
                    Said::One(message) => message,
                },
            };
            // What is cancelled is never answered.
            if let JsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                && let Some(id) = &cancelled.params.request_id
            {
                self.unanswered.remove(id);
                batch::give_up(&mut self.batches, id);
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.incoming.close();
        Ok(())
    }
}
