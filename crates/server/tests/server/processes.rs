//! The processes of a running server, seen through `/proc`: a cancelled worker is dead before the response is sent, and a dead zygote is
//! replaced.

use crate::fixture::{Folders, Server};
use heapstead_testkit::Process;
use serde_json::{Value, json};

const LOOPS: &str = "console.log('on'); for (;;);";
const WAITS: &str = "console.log('on'); await new Promise(done => setTimeout(done, 60000))";
/// Most of its time is spent on the snapshot of a million objects.
const SAVES: &str = "var many = Array.from({ length: 1_000_000 }, (_, i) => ({ i, text: 'x' + i })); console.log('on')";

fn zygote(server: &Server) -> Process {
    let children = Process::of(server.pid()).expect("the server").children();
    let zygotes: Vec<_> = children.into_iter().filter(|child| child.command_line().iter().any(|word| word == "zygote")).collect();
    let [zygote] = zygotes[..] else { panic!("{zygotes:?}") };
    zygote
}

fn is_dead(process: &Process) -> bool {
    Process::of(process.pid) != Some(*process) || process.is_zombie()
}

fn kill(process: Process) {
    let pid = rustix::process::Pid::from_raw(process.pid as i32).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
}

/// Starts a run and waits for its first output.
async fn begin(server: &Server, code: &str) -> String {
    let (status, accepted) = server.post("/api/exec", json!({ "code": code, "heap_memory_max_mb": 512 })).await;
    assert_eq!(status, 202, "{accepted}");
    let id = accepted["execution_id"].as_str().expect("an id").to_owned();
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=30")).await;
    assert_eq!(page["data"], "on\n", "{page}");
    id
}

/// Regression: the workers of all owners were in a session of their own. Where the kernel shares the cores between sessions, they had the share
/// of one process, and short runs of one owner took six times as long beside the loops of another.
#[tokio::test]
async fn workers_are_in_the_session_of_the_server_and_not_in_its_process_group() {
    let server = Server::start();
    begin(&server, LOOPS).await;
    let pid = |pid: u32| rustix::process::Pid::from_raw(pid as i32);
    let groups = |process: u32| {
        let session = rustix::process::getsid(pid(process)).expect("a session");
        (session, rustix::process::getpgid(pid(process)).expect("a process group"))
    };
    let (session, group) = groups(server.pid());
    let zygote = zygote(&server);
    let workers = zygote.children();
    assert!(!workers.is_empty());
    for process in workers.iter().chain([&zygote]) {
        let (its_session, its_group) = groups(process.pid);
        assert_eq!(its_session, session);
        assert_ne!(its_group, group, "Ctrl-C would kill it");
    }
}

#[tokio::test]
async fn a_cancelled_worker_is_dead_before_the_response_is_sent() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1"]);
    let zygote = zygote(&server);
    for code in [LOOPS, WAITS, SAVES] {
        let idle = zygote.children();
        let id = begin(&server, code).await;
        // Its memory limit differs from that of the pre-forked workers, so it was forked for this run.
        let workers: Vec<_> = zygote.children().into_iter().filter(|child| !idle.contains(child)).collect();
        assert_eq!(workers.len(), 1, "{code}");
        let (status, answer) = server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
        assert!(is_dead(&workers[0]), "{code}: the worker is alive");
        assert_eq!((status, answer), (200, json!({ "ok": true })), "{code}");
        let (_, record) = server.get(&format!("/api/executions/{id}")).await;
        assert_eq!((&record["status"], &record["heap"]), (&json!("cancelled"), &Value::Null), "{code}");
    }
    assert_eq!(self::zygote(&server), zygote, "the zygote is the same");
}

#[tokio::test]
async fn a_dead_zygote_fails_only_its_runs() {
    let server = Server::start();
    let heap = server.run("var kept = 41").await["heap"].clone();
    let (zygote, pid) = (zygote(&server), server.pid());
    let running = [begin(&server, LOOPS).await, begin(&server, WAITS).await];
    let workers = zygote.children();
    kill(zygote);
    for id in running {
        let (_, record) = server.get(&format!("/api/executions/{id}?wait_secs=30")).await;
        assert_eq!((&record["status"], &record["heap"]), (&json!("failed"), &Value::Null), "{record}");
        assert!(record["error"].as_str().is_some_and(|error| error.contains("the process that starts workers died")), "{record}");
        assert_eq!(server.get(&format!("/api/executions/{id}/output")).await.1["data"], "on\n", "output written before is kept");
    }
    let record = server.run_with(json!({ "code": "kept + 1", "heap": heap })).await;
    assert_eq!(record["result"], "42", "{record}");
    assert_ne!(self::zygote(&server), zygote, "a new zygote replaced it");
    assert!(workers.iter().all(is_dead), "no worker outlives its zygote");
    assert_eq!((server.pid(), &server.get("/api/health").await.1["status"]), (pid, &json!("healthy")));
}

#[tokio::test]
async fn a_dead_worker_fails_only_its_run() {
    let server = Server::start();
    let zygote = zygote(&server);
    let idle = zygote.children();
    let id = begin(&server, WAITS).await;
    let worker = zygote.children().into_iter().find(|child| !idle.contains(child)).expect("a worker");
    let beside = begin(&server, "console.log('on'); await new Promise(done => setTimeout(done, 500)); 'untouched'").await;
    kill(worker);
    let (_, record) = server.get(&format!("/api/executions/{id}?wait_secs=30")).await;
    assert_eq!(record["status"], "failed", "{record}");
    assert!(record["error"].as_str().is_some_and(|error| error.contains("the worker crashed (signal 9)")), "{record}");
    let (_, record) = server.get(&format!("/api/executions/{beside}?wait_secs=30")).await;
    assert_eq!(record["result"], "\"untouched\"", "{record}");
    assert_eq!(self::zygote(&server), zygote);
}
