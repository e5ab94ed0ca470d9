//! Counters and histograms since the process started, and snapshots of them.

use super::live_meter::LiveMeter;
use super::shared_check::SharedCheck;
use crate::live::LiveStatus;
use crate::sessions::access_audit;
use crate::{Service, ServiceError};
use heapstead_context::store::Stats;
use heapstead_context::{Counts, RecorderCounts};
use heapstead_store::records::AccessCounts;
use heapstead_types::{Principal, Status};
use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts};
use std::time::Duration;

/// From a warm worker to the longest run there may be.
const BOUNDS_MS: [f64; 15] = [1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 60_000.0, 300_000.0];

#[derive(Debug)]
pub struct Meter {
    ended: IntCounterVec,
    pub queue: Latency,
    pub run: Latency,
    pub snapshot: Latency,
    /// Whether code can be run: the problem, if there is one.
    pub engine_check: SharedCheck<Option<String>>,
}

#[derive(Debug)]
pub struct Latency(Histogram);

/// A snapshot of all metrics. Values that can't be read now are missing.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub executions: IntCounterVec,
    pub running: usize,
    pub queued: usize,
    /// Queue, run and snapshot times.
    pub latencies: [Histogram; 3],
    /// None on a stateless server.
    pub stores: Option<StoreMetrics>,
    /// None on a stateless server.
    pub live: Option<LiveMetrics>,
    pub contexts: Option<ContextMetrics>,
}

#[derive(Debug, Clone)]
pub struct StoreMetrics {
    pub sessions: Option<u64>,
    pub heap_bytes: Option<u64>,
    pub heap_cache_hits: u64,
    pub heap_cache_misses: u64,
    /// Reads and write transactions of the database.
    pub database: AccessCounts,
    /// Requests for sessions of other owners.
    pub isolation_violations: u64,
}

/// Of live sessions.
#[derive(Debug, Clone)]
pub struct LiveMetrics {
    pub sessions: u64,
    /// As it was measured last, some seconds ago.
    pub memory_bytes: u64,
    pub memory_bytes_max: u64,
    /// Turns whose heap is not stored, and the age of the oldest of them.
    pub unstored_turns: u64,
    pub checkpoint_lag: Duration,
    /// Sessions whose last checkpoint could not be written.
    pub failing: u64,
    /// Evictions by reason, and checkpoints by result.
    pub labelled_counters: [IntCounterVec; 2],
    /// Resumed sessions, turns that were repeated for it, and replays that differed.
    pub counters: [IntCounter; 3],
}

impl LiveMetrics {
    fn of(status: LiveStatus, memory_mb_max: u64, meter: &LiveMeter) -> Self {
        Self {
            sessions: status.sessions,
            memory_bytes: status.memory_bytes,
            memory_bytes_max: memory_mb_max << 20,
            unstored_turns: status.unstored_turns,
            checkpoint_lag: status.checkpoint_lag,
            failing: status.failing,
            labelled_counters: meter.labelled_counters(),
            counters: meter.counters(),
        }
    }
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
    pub read_latency_ms: Histogram,
}

impl Default for Meter {
    fn default() -> Self {
        let ended = IntCounterVec::new(Opts::new("heapstead_executions_total", "Finished executions by status."), &["status"])
            .expect("the name and the label are valid constants");
        for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
            ended.with_label_values(&[status.as_str()]);
        }
        Self {
            ended,
            queue: Latency::new("heapstead_execution_queue_ms", "Time from acceptance to the start of the code."),
            run: Latency::new("heapstead_execution_run_ms", "Run time of the code."),
            snapshot: Latency::new("heapstead_execution_snapshot_ms", "Time from the end of the code until its heap was stored."),
            engine_check: SharedCheck::default(),
        }
    }
}

impl Meter {
    pub fn ended(&self, status: Status) {
        self.ended.with_label_values(&[status.as_str()]).inc();
    }

    pub fn view(&self, load: heapstead_engine::Load) -> Metrics {
        Metrics {
            executions: self.ended.clone(),
            running: load.running,
            queued: load.queued,
            latencies: [&self.queue, &self.run, &self.snapshot].map(|latency| latency.0.clone()),
            stores: None,
            live: None,
            contexts: None,
        }
    }
}

impl Latency {
    fn new(name: &str, help: &str) -> Self {
        let opts = HistogramOpts::new(name, help).buckets(BOUNDS_MS.into());
        Self(Histogram::with_opts(opts).expect("the name and the bounds are valid constants"))
    }

    pub fn record(&self, took: Duration) {
        self.0.observe(took.as_secs_f64() * 1e3);
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
                format!("metrics are for the operator: `heapstead auth add {OPERATOR}/NAME` creates a token for the metrics collector");
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
            database: self.stores.records.counts(),
            isolation_violations: violations + in_contexts,
        };
        let live = &self.runtime.live;
        let live = Some(LiveMetrics::of(live.status(None), self.policy().live.memory_mb_max, &live.meter));
        Ok(Metrics { stores: Some(stores), live, contexts, ..self.runtime.meter.view(self.engine().load()) })
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
            read_latency_ms: conversations.store.meter.read_latency_ms(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::core::Collector;

    #[test]
    fn every_terminal_status_is_exported_from_the_start() {
        let meter = Meter::default();
        meter.ended(Status::TimedOut);
        let exported = meter.view(heapstead_engine::Load { running: 1, queued: 2 }).executions.collect();
        let counts: Vec<(&str, f64)> =
            exported[0].get_metric().iter().map(|metric| (metric.get_label()[0].value(), metric.get_counter().get_value())).collect();
        assert_eq!(counts.len(), Status::ALL.len() - 1);
        assert!(counts.contains(&("timed_out", 1.0)) && counts.contains(&("completed", 0.0)), "{counts:?}");
    }
}
