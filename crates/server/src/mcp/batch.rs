//! Batches of MCP 2025-03-26: several messages at once, whose answers leave together when the last of them is there, as far as one message holds them.

use super::message_size::MESSAGE_BYTES_MAX;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde::Serialize;
use std::collections::HashSet;

/// What goes out at once.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    One(Box<ServerJsonRpcMessage>),
    Several(Vec<ServerJsonRpcMessage>),
}

/// A batch that is not answered yet.
#[derive(Debug, Default)]
pub struct Batch {
    pub unanswered: HashSet<RequestId>,
    pub answers: Vec<ServerJsonRpcMessage>,
}

/// Puts an answer to the others of its batch; gives back what belongs to none.
pub fn add(batches: &mut [Batch], message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
    let id = match &message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    match id.and_then(|id| batches.iter_mut().find_map(|batch| batch.unanswered.remove(id).then_some(batch))) {
        Some(batch) => {
            batch.answers.push(message);
            None
        }
        None => Some(message),
    }
}

/// No answer to this request will come.
pub fn give_up(batches: &mut [Batch], id: &RequestId) {
    for batch in batches {
        batch.unanswered.remove(id);
    }
}

/// Whether a batch waits for no more answers. One that held only notifications has none, and is dropped here.
pub fn is_any_finished(batches: &mut Vec<Batch>) -> bool {
    batches.retain(|batch| !batch.unanswered.is_empty() || !batch.answers.is_empty());
    batches.iter().any(|batch| batch.unanswered.is_empty())
}

/// The answers of the first batch that waits for no more, or as many of them as one message holds: the others come next.
pub fn take_finished(batches: &mut Vec<Batch>) -> Option<Vec<ServerJsonRpcMessage>> {
    let finished = batches.iter().position(|batch| batch.unanswered.is_empty())?;
    let answers = &mut batches[finished].answers;
    let mut bytes = "[]".len();
    let fitting = answers.iter().take_while(|answer| {
        bytes += serde_json::to_string(answer).map_or(0, |json| json.len() + ",".len());
        bytes <= MESSAGE_BYTES_MAX
    });
    let fitting = fitting.count().max(1).min(answers.len());
    if fitting == answers.len() {
        return Some(batches.remove(finished).answers);
    }
    Some(answers.drain(..fitting).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ServerResult;

    fn answer(id: u32) -> ServerJsonRpcMessage {
        JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id.into()))
    }

    fn asked(ids: &[u32]) -> Batch {
        Batch { unanswered: ids.iter().map(|id| RequestId::Number((*id).into())).collect(), answers: Vec::new() }
    }

    #[test]
    fn answers_leave_together_when_the_last_is_there() {
        let mut batches = vec![asked(&[1, 2]), asked(&[3])];
        assert!(add(&mut batches, answer(2)).is_none());
        assert!(!is_any_finished(&mut batches) && take_finished(&mut batches).is_none());
        assert!(add(&mut batches, answer(9)).is_some(), "it belongs to no batch");
        assert!(add(&mut batches, answer(1)).is_none());
        assert!(is_any_finished(&mut batches));
        assert_eq!(take_finished(&mut batches).map(|answers| answers.len()), Some(2));
        assert_eq!(batches.len(), 1, "the other still waits");
    }

    #[test]
    fn what_is_given_up_keeps_the_rest_waiting_no_longer() {
        let mut batches = vec![asked(&[1, 2])];
        assert!(add(&mut batches, answer(1)).is_none());
        give_up(&mut batches, &RequestId::Number(2));
        assert_eq!(take_finished(&mut batches).map(|answers| answers.len()), Some(1));
        assert!(batches.is_empty());
    }

    #[test]
    fn what_needs_no_answer_gets_none() {
        let mut batches = vec![asked(&[])];
        assert!(!is_any_finished(&mut batches));
        assert!(batches.is_empty());
    }
}
