//! Deletion of heaps by their owners. The record, its tags and its share of the quota go before the answer; the file goes after it, so that the
//! time of the answer does not tell whether another owner has the same heap.
//!
//! A heap that something of its owner may continue from is not deleted: the head of a session, the input of an unfinished execution, a heap
//! that is being stored. The log of a session does not keep a heap: a run on a deleted heap is one on a heap that does not exist
//! (`on_missing_heap`).

use super::{Heaps, removal, reservation};
use crate::error::Noun;
use crate::{Caller, ServiceError, crash_point};
use heapstead_store::records::{DeletedHeap, HeapUse};
use heapstead_types::{ErrorCode, HeapKey, Principal};
use tokio::task::JoinHandle;

/// The file of a deleted heap is being removed in the background.
pub struct FileRemoval(Option<JoinHandle<()>>);

impl FileRemoval {
    /// Waits until it is over. A process that is about to exit has to.
    pub async fn finish(self) {
        if let Some(removal) = self.0 {
            let _ = removal.await;
        }
    }
}

impl Heaps<'_> {
    /// Deletes a heap of the caller. What another owner has is not found.
    pub async fn delete(&self, caller: &Caller, key: HeapKey) -> Result<FileRemoval, ServiceError> {
        let deleted = self.0.records.delete_heap(&caller.principal, key).await?;
        crash_point::pass("heap-deleted");
        let stores = self.0.clone();
        Ok(FileRemoval(match deleted {
            DeletedHeap::Unknown => return Err(ServiceError::not_found(Noun::Heap, &key.to_string())),
            DeletedHeap::InUse(used_by) => return Err(in_use(&caller.principal, key, &used_by)),
            DeletedHeap::Disowned => None,
            DeletedHeap::Removing(removal) => Some(tokio::spawn(async move { removal::retry(&stores, removal).await })),
            DeletedHeap::Undecided(reservation) => {
                Some(tokio::spawn(async move { reservation::release_orphan(&stores, &reservation).await }))
            }
        }))
    }
}

fn in_use(owner: &Principal, key: HeapKey, used_by: &HeapUse) -> ServiceError {
    let text = match used_by {
        // Anonymous callers share their heaps, but not their sessions, whose ids are secret.
        HeapUse::Head(_) if owner.is_anonymous() => {
            format!("heap `{key}` is the head of a session: end the session first, or run something else in it")
        }
        HeapUse::Head(session) => {
            format!("heap `{key}` is the head of session `{session}`: end the session first, or run something else in it")
        }
        HeapUse::Execution(id) => format!("execution `{id}` starts from heap `{key}`: cancel it first, or wait until it ends"),
        HeapUse::Storing => format!("heap `{key}` is being stored again by a run or an import: try again when that has ended"),
    };
    ServiceError::conflict(ErrorCode::HeapInUse, text)
}
