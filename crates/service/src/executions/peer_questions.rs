//! Answers to the questions of other servers about executions, turns and removals of this process.

use super::reaches;
use super::running::{RunningExecution, StopReason};
use crate::Stores;
use crate::stores::WeakStores;
use async_trait::async_trait;
use heapstead_store::outputs::PageRequest;
use heapstead_store::peers::{Question, Responder};
use heapstead_types::Status;
use std::sync::Arc;

/// Answers questions from now on. A server that can't is alone, and logs so.
pub fn respond(stores: &Stores) {
    if let Err(error) = stores.peers.respond(Arc::new(Answers(stores.downgrade()))) {
        tracing::warn!(%error, "other processes on this database can't reach this one");
    }
}

struct Answers(WeakStores);

#[async_trait]
impl Responder for Answers {
    async fn answer(&self, question: Question) -> bool {
        let Some(stores) = self.0.upgrade() else { return false };
        match question {
            Question::Cancel(id) => match stores.running.get(&id) {
                None => false,
                Some(execution) => {
                    execution.stop(StopReason::Cancelled);
                    execution.ended().await.status == Status::Cancelled
                }
            },
            Question::Ended(id) => ended(stores.running.get(&id)).await,
            Question::Line(id, number) => has_output(stores.running.get(&id), PageRequest::lines(number, 1)).await,
            Question::Byte(id, number) => has_output(stores.running.get(&id), PageRequest::Bytes { offset: number, limit: 1 }).await,
            Question::TurnOver(id) => {
                ended(id.execution().and_then(|id| stores.running.get(&id))).await;
                stores.turns.released(&id).await;
                true
            }
            Question::RemovalOver => {
                drop(stores.removing.lock().await);
                true
            }
        }
    }
}

async fn ended(execution: Option<Arc<RunningExecution>>) -> bool {
    if let Some(execution) = execution {
        execution.ended().await;
    }
    true
}

/// Waits until there is output at the position, or the execution has ended.
async fn has_output(execution: Option<Arc<RunningExecution>>, page: PageRequest) -> bool {
    let Some(execution) = execution else { return true };
    let mut progress = execution.watch();
    progress.wait_for(|progress| progress.ended.is_some() || reaches(progress.output, page)).await.is_ok()
}
