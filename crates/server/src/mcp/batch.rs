//! Batches of MCP 2025-03-26: an array of messages, whose responses are sent together when the last one is ready. If they exceed the message
//! size, they are split into several arrays.

use heapstead_service::MESSAGE_BYTES_MAX;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde::Serialize;
use std::collections::HashSet;

/// A message or a batch of responses to send.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outgoing {
    Single(Box<ServerJsonRpcMessage>),
    Batch(Vec<ServerJsonRpcMessage>),
}

/// A received batch with requests that have no response yet.
#[derive(Debug, Default)]
pub struct Batch {
    pub unanswered: HashSet<RequestId>,
    pub responses: Vec<ServerJsonRpcMessage>,
}

/// Adds a response to its batch. Returns the message if it belongs to no batch.
pub fn add(batches: &mut [Batch], message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
    let id = match &message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    match id.and_then(|id| batches.iter_mut().find_map(|batch| batch.unanswered.remove(id).then_some(batch))) {
        Some(batch) => {
            batch.responses.push(message);
            None
        }
        None => Some(message),
    }
}

/// Removes a request that will not be answered.
pub fn remove(batches: &mut [Batch], id: &RequestId) {
    for batch in batches {
        batch.unanswered.remove(id);
    }
}

/// Whether any batch has all its responses. Batches without requests have no responses and are removed.
pub fn is_any_complete(batches: &mut Vec<Batch>) -> bool {
    batches.retain(|batch| !batch.unanswered.is_empty() || !batch.responses.is_empty());
    batches.iter().any(|batch| batch.unanswered.is_empty())
}

/// The responses of the first complete batch, or as many of them as fit into one message. The next call returns the others.
pub fn take_complete(batches: &mut Vec<Batch>) -> Option<Vec<ServerJsonRpcMessage>> {
    let complete = batches.iter().position(|batch| batch.unanswered.is_empty())?;
    let responses = &mut batches[complete].responses;
    let mut bytes = "[]".len();
    let fitting = responses.iter().take_while(|response| {
        bytes += serde_json::to_string(response).map_or(0, |json| json.len() + ",".len());
        bytes <= MESSAGE_BYTES_MAX
    });
    let fitting = fitting.count().max(1).min(responses.len());
    if fitting == responses.len() {
        return Some(batches.remove(complete).responses);
    }
    Some(responses.drain(..fitting).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ServerResult;

    fn response(id: u32) -> ServerJsonRpcMessage {
        JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id.into()))
    }

    fn batch(ids: &[u32]) -> Batch {
        Batch { unanswered: ids.iter().map(|id| RequestId::Number((*id).into())).collect(), responses: Vec::new() }
    }

    #[test]
    fn responses_are_sent_together_when_the_last_is_ready() {
        let mut batches = vec![batch(&[1, 2]), batch(&[3])];
        assert!(add(&mut batches, response(2)).is_none());
        assert!(!is_any_complete(&mut batches) && take_complete(&mut batches).is_none());
        assert!(add(&mut batches, response(9)).is_some(), "it belongs to no batch");
        assert!(add(&mut batches, response(1)).is_none());
        assert!(is_any_complete(&mut batches));
        assert_eq!(take_complete(&mut batches).map(|responses| responses.len()), Some(2));
        assert_eq!(batches.len(), 1, "the other is still incomplete");
    }

    #[test]
    fn a_removed_request_does_not_delay_its_batch() {
        let mut batches = vec![batch(&[1, 2])];
        assert!(add(&mut batches, response(1)).is_none());
        remove(&mut batches, &RequestId::Number(2));
        assert_eq!(take_complete(&mut batches).map(|responses| responses.len()), Some(1));
        assert!(batches.is_empty());
    }

    #[test]
    fn a_batch_without_requests_has_no_responses() {
        let mut batches = vec![batch(&[])];
        assert!(!is_any_complete(&mut batches));
        assert!(batches.is_empty());
    }
}
