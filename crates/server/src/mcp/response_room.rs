//! The memory of long responses to one owner, over a transport whose queue a client may not read: they count until they are sent, as those over
//! HTTP do (`http/sent_body.rs`). A response that has no room is replaced by an error.

use super::batch::Outgoing;
use super::{error, json_rpc};
use crate::http::{SHORT_RESPONSE_BYTES, no_room};
use heapstead_service::{Budget, Portion, ServiceError};
use heapstead_types::{BudgetHolder, ErrorCode};
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use std::collections::HashMap;
use std::sync::Arc;

pub struct ResponseRoom {
    budget: Arc<Budget>,
    holder: BudgetHolder,
    /// Of responses that are not queued yet, because their batch is not complete.
    waiting: HashMap<RequestId, Portion>,
}

/// A message on its way to the client.
pub struct Queued {
    pub message: Outgoing,
    rooms: Vec<Portion>,
}

impl Queued {
    pub fn new(message: Outgoing, rooms: Vec<Portion>) -> Self {
        Self { message, rooms }
    }

    /// What counts until the message is sent.
    pub fn into_rooms(self) -> Vec<Portion> {
        self.rooms
    }
}

impl ResponseRoom {
    pub fn new(budget: Arc<Budget>, holder: BudgetHolder) -> Self {
        Self { budget, holder, waiting: HashMap::new() }
    }

    /// The message, or an error in its place.
    pub fn admit(&mut self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        let JsonRpcMessage::Response(response) = &message else { return message };
        let bytes = serde_json::to_string(response).map_or(0, |json| json.len() as u64);
        if bytes <= SHORT_RESPONSE_BYTES {
            return message;
        }
        match self.budget.take(self.holder.clone(), bytes) {
            Ok(portion) => {
                self.waiting.insert(response.id.clone(), portion);
                message
            }
            Err(exhausted) => {
                let refused = ServiceError::busy(ErrorCode::Busy, no_room(exhausted));
                json_rpc::error_message(error::from_service(refused), Some(response.id.clone()))
            }
        }
    }

    /// The rooms of the responses in a message that is about to be queued.
    pub fn rooms_of(&mut self, message: &Outgoing) -> Vec<Portion> {
        let messages = match message {
            Outgoing::Single(message) => std::slice::from_ref(&**message),
            Outgoing::Batch(messages) => messages,
        };
        let ids = messages.iter().filter_map(|message| match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            _ => None,
        });
        ids.filter_map(|id| self.waiting.remove(id)).collect()
    }
}
