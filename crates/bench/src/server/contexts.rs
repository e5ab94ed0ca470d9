//! Benchmarks of conversation contexts: what recording adds to a call, and what a read costs in each store against the bare look-up.

use super::process::Server;
use super::{CODE, WARM_UP};
use crate::report::{Bar, Report, Row};
use crate::sample::{Effort, Samples};
use crate::{fail, instructions};
use heapstead_context::store::{ContextStore, KEY_PREFIX, Memory, MemorySettings, Redis, RedisSettings, Sqlite, SqliteSettings};
use heapstead_context::{Access, Audited, Contexts, Meter, Metered, NewResource, Record, ResourceType, SessionId, Timestamp, ToolCall};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use serde_json::json;
use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Reads timed as one batch where a single read is too short to time.
const TOGETHER: u32 = 200;
const MANY: usize = 10_000;
const FEW: usize = 100;

pub async fn measure(effort: Effort, report: &mut Report) {
    eprintln!("measuring conversation contexts …");
    recording(effort, report).await;
    let latencies = [in_memory(effort, report).await, in_sqlite(effort, report).await, in_redis(effort, report).await];
    many_sessions(effort, report).await;
    println!("\ncontext_read_latency_ms        p50        p99");
    for (store, times) in ["memory", "sqlite", "redis"].into_iter().zip(latencies) {
        println!("{store:<24} {:>10.4} {:>10.4}", times.median(), times.quantile(0.99));
    }
}

/// The same run in a session of a server that records it and of one that does not.
async fn recording(effort: Effort, report: &mut Report) {
    let servers = [Server::start(&["--http-port", "0"]), Server::start(&["--http-port", "0", "--context-store", "none"])];
    let mut connections = [servers[0].connect().await, servers[1].connect().await];
    let run = json!({ "code": CODE, "session": "bench", "wait_secs": 60 });
    let mut times = [const { Vec::new() }; 2];
    for round in 0..effort.choose(60, 400) + WARM_UP {
        // The order alternates, so that neither server always runs after the other.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for which in order {
            let began = Instant::now();
            let record = connections[which].post("/api/exec", &run).await;
            let took = began.elapsed();
            if record["status"] != "completed" {
                fail(&format!("a run ended as {record}"));
            }
            if round >= WARM_UP {
                times[which].push(took);
            }
        }
    }
    let [with, without] = &times;
    report.add_pairs("a tool call with recording, against without", with, without, 1.05);
}

async fn in_memory(effort: Effort, report: &mut Report) -> Samples {
    let (contexts, session) = filled(Memory::new(MemorySettings::default()), FEW).await;
    let record = read(&contexts, &session).await;
    let bare: HashMap<SessionId, Record> = (0..FEW).map(|number| (id(number), (*record).clone())).collect();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(200, 1000) + WARM_UP {
        let mine = many_reads(&contexts, &session).await;
        let began = Instant::now();
        for _ in 0..TOGETHER {
            black_box(bare.get(black_box(&session)).cloned());
        }
        if round >= WARM_UP {
            theirs.push(began.elapsed() / TOGETHER);
            ours.push(mine);
        }
    }
    report.add_pairs("context read in memory, against a hash map and a clone", &ours, &theirs, 3.0);
    Samples::of(&ours)
}

/// Baseline: a bare look-up of a record in the same database.
const SELECT: &str = "SELECT record FROM context_records WHERE session_id = ?";

async fn in_sqlite(effort: Effort, report: &mut Report) -> Samples {
    let folder = super::process::folder();
    let (contexts, session, bare) = sqlite(folder.path()).await;
    let mut select = bare.prepare(SELECT).unwrap_or_else(|error| fail(&error.to_string()));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(200, 1000) + WARM_UP {
        let mine = many_reads(&contexts, &session).await;
        let began = Instant::now();
        for _ in 0..TOGETHER {
            bare_read(&mut select, &session);
        }
        if round >= WARM_UP {
            theirs.push(began.elapsed() / TOGETHER);
            ours.push(mine);
        }
    }
    report.add_pairs("context read in SQLite, against a prepared SELECT", &ours, &theirs, 1.5);
    counted_in_sqlite(effort, report);
    Samples::of(&ours)
}

/// A filled store and a separate connection to the same database.
async fn sqlite(folder: &Path) -> (Contexts, SessionId, rusqlite::Connection) {
    let path = folder.join("context.db");
    let store = Sqlite::open(&path, SqliteSettings::default()).unwrap_or_else(|error| fail(&error.to_string()));
    let (contexts, session) = filled(store, FEW).await;
    let bare = rusqlite::Connection::open(&path).unwrap_or_else(|error| fail(&error.to_string()));
    (contexts, session, bare)
}

fn bare_read(select: &mut rusqlite::Statement<'_>, session: &SessionId) {
    let bytes: rusqlite::Result<Vec<u8>> = select.query_row([session.as_bytes()], |row| row.get(0));
    black_box(bytes.unwrap_or_else(|error| fail(&error.to_string())));
}

/// `heapstead-bench --read-contexts WAY ROUNDS` only reads a context from SQLite that many times, under callgrind.
pub const READS_FLAG: &str = "--read-contexts";
/// Through the store, or with a bare SELECT.
const WAYS: [&str; 2] = ["store", "select"];
/// Rounds of the run that is subtracted, which also warms every cache.
const ROUNDS_BEFORE: u32 = 20;

pub async fn reads(way: &str, rounds: u32) {
    let folder = super::process::folder();
    let (contexts, session, bare) = sqlite(folder.path()).await;
    let mut select = bare.prepare(SELECT).unwrap_or_else(|error| fail(&error.to_string()));
    for _ in 0..rounds {
        match way {
            "store" => drop(black_box(read(&contexts, &session).await)),
            "select" => bare_read(&mut select, &session),
            other => fail(&format!("`{other}` is not a way to read: expected one of {WAYS:?}")),
        }
    }
}

/// The same comparison in instructions, which do not depend on the machine or its load.
fn counted_in_sqlite(effort: Effort, report: &mut Report) {
    const WHAT: &str = "context read in SQLite, instructions against that SELECT";
    let count = |way: &str| instructions::of_one_round(&[READS_FLAG.as_ref(), way.as_ref()], ROUNDS_BEFORE, effort.choose(200, 2000));
    let row = match WAYS.map(count) {
        [Ok(store), Ok(select)] => {
            let detail = format!("{store:.0} instructions against {select:.0}, counted by callgrind");
            Row::new(WHAT, " ×", Bar::AtMost(1.5), store / select, (store / select, store / select), detail)
        }
        // A missing count counts as a missed bar.
        [Err(why), _] | [_, Err(why)] => Row::new(WHAT, " ×", Bar::AtMost(1.5), f64::NAN, (f64::NAN, f64::NAN), why),
    };
    report.add(row);
}

async fn in_redis(effort: Effort, report: &mut Report) -> Samples {
    let server = RedisServer::start();
    let url = server.url();
    let redis = Redis::open(&url, &RedisSettings::default()).unwrap_or_else(|error| fail(&error.to_string()));
    let (contexts, session) = filled(redis, FEW).await;
    let client = redis::Client::open(url).unwrap_or_else(|error| fail(&error.to_string()));
    let bare = ConnectionManager::new_with_config(client, ConnectionManagerConfig::new()).await;
    let mut bare = bare.unwrap_or_else(|error| fail(&error.to_string()));
    let key = format!("{KEY_PREFIX}{session}");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(500, 5000) + WARM_UP {
        let began = Instant::now();
        black_box(read(&contexts, &session).await);
        let mine = began.elapsed();
        let began = Instant::now();
        let bytes: redis::RedisResult<Vec<u8>> = redis::cmd("GET").arg(&key).query_async(&mut bare).await;
        black_box(bytes.unwrap_or_else(|error| fail(&error.to_string())));
        if round >= WARM_UP {
            theirs.push(began.elapsed());
            ours.push(mine);
        }
    }
    report.add_pairs("context read in Redis, against a bare GET", &ours, &theirs, 1.5);
    Samples::of(&ours)
}

/// Reads of the same session in a large store and in a small one.
async fn many_sessions(effort: Effort, report: &mut Report) {
    let settings = || MemorySettings { sessions_max: MANY * 2, ..MemorySettings::default() };
    let ((many, session), (few, _)) = (filled(Memory::new(settings()), MANY).await, filled(Memory::new(settings()), FEW).await);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(200, 1000) + WARM_UP {
        let (mine, their) = (many_reads(&many, &session).await, many_reads(&few, &session).await);
        if round >= WARM_UP {
            ours.push(mine);
            theirs.push(their);
        }
    }
    report.add_pairs("context read with 10,000 sessions held, against 100", &ours, &theirs, 1.3);
}

/// A metered and audited store, as the server builds it, with a conversation of some length in every session. Returns the id of the first.
async fn filled(store: impl ContextStore, sessions: usize) -> (Contexts, SessionId) {
    let store = Metered::new(Audited::new(store));
    let _meter: Arc<Meter> = store.meter();
    let contexts = Contexts::new(store);
    for number in 0..sessions {
        let session = id(number);
        let fill = |record: &mut Record| {
            let now = Timestamp::from_ms(1_800_000_000_000);
            for call in 0..8 {
                let args = json!({ "code": format!("await fetch('https://example.org/{call}')"), "wait_secs": 10 });
                let args = args.as_object().cloned().unwrap_or_default();
                record.add_call(ToolCall {
                    tool: "run_js".into(),
                    args,
                    called_at: now,
                    result_summary: "Three documents, the newest of 2025.".into(),
                });
            }
            for document in 0..10 {
                let resource_id = format!("document-{document}");
                let new = NewResource {
                    resource_id,
                    resource_type: ResourceType::Document,
                    content_hash: "ab".repeat(32),
                    summary: "About whales.".into(),
                };
                record.add_resource(new, now)?;
            }
            record.add_search("blue whales", 3, now)
        };
        contexts.update(Access::new(&session, "bench"), fill).await.unwrap_or_else(|error| fail(&error.to_string()));
    }
    (contexts, id(0))
}

fn id(number: usize) -> SessionId {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    SessionId::from_bytes(bytes)
}

async fn read(contexts: &Contexts, session: &SessionId) -> Arc<Record> {
    contexts.get(Access::new(session, "bench")).await.unwrap_or_else(|error| fail(&error.to_string()))
}

/// Average duration of one of many consecutive reads.
async fn many_reads(contexts: &Contexts, session: &SessionId) -> Duration {
    let began = Instant::now();
    for _ in 0..TOGETHER {
        black_box(read(contexts, session).await);
    }
    began.elapsed() / TOGETHER
}

/// A private Redis server on a socket.
struct RedisServer {
    child: Child,
    folder: TempDir,
}

impl RedisServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|error| fail(&error.to_string()));
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/redis");
        let mut command = Command::new(program);
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(folder.path().join("redis.sock")).arg("--dir").arg(folder.path());
        let child = command.stdout(Stdio::null()).spawn().unwrap_or_else(|error| fail(&format!("Redis does not start: {error}")));
        let server = Self { child, folder };
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(server.folder.path().join("redis.sock")).is_err() {
            if began.elapsed() > Duration::from_secs(120) {
                fail("Redis does not answer");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("redis.sock").display())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
