//! `/metrics`: counters and timings of the service in the Prometheus text format. No label identifies an owner.

use heapstead_service::{ContextMetrics, Metrics, StoreMetrics};
use std::fmt::{Display, Write};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders the page.
pub fn page(metrics: &Metrics) -> String {
    let mut page = Page(String::new());
    let ends = metrics.executions.iter().map(|(status, count)| (status.as_str(), *count));
    page.labelled("heapstead_executions_total", "Finished executions by status.", "status", ends);
    page.gauge("heapstead_executions_running", "Running executions.", metrics.running);
    page.gauge("heapstead_executions_queued", "Queued executions.", metrics.queued);
    for (name, help, times) in [
        ("heapstead_execution_queue_ms", "Time from acceptance to the start of the code.", &metrics.queue_ms),
        ("heapstead_execution_run_ms", "Run time of the code.", &metrics.run_ms),
        ("heapstead_execution_snapshot_ms", "Time from the end of the code until its heap was stored.", &metrics.snapshot_ms),
    ] {
        page.histogram(name, help, &times.buckets, times.count, times.sum_ms);
    }
    if let Some(stores) = &metrics.stores {
        store_metrics(&mut page, stores);
    }
    if let Some(contexts) = &metrics.contexts {
        of_contexts(&mut page, contexts);
    }
    page.0
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
    page.counter(
        "heapstead_isolation_violations_total",
        "Requests for a session or context of another owner.",
        stores.isolation_violations,
    );
}

fn of_contexts(page: &mut Page, contexts: &ContextMetrics) {
    // A value that cannot be read is left out, because a zero would be wrong.
    page.gauge("context_store_up", "1 if the context store can be read and written, else 0.", u8::from(contexts.is_up));
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
    let reads = &contexts.store.read_latency_ms;
    page.histogram("context_read_latency_ms", "Latency of context reads.", &reads.buckets, reads.count, reads.sum_ms);
    let calls = [
        ("recorded", contexts.recorder.recorded),
        ("dropped", contexts.recorder.dropped + contexts.dropped),
        ("failed", contexts.recorder.failed),
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

struct Page(String);

impl Page {
    fn line(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{text}");
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "gauge");
        self.line(format_args!("{name} {value}"));
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(format_args!("{name} {value}"));
    }

    fn labelled(&mut self, name: &str, help: &str, label: &str, values: impl IntoIterator<Item = (&'static str, u64)>) {
        self.head(name, help, "counter");
        for (of, value) in values {
            self.line(format_args!("{name}{{{label}=\"{of}\"}} {value}"));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, buckets: &[(f64, u64)], count: u64, sum: f64) {
        self.head(name, help, "histogram");
        for (bound, within) in buckets {
            self.line(format_args!("{name}_bucket{{le=\"{bound}\"}} {within}"));
        }
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_ends_with_the_total() {
        let mut page = Page(String::new());
        page.histogram("t_ms", "Times.", &[(0.5, 1), (10.0, 3)], 4, 20.25);
        let expected = "# HELP t_ms Times.\n# TYPE t_ms histogram\nt_ms_bucket{le=\"0.5\"} 1\nt_ms_bucket{le=\"10\"} 3\n\
                        t_ms_bucket{le=\"+Inf\"} 4\nt_ms_sum 20.25\nt_ms_count 4\n";
        assert_eq!(page.0, expected);
    }

    #[test]
    fn counters_carry_their_label() {
        let mut page = Page(String::new());
        page.labelled("e_total", "Ends.", "reason", [("idle", 2), ("lru", 0)]);
        assert_eq!(page.0, "# HELP e_total Ends.\n# TYPE e_total counter\ne_total{reason=\"idle\"} 2\ne_total{reason=\"lru\"} 0\n");
    }
}
