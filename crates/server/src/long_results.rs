//! Builds one long result at a time for each owner. Building one occupies a shared thread for milliseconds, so the calls of one owner wait for
//! each other instead of delaying those of other owners.

use crate::http::no_room;
use heapstead_service::{Budget, OwnerPermit, OwnerPermits, Portion, ServiceError};
use heapstead_types::{BudgetHolder, ErrorCode};
use serde_json::Value;
use std::sync::Arc;

/// Shorter results take about as long as the rest of a call.
const LONG_BYTES: usize = 64 << 10;

pub struct LongResults {
    permits: OwnerPermits,
    responses: Arc<Budget>,
}

/// The right to build a long result, and its memory, which counts while it waits.
pub struct LongResult {
    _permit: OwnerPermit,
    _room: Portion,
}

impl LongResults {
    /// The budget is that of responses that have not been sent.
    pub fn new(responses: Arc<Budget>) -> Self {
        Self { permits: OwnerPermits::new(1), responses }
    }

    /// Waits until no other long result of this owner is being built. Short results do not wait. Fails if those that wait leave no room for it.
    pub async fn acquire(&self, holder: BudgetHolder, bytes: usize) -> Result<Option<LongResult>, ServiceError> {
        if bytes <= LONG_BYTES {
            return Ok(None);
        }
        let room = self.responses.take(holder.clone(), bytes as u64);
        let _room = room.map_err(|exhausted| ServiceError::busy(ErrorCode::Busy, no_room(exhausted)))?;
        let _permit = self.permits.acquire(holder).await;
        // Lets other tasks of this thread run between two long results.
        tokio::task::yield_now().await;
        Ok(Some(LongResult { _permit, _room }))
    }
}

/// About how long a result is: what makes one long are its texts.
pub fn bytes_of(result: &Value) -> usize {
    let members = result.as_object().into_iter().flat_map(|members| members.values());
    members.filter_map(Value::as_str).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn holder(number: u8) -> BudgetHolder {
        BudgetHolder::network([10, 0, 0, number].into())
    }

    #[tokio::test]
    async fn only_long_results_of_the_same_owner_wait_for_each_other() {
        let results = LongResults::new(Budget::new(8 * LONG_BYTES as u64));
        let (long, short) = (json!({ "result": "x".repeat(LONG_BYTES + 1) }), json!({ "result": "x" }));
        let acquire = |number, result| {
            let acquired = results.acquire(holder(number), bytes_of(result));
            async { tokio::time::timeout(Duration::from_millis(50), acquired).await.map(|acquired| acquired.expect("room")) }
        };
        let first = acquire(1, &long).await.expect("the first");
        assert!(acquire(1, &short).await.expect("a short one").is_none());
        assert!(acquire(2, &long).await.expect("of another owner").is_some());
        assert!(acquire(1, &long).await.is_err(), "the second has to wait");
        drop(first);
        assert!(acquire(1, &long).await.expect("it has a permit now").is_some());
    }

    /// Regression: results that waited for each other were in memory, and counted for nobody.
    #[tokio::test]
    async fn what_waits_is_bounded() {
        let results = LongResults::new(Budget::new(8 * LONG_BYTES as u64));
        let long = LONG_BYTES + 1;
        let _first = results.acquire(holder(1), long).await.expect("room");
        let waiting: Vec<_> = (0..2).map(|_| Box::pin(results.acquire(holder(1), long))).collect();
        let mut waiting = futures_util::future::join_all(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let refused = results.acquire(holder(1), long).await.err().expect("a refusal");
        assert_eq!(refused.code(), ErrorCode::Busy, "{refused}");
        assert!(results.acquire(holder(2), long).await.expect("room of another owner").is_some());
    }
}
