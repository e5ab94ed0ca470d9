//! Builds one long result at a time for each owner. Building one occupies a shared thread for milliseconds, so the calls of one owner wait for
//! each other instead of delaying those of other owners.

use heapstead_service::{OwnerPermit, OwnerPermits};
use heapstead_types::BudgetHolder;
use serde_json::Value;

/// Shorter results take about as long as the rest of a call.
const LONG_BYTES: usize = 64 << 10;

pub struct LongResults(OwnerPermits);

impl Default for LongResults {
    fn default() -> Self {
        Self(OwnerPermits::new(1))
    }
}

impl LongResults {
    /// Waits until no other long result of this owner is being built. Short results do not wait.
    pub async fn acquire(&self, holder: BudgetHolder, bytes: usize) -> Option<OwnerPermit> {
        if bytes <= LONG_BYTES {
            return None;
        }
        let permit = self.0.acquire(holder).await;
        // Lets other tasks of this thread run between two long results.
        tokio::task::yield_now().await;
        Some(permit)
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
        let results = LongResults::default();
        let (long, short) = (json!({ "result": "x".repeat(LONG_BYTES + 1) }), json!({ "result": "x" }));
        let acquire = |number, result| tokio::time::timeout(Duration::from_millis(50), results.acquire(holder(number), bytes_of(result)));
        let first = acquire(1, &long).await.expect("the first");
        assert!(acquire(1, &short).await.expect("a short one").is_none());
        assert!(acquire(2, &long).await.expect("of another owner").is_some());
        assert!(acquire(1, &long).await.is_err(), "the second has to wait");
        drop(first);
        assert!(acquire(1, &long).await.expect("it has a permit now").is_some());
    }
}
