//! Counters and histograms since the process started, and snapshots of them.

use crate::sessions::access_audit;
use crate::{Service, ServiceError};
use heapstead_context::store::Stats;
use heapstead_context::{Counts, RecorderCounts};
use heapstead_types::{Principal, Status};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// From a warm worker to the longest run there may be.
pub const BOUNDS_MS: [f64; 15] =
    [1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 60_000.0, 300_000.0];

#[derive(Debug, Default)]
pub struct Meter {
    ended: [AtomicU64; Status::ALL.len()],
    /// From acceptance to the start of the code.
    pub queue: Buckets,
    /// Run time of the code.
    pub run: Buckets,
    /// From the end of the code until its heap is stored.
    pub snapshot: Buckets,
}

#[derive(Debug, Default)]
pub struct Buckets {
    /// The last bucket is for values above all bounds.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_us: AtomicU64,
}

/// A histogram snapshot: each value is counted in every bucket whose bound it does not exceed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum_ms: f64,
}

/// A snapshot of all metrics. Values that can't be read now are missing.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub executions: Vec<(Status, u64)>,
    pub running: usize,
    pub queued: usize,
    pub queue_ms: Times,
    pub run_ms: Times,
    pub snapshot_ms: Times,
    /// None on a stateless server.
    pub stores: Option<StoreMetrics>,
    pub contexts: Option<ContextMetrics>,
}

#[derive(Debug, Clone)]
pub struct StoreMetrics {
    pub sessions: Option<u64>,
    pub heap_bytes: Option<u64>,
    pub heap_cache_hits: u64,
    pub heap_cache_misses: u64,
    /// Requests for sessions of other owners.
    pub isolation_violations: u64,
}

#[derive(Debug, Clone)]
pub struct ContextMetrics {
    /// Whether the store could be read and written just now.
    pub is_up: bool,
    pub stats: Option<Stats>,
    pub counts: Counts,
    pub recorder: RecorderCounts,
    /// Calls that were not recorded because the queue was full.
    pub dropped: u64,
    pub store: heapstead_context::Metrics,
}

impl Meter {
    pub fn ended(&self, status: Status) {
        if let Some(index) = Status::ALL.iter().position(|known| *known == status) {
            self.ended[index].fetch_add(1, Relaxed);
        }
    }

    pub fn view(&self, load: heapstead_engine::Load) -> Metrics {
        let ends = Status::ALL.into_iter().zip(&self.ended).filter(|(status, _)| status.is_terminal());
        Metrics {
            executions: ends.map(|(status, count)| (status, count.load(Relaxed))).collect(),
            running: load.running,
            queued: load.queued,
            queue_ms: self.queue.view(),
            run_ms: self.run.view(),
            snapshot_ms: self.snapshot.view(),
            stores: None,
            contexts: None,
        }
    }
}

impl Buckets {
    pub fn record(&self, took: Duration) {
        let ms = took.as_secs_f64() * 1000.0;
        self.counts[BOUNDS_MS.partition_point(|bound| *bound < ms)].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(took.as_micros().try_into().unwrap_or(u64::MAX), Relaxed);
    }

    fn view(&self) -> Times {
        let mut count = 0;
        let mut up_to = self.counts.iter().map(|bucket| {
            count += bucket.load(Relaxed);
            count
        });
        let buckets = BOUNDS_MS.into_iter().zip(up_to.by_ref()).collect();
        up_to.for_each(drop);
        Times { buckets, count, sum_ms: self.sum_us.load(Relaxed) as f64 / 1e3 }
    }
}

/// The tenant of the operators.
const OPERATOR: &str = "operator";

/// Totals reveal what other owners do, so only the operator may see them if there are owners.
pub fn check_may_watch(principal: &Principal) -> Result<(), ServiceError> {
    match principal.tenant() {
        None | Some(OPERATOR) => Ok(()),
        Some(_) => {
            let text =
                format!("metrics are for the operator: `heapstead auth add {OPERATOR}/NAME` makes a token for whoever collects them");
            Err(ServiceError::Forbidden(text))
        }
    }
}

impl Service {
    pub async fn metrics(&self, principal: &Principal) -> Result<Metrics, ServiceError> {
        check_may_watch(principal)?;
        let (totals, contexts, violations) =
            tokio::join!(self.stores.records.totals(), self.context_metrics(), access_audit::violations(&self.stores));
        let in_contexts = contexts.as_ref().map_or(0, |contexts| contexts.counts.isolation_violations);
        let (heap_cache_hits, heap_cache_misses) = self.runtime.heaps.looked_up();
        let stores = StoreMetrics {
            sessions: totals.as_ref().ok().map(|totals| totals.sessions),
            heap_bytes: totals.as_ref().ok().map(|totals| totals.heap_bytes),
            heap_cache_hits,
            heap_cache_misses,
            isolation_violations: violations + in_contexts,
        };
        Ok(Metrics { stores: Some(stores), contexts, ..self.runtime.meter.view(self.engine().load()) })
    }

    async fn context_metrics(&self) -> Option<ContextMetrics> {
        let conversations = self.stores.conversations.get()?;
        let contexts = conversations.contexts();
        let (is_up, stats) = tokio::join!(contexts.is_up(), contexts.stats());
        Some(ContextMetrics {
            is_up,
            stats: stats.ok(),
            counts: contexts.counts(),
            recorder: conversations.recorder.counts(),
            dropped: conversations.dropped(),
            store: conversations.store.meter.view(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_every_bucket_up_to_their_bound() {
        let buckets = Buckets::default();
        for ms in [1, 3, 400_000] {
            buckets.record(Duration::from_millis(ms));
        }
        let view = buckets.view();
        let at_most: Vec<u64> = view.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(at_most[..4], [1, 1, 2, 2]);
        assert_eq!((at_most.last(), view.count, view.sum_ms), (Some(&2), 3, 400_004.0));
    }

    #[test]
    fn only_ends_are_counted_as_ends() {
        let meter = Meter::default();
        meter.ended(Status::TimedOut);
        let view = meter.view(heapstead_engine::Load { running: 1, queued: 2 });
        assert_eq!(view.executions.len(), Status::ALL.len() - 1);
        assert!(view.executions.contains(&(Status::TimedOut, 1)) && view.executions.contains(&(Status::Completed, 0)));
    }
}
