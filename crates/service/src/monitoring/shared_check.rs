//! A check that concurrent callers share, so that a caller who asks all the time does not delay the others.

use std::time::Instant;
use tokio::sync::Mutex;

#[derive(Debug, Default)]
pub struct SharedCheck<T> {
    /// When the last check began, and its result. Locked during a check.
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> SharedCheck<T> {
    /// The result of a check that began after this call, which may be that of another caller. However many callers wait, they wait for two
    /// checks at most.
    pub async fn result(&self, check: impl Future<Output = T>) -> T {
        let asked_at = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((_, result)) = last.as_ref().filter(|(began_at, _)| *began_at >= asked_at) {
            return result.clone();
        }
        let began_at = Instant::now();
        let result = check.await;
        *last = Some((began_at, result.clone()));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn callers_at_the_same_time_share_a_check_and_later_ones_do_not() {
        let (shared, checks) = (Arc::new(SharedCheck::default()), Arc::new(AtomicU32::new(0)));
        let ask = || {
            let (shared, checks) = (shared.clone(), checks.clone());
            async move {
                let check = async {
                    tokio::task::yield_now().await;
                    checks.fetch_add(1, Relaxed)
                };
                shared.result(check).await
            }
        };
        let first = ask().await;
        let together: JoinSet<u32> = (0..100).map(|_| ask()).collect();
        assert!(together.join_all().await.into_iter().all(|result| result > first), "no result is older than its request");
        assert!(checks.load(Relaxed) <= 3, "{} checks", checks.load(Relaxed));
    }
}
