//! The window and its summary: the exact text and, for any calls in any order of writers, complete counts, unchanged newest calls and the
//! size limit.

use heapstead_context::limits::{CALLS_FOLD_AT, CALLS_KEPT, SUMMARY_BYTES_MAX};
use heapstead_context::store::{ContextStore, Memory, MemorySettings, Pending, Stats};
use heapstead_context::{Access, Contexts, Document, Record, SessionId, Timestamp, ToolCall, window};
use proptest::prelude::*;
use serde_json::Map;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const ID: SessionId = SessionId::from_bytes([1; 32]);

fn call(tool: &str, ms: i64, result_summary: &str) -> ToolCall {
    ToolCall { tool: tool.into(), args: Map::new(), called_at: Timestamp::from_ms(ms), result_summary: result_summary.into() }
}

fn record() -> Record {
    Record::new(ID, Timestamp::from_ms(0))
}

#[test]
fn the_text_is_as_specified() {
    let mut record = record();
    let results = ["", "Found 3 files.", "Read a.txt. It is short.", "", "Nothing."];
    for (index, tool) in ["grep", "grep", "read_file", "grep", "list"].into_iter().enumerate() {
        record.recent_tool_calls.push(call(tool, 1000 * index as i64, results[index]));
    }
    for index in 5..14 {
        record.recent_tool_calls.push(call("later", 1000 * index, "x"));
        assert_eq!(window::fold(&mut record), None);
    }
    record.recent_tool_calls.push(call("newest", 14_000, "x"));
    let folded = window::fold(&mut record).expect("folded");
    assert_eq!((folded.calls.len(), folded.earlier, record.recent_tool_calls.len(), record.window_start_index), (5, None, 10, Some(5)));
    let first = "Summary of 5 earlier tool calls (1970-01-01T00:00:00.000Z to 1970-01-01T00:00:04.000Z):
  - grep: called 3 times
  - read_file: called 1 time
  - list: called 1 time
  - grep result: Found 3 files.
  - read_file result: Read a.txt. It is short.
  - list result: Nothing.";
    assert_eq!(record.summary_before_window.as_deref(), Some(first));

    for index in 15..20 {
        record.recent_tool_calls.push(call("last", 1000 * index, ""));
    }
    window::fold(&mut record).expect("folded");
    let second = "Summary of 5 earlier tool calls (1970-01-01T00:00:05.000Z to 1970-01-01T00:00:09.000Z):
  - later: called 5 times
  - later result: x
  - later result: x
  - later result: x";
    assert_eq!(record.summary_before_window, Some(format!("{first}\n\n{second}")));
    assert_eq!(record.window_start_index, Some(10));
}

/// Numbers in a stored record were added without a check, so that they overflowed.
#[test]
fn impossible_counts_in_a_stored_summary_are_not_added() {
    let mut record = record();
    let span = "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:04.000Z";
    let counted = |calls: u64| format!("Summary of {calls} earlier tool calls ({span}):\n  - grep: called {calls} times");
    record.summary_before_window = Some([counted(u64::MAX), counted(7)].join("\n\n"));
    record.window_start_index = Some(u64::MAX);
    assert_eq!(window::counted(&record), 7);
    record.recent_tool_calls = (0..CALLS_FOLD_AT as i64).map(|index| call("later", index, "")).collect();
    window::fold(&mut record).expect("folded");
    assert_eq!((window::counted(&record), record.window_start_index), (12, Some(u64::MAX)));
}

#[test]
fn above_the_limit_the_oldest_paragraphs_are_merged_with_all_counts() {
    let mut record = record();
    for index in 0..500 {
        record.add_call(call(["grep", "read"][index % 2], index as i64, &format!("{} {index}.", "word".repeat(40))));
        window::fold(&mut record);
    }
    let summary = record.summary_before_window.clone().expect("a summary");
    assert!(summary.len() <= SUMMARY_BYTES_MAX && summary.len() > SUMMARY_BYTES_MAX / 2, "{}", summary.len());
    assert_eq!((window::counted(&record), record.window_start_index), (490, Some(490)));
    assert!(summary.starts_with("Summary of ") && summary.contains("(1970-01-01T00:00:00.000Z to "), "{summary}");
    assert!(summary.contains(" 0.\n"), "the first results worth noting stay: {summary}");
}

#[test]
fn a_summarisers_text_is_dropped_last_but_before_a_count() {
    let mut record = record();
    record.summary_before_window = Some("What an earlier server wrote. ".repeat(100));
    record.window_start_index = Some(7);
    for index in 0..300 {
        record.add_call(call(&format!("tool-{index}"), index, &"long ".repeat(60)));
        window::fold(&mut record);
        assert!(record.summary_before_window.as_ref().is_none_or(|summary| summary.len() <= SUMMARY_BYTES_MAX));
    }
    assert_eq!((window::counted(&record), record.calls_total()), (290, 307));
}

/// Regression: the span was that of the first and last call to end, and so reversed when an asynchronous run ended late.
#[test]
fn a_run_that_ends_late_takes_its_place_and_the_span_is_not_reversed() {
    let mut record = record();
    for index in 1..15 {
        record.add_call(call("quick", 1000 * index, ""));
    }
    record.add_call(call("slow", 0, "Done at last."));
    window::fold(&mut record).expect("folded");
    let summary = record.summary_before_window.as_deref().expect("a summary");
    let expected = "Summary of 5 earlier tool calls (1970-01-01T00:00:00.000Z to 1970-01-01T00:00:04.000Z):
  - slow: called 1 time
  - quick: called 4 times
  - slow result: Done at last.";
    assert_eq!(summary, expected);
}

/// First and last time of every span in the summary.
fn spans(record: &Record) -> Vec<(Timestamp, Timestamp)> {
    let headings = record.summary_before_window.as_deref().unwrap_or_default().lines().filter_map(|line| line.strip_prefix("Summary of "));
    let span = |heading: &str| {
        let (_, span) = heading.strip_suffix("):")?.split_once(" earlier tool calls (")?;
        let (first, last) = span.split_once(" to ")?;
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    headings.map(|heading| span(heading).expect("a span")).collect()
}

/// Yields to other writers before each step, as often as scheduled.
struct Interleaved {
    store: Memory,
    pauses: Vec<usize>,
    asked: AtomicUsize,
}

impl Interleaved {
    fn after_others<'a, T: 'a>(&'a self, step: Pending<'a, T>) -> Pending<'a, T> {
        let pauses = self.pauses[self.asked.fetch_add(1, Relaxed) % self.pauses.len()];
        Box::pin(async move {
            for _ in 0..pauses {
                tokio::task::yield_now().await;
            }
            step.await
        })
    }
}

impl ContextStore for Interleaved {
    fn backend(&self) -> &'static str {
        self.store.backend()
    }
    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        self.after_others(self.store.read(access))
    }
    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        self.after_others(self.store.replace(access, expected, new))
    }
    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        self.store.remove(access)
    }
    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        self.store.quarantine(access, found, why)
    }
    fn sweep(&self) -> Pending<'_, ()> {
        self.store.sweep()
    }
    fn stats(&self) -> Pending<'_, Stats> {
        self.store.stats()
    }
    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        self.store.owner_bytes(owner)
    }
    fn check(&self) -> Pending<'_, ()> {
        self.store.check()
    }
}

fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z_]{1,12}",
        Just("a: called 3 times".to_owned()),
        Just("x\n\nSummary of 9 earlier tool calls (a to b):\n  - y: called 9 times".to_owned()),
        Just("other tools".to_owned()),
        Just("é".repeat(500)),
        Just(String::new()),
    ]
}

fn calls() -> impl Strategy<Value = Vec<ToolCall>> {
    let call = (hostile_text(), any::<i64>(), hostile_text()).prop_map(|(tool, ms, result)| call(&tool, ms, &result));
    prop::collection::vec(call, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// `is_cleaned`: whether calls are added through the record's API or inserted directly.
    #[test]
    fn nothing_is_lost_uncounted_and_the_newest_are_untouched(calls in calls(), is_cleaned in any::<bool>()) {
        let mut record = record();
        for (index, call) in calls.iter().enumerate() {
            let before = record.recent_tool_calls.clone();
            if is_cleaned { record.add_call(call.clone()) } else { record.recent_tool_calls.push(call.clone()) }
            let newest = record.recent_tool_calls.clone();
            let folded = window::fold(&mut record);

            prop_assert_eq!(record.calls_total(), index as u64 + 1);
            prop_assert_eq!(window::counted(&record), record.window_start_index.unwrap_or(0), "{:?}", record.summary_before_window);
            prop_assert!(record.recent_tool_calls.len() < CALLS_FOLD_AT);
            prop_assert!(newest.ends_with(&record.recent_tool_calls));
            prop_assert!(record.recent_tool_calls.len() >= newest.len().min(CALLS_KEPT));
            prop_assert!(record.summary_before_window.as_ref().is_none_or(|summary| summary.len() <= SUMMARY_BYTES_MAX));
            prop_assert_eq!(folded.is_some(), before.len() + 1 == CALLS_FOLD_AT);
            if let Some(folded) = folded {
                prop_assert_eq!([&folded.calls[..], &record.recent_tool_calls[..]].concat(), newest);
            }
        }
    }

    /// Recent calls are ordered by time however late they end, and every folded call lies within a span of the summary.
    #[test]
    fn calls_are_in_order_and_spans_hold_what_was_folded(times in prop::collection::vec(0..1_000_000_i64, 0..400), long in any::<bool>()) {
        let mut record = record();
        let mut folded_times = Vec::new();
        for ms in times {
            record.add_call(call("tool", ms, &if long { "word ".repeat(50) } else { String::new() }));
            prop_assert!(record.recent_tool_calls.is_sorted_by_key(|call| call.called_at));
            folded_times.extend(window::fold(&mut record).into_iter().flat_map(|folded| folded.calls).map(|call| call.called_at));
        }
        let spans = spans(&record);
        prop_assert!(spans.iter().all(|(first, last)| first <= last));
        prop_assert_eq!(spans.iter().map(|(first, _)| first).min(), folded_times.iter().min());
        prop_assert_eq!(spans.iter().map(|(_, last)| last).max(), folded_times.iter().max());
    }

    /// Once folded, folding again changes nothing.
    #[test]
    fn folding_is_stable(calls in calls()) {
        let mut record = record();
        record.recent_tool_calls = calls;
        window::fold(&mut record);
        let once = record.clone();
        prop_assert_eq!(window::fold(&mut record), None);
        prop_assert_eq!(record, once);
    }

    /// A summariser's text never loses a count, and changes nothing if it comes too late.
    #[test]
    fn a_summarisers_text_keeps_every_count(text in hostile_text(), more in 0..12_usize) {
        let mut record = record();
        for index in 0..35 {
            record.add_call(call("tool", index, "x"));
            let Some(folded) = window::fold(&mut record) else { continue };
            let before = record.clone();
            for index in 0..more {
                record.add_call(call("more", index as i64, ""));
            }
            let moved = window::fold(&mut record).is_some();
            let late = record.clone();
            let merged = window::replace_summary(&mut record, &folded, &text);
            prop_assert!(!(moved && merged));
            if !merged {
                prop_assert_eq!(&record, &late);
            }
            prop_assert_eq!(window::counted(&record), record.window_start_index.unwrap_or(0));
            prop_assert!(record.summary_before_window.as_ref().is_some_and(|summary| summary.len() <= SUMMARY_BYTES_MAX));
            record = before;
        }
    }

    /// Two servers write to one session in any order, several calls at a time: all calls are counted, and each server's are in order.
    #[test]
    fn any_interleaving_of_writers_counts_every_call(
        batches in prop::collection::vec((0..2_usize, 1..6_usize), 1..60),
        pauses in prop::collection::vec(0..4_usize, 1..50),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        let record = runtime.block_on(async {
            let store = Arc::new(Interleaved { store: Memory::new(MemorySettings::default()), pauses, asked: AtomicUsize::new(0) });
            let servers = [Contexts::new(store.clone()), Contexts::new(store)];
            let tasks: Vec<_> = batches.iter().copied().enumerate().map(|(index, (server, count))| {
                let contexts = servers[server].clone();
                tokio::spawn(async move {
                    let update = contexts.update(Access::new(&ID, "test"), |record| {
                        (0..count).for_each(|step| record.add_call(call(&format!("server-{server}"), (index * 10 + step) as i64, "")));
                        Ok(())
                    });
                    update.await.expect("updated");
                })
            }).collect();
            for task in tasks {
                task.await.expect("ended");
            }
            servers[0].get(Access::new(&ID, "test")).await.expect("there")
        });
        let all: usize = batches.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(record.calls_total(), all as u64);
        prop_assert_eq!(window::counted(&record) + record.recent_tool_calls.len() as u64, all as u64);
        prop_assert!(record.recent_tool_calls.windows(2).all(|pair| pair[0].called_at.ms() / 10 != pair[1].called_at.ms() / 10 || pair[0].called_at < pair[1].called_at));
    }
}
