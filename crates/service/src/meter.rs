//! What is counted and timed since the process began, and a moment's view of it for whoever watches.

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
    /// From being accepted to the start of the code.
    pub queue: Buckets,
    /// The code itself.
    pub run: Buckets,
    /// From the end of the code until its heap is stored.
    pub snapshot: Buckets,
}

#[derive(Debug, Default)]
pub struct Buckets {
    /// The last is for what took longer than all bounds.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_us: AtomicU64,
}

/// Times, each counted at every bound that it is within.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum_ms: f64,
}

/// Everything there is to watch. What can't be asked now is missing.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub executions: Vec<(Status, u64)>,
    pub running: usize,
    pub queued: usize,
    pub queue_ms: Times,
    pub run_ms: Times,
    pub snapshot_ms: Times,
    /// Of a server that keeps things.
    pub kept: Option<KeptMetrics>,
    pub contexts: Option<ContextMetrics>,
}

#[derive(Debug, Clone)]
pub struct KeptMetrics {
    pub sessions: Option<u64>,
    pub heap_bytes: Option<u64>,
    pub heap_cache_hits: u64,
    pub heap_cache_misses: u64,
    /// Asked for what is somebody else's.
    pub isolation_violations: u64,
}

#[derive(Debug, Clone)]
pub struct ContextMetrics {
    /// Whether the store could be read and written just now.
    pub is_up: bool,
    pub stats: Option<Stats>,
    pub counts: Counts,
    pub recorder: RecorderCounts,
    /// Calls that could not even wait to be recorded.
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
            kept: None,
            contexts: None,
        }
    }
}

impl Buckets {
    pub fn note(&self, took: Duration) {
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

/// The tenant whose subjects run the server.
const OPERATOR: &str = "operator";

/// Totals tell of what others do, so where owners are told apart they are for the operator alone.
pub fn may_watch(principal: &Principal) -> Result<(), ServiceError> {
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
        may_watch(principal)?;
        let (totals, contexts, trespasses) = tokio::join!(self.0.metadata.totals(), self.context_metrics(), self.trespasses());
        let in_contexts = contexts.as_ref().map_or(0, |contexts| contexts.counts.isolation_violations);
        let (heap_cache_hits, heap_cache_misses) = self.running.heaps.looked_up();
        let kept = KeptMetrics {
            sessions: totals.as_ref().ok().map(|totals| totals.sessions),
            heap_bytes: totals.as_ref().ok().map(|totals| totals.heap_bytes),
            heap_cache_hits,
            heap_cache_misses,
            isolation_violations: trespasses + in_contexts,
        };
        Ok(Metrics { kept: Some(kept), contexts, ..self.running.meter.view(self.engine().load()) })
    }

    async fn context_metrics(&self) -> Option<ContextMetrics> {
        let conversations = self.0.conversations.get()?;
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
    fn times_count_at_every_bound_they_are_within() {
        let buckets = Buckets::default();
        for ms in [1, 3, 400_000] {
            buckets.note(Duration::from_millis(ms));
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
