//! `heapstead doctor --limits`: the most memory that a server with these flags can use, and what it consists of.

use super::colours::Colours;
use super::flags::ServeOptions;
use super::table::Table;
use crate::http::{HEAD_BYTES_MAX, SHORT_RESPONSE_BYTES};
use crate::mcp::CONNECTION_BYTES_MAX;
use crate::rest::{TRANSFER_BYTES_MAX, TRANSFERS_MAX};
use heapstead_engine::{ANSWER_BYTES_MAX, SHORT_ANSWER_BYTES};
use heapstead_service::{EVENT_BYTES_MAX, HEAP_CACHE_BYTES_MAX, STATELESS_OUTPUT_BYTES_MAX, TOPICS_BYTES_MAX};
use heapstead_store::{READERS_MAX, SQLITE_CONNECTION_MB};
use heapstead_types::limits::{RESULT_BYTES_MAX, snapshot_mb_max, worker_mb_max};
use serde::Serialize;

/// The most that can be in use at once. All sizes in MB, rounded up.
#[derive(Debug, Serialize)]
pub struct MemoryBound {
    /// Of the server process.
    pub server_mb: u64,
    pub server: Vec<Contributor>,
    /// Of zygote and workers, which are other processes.
    pub workers_mb: u64,
    pub workers: Vec<Contributor>,
}

#[derive(Debug, Serialize)]
pub struct Contributor {
    pub name: &'static str,
    pub mb: u64,
    pub formula: String,
    /// The flag that changes it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<&'static str>,
}

/// Program, thread stacks, allocator overhead, catalogs and their bundles, token and key files.
const BASE_MB: u64 = 128;
/// Head of a request and write buffer of its response.
const CONNECTION_KIB: u64 = 2 * (HEAD_BYTES_MAX as u64 >> 10);
/// A body in memory: once as bytes and once as parsed JSON.
const BODY_COPIES: u64 = 2;
/// Record, headers (at most one request head), place in the queue and tasks of an accepted run.
const ACCEPTED_KIB: u64 = 192;
/// The source itself, and a copy while it is sent to the worker or stored in the log.
const SOURCE_COPIES: u64 = 2;
/// A result is in the record that is stored and in the one that callers wait for.
const ANSWER_COPIES: u64 = 2;
/// SQLite copies a text twice while it is written, and there is one writer.
const COMMIT_COPIES: u64 = 2;
/// Output in transit: 16 messages of 64 KiB from a worker, the read buffer, what is being written (`engine/src/engine.rs`), and a short answer.
const OUTPUT_IN_TRANSIT_KIB: u64 = 17 * 64 + 256 + 2 * (SHORT_ANSWER_BYTES as u64 >> 10);
/// Short inputs of a run: as its worker sends them and as they are stored, with the room that a growing buffer may have. Longer ones count as
/// answers.
const INPUTS_KIB: u64 = 6 * (SHORT_ANSWER_BYTES as u64 >> 10);
/// A result that is shown over MCP: as text, as JSON, and twice while it is shortened. It is done without waiting, so one thread has one.
const SHOWN_COPIES: u64 = 4;
/// The zygote: V8 and the base heap.
const ZYGOTE_MB: u64 = 128;

impl MemoryBound {
    pub fn new(options: &ServeOptions) -> Self {
        let mut server = vec![fixed("program", BASE_MB, "fixed")];
        server.extend([of_clients(options), of_runs(options), of_stores(options)].into_iter().flatten());
        let workers = of_workers(options);
        let sum = |contributors: &[Contributor]| contributors.iter().map(|contributor| contributor.mb).sum();
        Self { server_mb: sum(&server), workers_mb: sum(&workers), server, workers }
    }

    /// As a table for people.
    pub fn table(&self, colours: Colours) -> String {
        let mut table = Table::new(colours, ["memory", "MB at most", "computed from", "flag"]);
        for (title, total, contributors) in [("server", self.server_mb, &self.server), ("workers", self.workers_mb, &self.workers)] {
            for contributor in contributors {
                let flag = contributor.flag.unwrap_or_default();
                table.row([
                    format!("{title}: {}", contributor.name).into(),
                    contributor.mb.to_string().into(),
                    contributor.formula.clone().into(),
                    flag.into(),
                ]);
            }
            table.row([format!("{title}: all").into(), total.to_string().into(), "sum".into(), "".into()]);
        }
        table.text()
    }
}

fn fixed(name: &'static str, mb: u64, formula: impl Into<String>) -> Contributor {
    Contributor { name, mb, formula: formula.into(), flag: None }
}

fn by_flag(name: &'static str, mb: u64, flag: &'static str, formula: String) -> Contributor {
    Contributor { name, mb, formula, flag: Some(flag) }
}

fn kib(count: u64, kib: u64) -> u64 {
    (count * kib).div_ceil(1 << 10)
}

fn mb(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// What clients make the server hold.
fn of_clients(options: &ServeOptions) -> Vec<Contributor> {
    // Over stdio there is one connection, which counts as a port.
    let ports = [options.http_port, options.sse_port].into_iter().flatten().count().max(1) as u64;
    let limits = options.clients.limits();
    let (connections, requests, mcp_connections) = (limits.connections_max, limits.requests_max(), limits.mcp_connections_max());
    let (bodies_mb, responses_mb) = (mb(limits.body_bytes_max), mb(limits.response_bytes_max));
    let (short_kib, mcp_kib) = (SHORT_RESPONSE_BYTES >> 10, (CONNECTION_BYTES_MAX as u64).div_ceil(1 << 10));
    vec![
        by_flag(
            "connections",
            kib(ports * connections, CONNECTION_KIB),
            "--max-connections",
            format!("{ports} port(s) × {connections} connections × {CONNECTION_KIB} KiB"),
        ),
        by_flag(
            "request bodies",
            bodies_mb * BODY_COPIES,
            "--max-body-mb",
            format!("{bodies_mb} MB × {BODY_COPIES}: as bytes and as JSON"),
        ),
        by_flag(
            "responses",
            responses_mb + kib(requests, short_kib),
            "--max-response-mb",
            format!("{responses_mb} MB of long ones, and {requests} requests in progress × {short_kib} KiB"),
        ),
        by_flag(
            "MCP connections",
            kib(ports * mcp_connections, mcp_kib),
            "--max-connections",
            format!("{ports} port(s) × {mcp_connections} connections × {mcp_kib} KiB"),
        ),
    ]
}

/// What queued and running executions take in the server.
fn of_runs(options: &ServeOptions) -> Vec<Contributor> {
    let capacity = &options.capacity;
    let (slots, queued, source_mb) = (capacity.max_concurrent_executions, capacity.max_queued, capacity.max_source_mb);
    let answer_mb = capacity.max_answer_mb;
    vec![
        by_flag(
            "source",
            source_mb * SOURCE_COPIES,
            "--max-source-mb",
            format!("{source_mb} MB, queued and running, × {SOURCE_COPIES} while it is sent or stored"),
        ),
        by_flag(
            "queued executions",
            kib(queued + slots, ACCEPTED_KIB),
            "--max-queued",
            format!("({queued} queued + {slots} running) × {ACCEPTED_KIB} KiB"),
        ),
        by_flag(
            "answers of workers",
            answer_mb * ANSWER_COPIES,
            "--max-answer-mb",
            format!("{answer_mb} MB × {ANSWER_COPIES}: to be stored and to be shown"),
        ),
        by_flag(
            "output in transit",
            kib(slots, OUTPUT_IN_TRANSIT_KIB),
            "--max-concurrent-executions",
            format!("{slots} slots × {OUTPUT_IN_TRANSIT_KIB} KiB"),
        ),
        by_flag("recorded inputs", kib(slots, INPUTS_KIB), "--max-concurrent-executions", format!("{slots} slots × {INPUTS_KIB} KiB")),
    ]
}

/// What stores take in the server.
fn of_stores(options: &ServeOptions) -> Vec<Contributor> {
    if options.stateless {
        let outputs_mb = mb(STATELESS_OUTPUT_BYTES_MAX);
        return vec![fixed("outputs", outputs_mb * 2, format!("{outputs_mb} MB until they are sent × 2: as text and as JSON"))];
    }
    let databases = 1 + u64::from(options.contexts.has_database());
    let (readers, transfer_mb, result_mb) = (READERS_MAX as u64, mb(TRANSFER_BYTES_MAX), mb(RESULT_BYTES_MAX as u64));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    vec![
        fixed("heap cache", mb(HEAP_CACHE_BYTES_MAX), "fixed"),
        fixed("heap transfers", TRANSFERS_MAX * transfer_mb, format!("{TRANSFERS_MAX} at a time × {transfer_mb} MB")),
        fixed("events", mb(EVENT_BYTES_MAX + TOPICS_BYTES_MAX), "events that listeners have not read, and subscriptions"),
        fixed(
            "database",
            databases * (readers + 1) * SQLITE_CONNECTION_MB + mb(ANSWER_BYTES_MAX as u64) * COMMIT_COPIES,
            format!(
                "{databases} database(s) × {} connections × {SQLITE_CONNECTION_MB} MB, and the text that is being written × {COMMIT_COPIES}",
                readers + 1
            ),
        ),
        fixed(
            "results that are read",
            (readers + threads * SHOWN_COPIES) * result_mb,
            format!("({readers} readers + {threads} threads × {SHOWN_COPIES}) × {result_mb} MB"),
        ),
        by_flag("contexts", options.contexts.memory_mb(), "--context-memory-mb", format!("{} MB", options.contexts.memory_mb())),
    ]
}

/// What other processes take, and the heaps that they share with the server.
fn of_workers(options: &ServeOptions) -> Vec<Contributor> {
    let (slots, memory_mb) = (options.capacity.max_concurrent_executions, options.capacity.memory_mb());
    let (cap_mb, cap_mb_max) = (options.limits.limits().heap_mb, options.capacity.maxima(options.sharing()).heap_mb);
    let running = slots.min(memory_mb / worker_mb_max(cap_mb).max(1));
    vec![
        fixed("zygote", ZYGOTE_MB, "fixed"),
        by_flag(
            "workers",
            memory_mb.min(slots * worker_mb_max(cap_mb_max)),
            "--max-memory-mb",
            format!("{memory_mb} MB; {running} runs with the default cap of {cap_mb} MB, each 3 × {cap_mb} + 160 MB"),
        ),
        by_flag(
            "heaps of running executions",
            memory_mb * 4 / 3,
            "--max-memory-mb",
            format!(
                "in and out: 2 × (2 × cap + 16) MB per run, {} MB for the default cap; at most 4/3 of the workers",
                2 * snapshot_mb_max(cap_mb)
            ),
        ),
        by_flag("live sessions", options.live.memory_mb_max(), "--live-max-mb", "above it, sessions are evicted within seconds".into()),
    ]
}
