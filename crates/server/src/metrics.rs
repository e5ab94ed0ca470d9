//! `/metrics`: what the service counted and timed, in Prometheus's text format. No label says whose anything is.

use heapstead_service::{ContextMetrics, KeptMetrics, Metrics};
use std::fmt::{Display, Write};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page, metric by metric.
pub fn page(metrics: &Metrics) -> String {
    let mut page = Page(String::new());
    let ends = metrics.executions.iter().map(|(status, count)| (status.as_str(), *count));
    page.labelled("heapstead_executions_total", "Executions that have ended, by how.", "status", ends);
    page.gauge("heapstead_executions_running", "Executions that run now.", metrics.running);
    page.gauge("heapstead_executions_queued", "Executions that wait for their turn.", metrics.queued);
    for (name, help, times) in [
        ("heapstead_execution_queue_ms", "From being accepted to the start of the code.", &metrics.queue_ms),
        ("heapstead_execution_run_ms", "How long code ran.", &metrics.run_ms),
        ("heapstead_execution_snapshot_ms", "From the end of the code until its heap was stored.", &metrics.snapshot_ms),
    ] {
        page.histogram(name, help, &times.buckets, times.count, times.sum_ms);
    }
    if let Some(kept) = &metrics.kept {
        of_what_is_kept(&mut page, kept);
    }
    if let Some(contexts) = &metrics.contexts {
        of_contexts(&mut page, contexts);
    }
    page.0
}

fn of_what_is_kept(page: &mut Page, kept: &KeptMetrics) {
    if let Some(sessions) = kept.sessions {
        page.gauge("heapstead_sessions", "Opened sessions that have not ended.", sessions);
    }
    if let Some(bytes) = kept.heap_bytes {
        page.gauge("heapstead_heap_bytes", "Bytes of all heaps, as their owners have them.", bytes);
    }
    let lookups = [("hit", kept.heap_cache_hits), ("miss", kept.heap_cache_misses)];
    page.labelled(
        "heapstead_heap_cache_lookups_total",
        "Heaps that were needed: in memory already, or read from the store.",
        "result",
        lookups,
    );
    page.counter("heapstead_isolation_violations_total", "Requests for a session or context of somebody else.", kept.isolation_violations);
}

fn of_contexts(page: &mut Page, contexts: &ContextMetrics) {
    // What can't be asked is missing, so that nobody takes it for zero.
    page.gauge("context_store_up", "Whether the context store can be read and written.", u8::from(contexts.is_up));
    if let Some(stats) = &contexts.stats {
        if let Some(sessions) = stats.sessions {
            page.gauge("context_store_sessions", "Contexts that are kept.", sessions);
        }
        if let Some(max) = stats.sessions_max {
            page.gauge("context_store_sessions_max", "Contexts that may be kept.", max);
        }
        page.gauge("context_store_memory_bytes", "Memory that the store itself takes.", stats.memory_bytes);
        if let Some(max) = stats.memory_bytes_max {
            page.gauge("context_store_memory_bytes_max", "Memory that it may take.", max);
        }
        page.labelled("context_store_evictions_total", "Contexts that had to leave, by reason.", "reason", stats.evictions.by_reason());
    }
    let reads = &contexts.store.read_latency_ms;
    page.histogram("context_read_latency_ms", "How long reads of contexts took.", &reads.buckets, reads.count, reads.sum_ms);
    let calls = [
        ("recorded", contexts.recorder.recorded),
        ("dropped", contexts.recorder.dropped + contexts.dropped),
        ("failed", contexts.recorder.failed),
    ];
    page.labelled("context_calls_total", "Tool calls to be recorded, by what came of it.", "result", calls);
    page.counter("context_store_unavailable_total", "Times that the store could not be used.", contexts.counts.unavailable);
    page.counter("context_store_conflicts_total", "Writes that came too late, and were done again.", contexts.store.conflicts);
    page.counter("context_cleared_total", "Contexts cleared on request.", contexts.counts.cleared);
    page.counter("context_quarantined_total", "Stored contexts that could not be read, and were moved aside.", contexts.counts.quarantined);
}

struct Page(String);

impl Page {
    fn line(&mut self, text: impl Display) {
        // Writing to a string does not fail.
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
    fn a_histogram_ends_with_everything() {
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
