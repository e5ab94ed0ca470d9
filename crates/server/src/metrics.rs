//! `/metrics`: counters and timings of the service in the Prometheus text format. No label identifies an owner.

use heapstead_service::{ContextMetrics, LiveMetrics, Metrics, StoreMetrics};
use prometheus::core::Collector;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Renders the page. A new registry per request, because most values are read from the stores for it.
pub fn page(metrics: Metrics) -> prometheus::Result<String> {
    let mut page = Page::default();
    page.register(metrics.executions);
    page.gauge("heapstead_executions_running", "Running executions.", metrics.running as u64);
    page.gauge("heapstead_executions_queued", "Queued executions.", metrics.queued as u64);
    for latency in metrics.latencies {
        page.register(latency);
    }
    if let Some(stores) = &metrics.stores {
        store_metrics(&mut page, stores);
    }
    if let Some(live) = metrics.live {
        live_metrics(&mut page, live);
    }
    if let Some(contexts) = metrics.contexts {
        context_metrics(&mut page, contexts);
    }
    page.render()
}

fn store_metrics(page: &mut Page, stores: &StoreMetrics) {
    if let Some(sessions) = stores.sessions {
        page.gauge("heapstead_sessions", "Open sessions.", sessions);
    }
    if let Some(bytes) = stores.heap_bytes {
        page.gauge("heapstead_heap_bytes", "Total size of all heaps, counted once per owner.", bytes);
    }
    let lookups = [("hit", stores.heap_cache_hits), ("miss", stores.heap_cache_misses)];
    page.labelled("heapstead_heap_cache_lookups_total", "Heap cache lookups by result.", "result", lookups);
    let accesses = [("read", stores.database.reads), ("write", stores.database.writes)];
    page.labelled("heapstead_database_accesses_total", "Reads and write transactions of the database.", "kind", accesses);
    page.counter(
        "heapstead_isolation_violations_total",
        "Requests for a session or context of another owner.",
        stores.isolation_violations,
    );
}

fn live_metrics(page: &mut Page, live: LiveMetrics) {
    page.gauge("heapstead_live_sessions", "Sessions whose heap is in memory.", live.sessions);
    page.gauge("heapstead_live_memory_bytes", "Memory of live sessions, as measured last.", live.memory_bytes);
    page.gauge("heapstead_live_memory_bytes_max", "Memory limit of live sessions.", live.memory_bytes_max);
    page.gauge("heapstead_live_unstored_turns", "Turns of live sessions whose heap is not stored.", live.unstored_turns);
    page.gauge("heapstead_live_checkpoint_lag_seconds", "Age of the oldest of these turns.", live.checkpoint_lag.as_secs());
    page.gauge("heapstead_live_checkpoints_failing", "Live sessions whose last checkpoint could not be written.", live.failing);
    live.labelled_counters.into_iter().for_each(|counters| page.register(counters));
    live.counters.into_iter().for_each(|counter| page.register(counter));
}

fn context_metrics(page: &mut Page, contexts: ContextMetrics) {
    // A value that cannot be read is left out, because a zero would be wrong.
    page.gauge("context_store_up", "1 if the context store can be read and written, else 0.", contexts.is_up.into());
    if let Some(stats) = &contexts.stats {
        if let Some(sessions) = stats.sessions {
            page.gauge("context_store_sessions", "Stored contexts.", sessions);
        }
        if let Some(max) = stats.sessions_max {
            page.gauge("context_store_sessions_max", "Maximum number of stored contexts.", max);
        }
        page.gauge("context_store_memory_bytes", "Memory used by the context store.", stats.memory_bytes);
        if let Some(max) = stats.memory_bytes_max {
            page.gauge("context_store_memory_bytes_max", "Memory limit of the context store.", max);
        }
        page.labelled("context_store_evictions_total", "Evicted contexts by reason.", "reason", stats.evictions.by_reason());
    }
    page.register(contexts.read_latency_ms);
    let calls = [
        ("recorded", contexts.recorder.recorded),
        ("dropped", contexts.recorder.dropped + contexts.dropped),
        ("failed", contexts.recorder.failed),
        ("over_quota", contexts.recorder.over_quota),
    ];
    page.labelled("context_calls_total", "Tool calls to record, by result.", "result", calls);
    page.counter(
        "context_store_unavailable_total",
        "Operations that failed because the context store was unavailable.",
        contexts.counts.unavailable,
    );
    page.counter("context_store_conflicts_total", "Context writes that conflicted and were retried.", contexts.store.conflicts);
    page.counter("context_cleared_total", "Contexts cleared on request.", contexts.counts.cleared);
    page.counter("context_quarantined_total", "Stored contexts that could not be read and were quarantined.", contexts.counts.quarantined);
}

/// The first error is kept and returned by `render`.
#[derive(Default)]
struct Page {
    registry: Registry,
    error: Option<prometheus::Error>,
}

impl Page {
    fn register(&mut self, metric: impl Collector + 'static) {
        self.add(Ok(metric), |_| ());
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.add(IntGauge::new(name, help), |gauge| gauge.set(value.try_into().unwrap_or(i64::MAX)));
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.add(IntCounter::new(name, help), |counter| counter.inc_by(value));
    }

    fn labelled(&mut self, name: &str, help: &str, label: &str, values: impl IntoIterator<Item = (&'static str, u64)>) {
        self.add(IntCounterVec::new(Opts::new(name, help), &[label]), |counters| {
            for (of, value) in values {
                counters.with_label_values(&[of]).inc_by(value);
            }
        });
    }

    fn add<C: Collector + 'static>(&mut self, metric: prometheus::Result<C>, set: impl FnOnce(&C)) {
        let added = metric.and_then(|metric| {
            set(&metric);
            self.registry.register(Box::new(metric))
        });
        self.error = self.error.take().or(added.err());
    }

    fn render(self) -> prometheus::Result<String> {
        self.error.map_or(Ok(()), Err)?;
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_carry_their_label() {
        let mut page = Page::default();
        page.labelled("e_total", "Ends.", "reason", [("idle", 2), ("lru", 0)]);
        let expected = "# HELP e_total Ends.\n# TYPE e_total counter\ne_total{reason=\"idle\"} 2\ne_total{reason=\"lru\"} 0\n";
        assert_eq!(page.render().expect("a page"), expected);
    }

    #[test]
    fn a_name_used_twice_is_an_error() {
        let mut page = Page::default();
        page.gauge("one", "One.", 1);
        page.gauge("one", "One.", 2);
        assert!(page.render().is_err());
    }
}
