//! Several processes on one store: runs this test binary again with one test, configured by environment variables.

use crate::place::{access, change, keys, new_session};
use crate::redis_server;
use heapstead_context::store::{ContextStore, Redis, RedisSettings, Sqlite, SqliteSettings};
use heapstead_context::{Contexts, Encrypted, Record, SessionId, Timestamp, ToolCall, window};
use serde_json::{Map, json};
use std::process::{Command, Stdio};
use std::sync::Arc;

pub const TASK: &str = "HEAPSTEAD_TEST_TASK";
pub const STORE: &str = "HEAPSTEAD_TEST_STORE";
pub const SESSION: &str = "HEAPSTEAD_TEST_SESSION";
const WRITERS: usize = 32;

/// Opens a store by its address: `sqlite:PATH`, `redis:URL`, either optionally prefixed with `encrypted:`.
pub fn open(address: &str) -> Arc<dyn ContextStore> {
    match address.split_once(':') {
        Some(("encrypted", address)) => Arc::new(Encrypted::new(open(address), keys())),
        Some(("sqlite", path)) => Arc::new(Sqlite::open(path.as_ref(), SqliteSettings::default()).expect("sqlite")),
        Some(("redis", url)) => Arc::new(Redis::open(url, &RedisSettings::default()).expect("redis")),
        _ => panic!("no store: {address}"),
    }
}

/// Runs this binary again with `task`, a test that does nothing without its environment variables.
pub fn process(task: &str, store: &str, session: &SessionId) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "--nocapture", task])
        .env(TASK, task)
        .env(STORE, store)
        .env(SESSION, session.to_string())
        .stdout(Stdio::piped());
    command
}

/// The store and session from the environment, if this process is to run `task`.
pub fn child_arguments(task: &str) -> Option<(String, SessionId)> {
    let is_child = std::env::var(TASK).is_ok_and(|requested| requested == task);
    is_child.then(|| (std::env::var(STORE).expect("a store"), std::env::var(SESSION).expect("a session").parse().expect("an id")))
}

pub fn call(tool: &str, ms: i64) -> ToolCall {
    ToolCall { tool: tool.into(), args: Map::new(), called_at: Timestamp::from_ms(ms), result_summary: format!("{tool} at {ms}.") }
}

async fn all_arrive(address: &str) {
    let session = new_session();
    let writers = [0, 1].map(|_| process("processes::one_of_two", address, &session).spawn().expect("process"));
    for (writer, name) in writers.into_iter().zip(["one", "two"]) {
        let output = writer.wait_with_output().expect("output");
        assert!(output.status.success(), "process {name}: {}", String::from_utf8_lossy(&output.stdout));
    }
    let record = Contexts::new(open(address)).get(access(&session)).await.expect("there");
    assert_eq!(record.custom.len(), 2 * WRITERS, "every update is there");
    assert_eq!(record.calls_total(), 2 * WRITERS as u64, "every call is counted");
    assert_eq!(window::counted(&record) + record.recent_tool_calls.len() as u64, 2 * WRITERS as u64, "in the text too");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two() {
    let Some((address, session)) = child_arguments("processes::one_of_two") else { return };
    let contexts = Contexts::new(open(&address));
    let process = std::process::id();
    let writers = (0..WRITERS).map(|index| {
        let contexts = contexts.clone();
        tokio::spawn(async move {
            let both = |record: &mut Record| {
                record.custom.insert(format!("{process}-{index}"), json!(index));
                record.add_call(call(&format!("tool-{}", index % 3), index as i64));
            };
            change(&contexts, &session, both).await.expect("updated");
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("ended");
    }
}

#[tokio::test]
async fn all_writes_of_64_writers_in_two_processes_reach_sqlite() {
    let folder = tempfile::tempdir().expect("folder");
    let address = format!("sqlite:{}", folder.path().join("contexts.db").display());
    all_arrive(&address).await;
    all_arrive(&format!("encrypted:{address}")).await;
}

#[tokio::test]
async fn all_writes_of_64_writers_in_two_processes_reach_redis() {
    let address = format!("redis:{}", redis_server::shared().url());
    all_arrive(&address).await;
    all_arrive(&format!("encrypted:{address}")).await;
}
