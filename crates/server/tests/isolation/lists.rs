//! No list, page, document, error text or log contains anything of another owner.

use crate::fixture::{Folders, Server};
use crate::owned_objects::{ObjectKind, OwnedObjects};
use crate::owners::{Owner, TestServers};
use crate::peer::Http;
use serde_json::json;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Everything that can be read without naming an object.
const LISTS: [&str; 11] = [
    "/api/executions",
    "/api/executions?limit=1",
    "/api/heaps",
    "/api/sessions",
    "/api/sessions/opened",
    "/api/session-snapshots",
    "/api/catalogs/search",
    "/api/health",
    "/api/usage",
    "/api-doc/openapi.json",
    "/metrics",
];

/// Checks that the text contains nothing of this owner.
fn check_absent(text: &str, of: &OwnedObjects, what: &str) {
    for (kind, name) in of.names().filter(|(kind, _)| *kind != ObjectKind::Ref) {
        assert!(!text.contains(name), "{kind:?} is in {what}: {text}");
    }
    assert!(!text.contains(&of.secret), "{what}: {text}");
}

async fn read(owner: &Owner, path: &str) -> String {
    owner.request("GET", path).send().await.expect("an answer").text().await.expect("a body")
}

#[tokio::test]
async fn lists_contain_no_objects_of_other_owners() {
    let servers = TestServers::start();
    let (ann, anonymous) = (servers.owner("acme/ann"), servers.anonymous());
    let (anns, anonymous_objects) = (OwnedObjects::of(&servers, &ann).await, OwnedObjects::of(&servers, &anonymous).await);
    let bob = servers.owner("acme/bob");
    for (other, of) in [(&bob, &anns), (&bob, &anonymous_objects), (&anonymous, &anns), (&ann, &anonymous_objects)] {
        for path in LISTS {
            check_absent(&read(other, path).await, of, path);
        }
        check_absent(&other.post("/api/heaps/query", json!({ "tags": {} })).await.to_string(), of, "the query for tags");
        check_absent(&other.post("/api/heaps/gc", json!({ "dry_run": true })).await.to_string(), of, "what would be collected");
        let authorization = other.authorization();
        let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let connected = Http::connect(servers.server(other), "2025-11-25", &headers).await;
        for client in [connected, Http::modern(servers.server(other), &headers)] {
            for method in ["tools/list", "resources/list", "resources/templates/list", "tasks/list", "sessions/list"] {
                check_absent(&client.ask(method, json!({})).await.to_string(), of, method);
            }
        }
    }
    // The owner finds them.
    assert!(read(&ann, "/api/executions").await.contains(anns.name(ObjectKind::Execution).expect("a name")));
    assert!(read(&ann, "/api/heaps").await.contains(anns.name(ObjectKind::Heap).expect("a name")));
}

/// Whether a session of another owner is in memory, and why it can't be stored, shows what that owner does.
#[tokio::test]
async fn health_shows_only_the_callers_own_live_sessions() {
    let servers = TestServers::start_with(&["--session-durability", "journal"]);
    let (ann, bob, operator) = (servers.owner("acme/ann"), servers.owner("acme/bob"), servers.owner("operator/olga"));
    let session = ann.post("/api/sessions", json!({})).await["session_id"].clone();
    ann.run(json!({ "code": "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); 1", "session": session })).await;
    let begun = Instant::now();
    while ann.get("/api/health").await["live_sessions"]["checkpoints_failing"] != 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the checkpoint does not fail");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let none = json!({ "state": "on", "sessions": 0, "memory_mb": 0, "checkpoints_failing": 0 });
    assert_eq!(bob.get("/api/health").await["live_sessions"], none);
    let all = operator.get("/api/health").await["live_sessions"].clone();
    assert_eq!((&all["sessions"], &all["checkpoints_failing"]), (&json!(1), &json!(1)), "{all}");
}

/// A cursor that counted rows would reveal the activity of others.
#[tokio::test]
async fn cursors_reveal_nothing_of_other_owners_and_work_only_for_their_owner() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let mut anns = Vec::new();
    for _ in 0..3 {
        anns.push(ann.run(json!({ "code": "1" })).await["execution_id"].clone());
        ann.post("/api/sessions", json!({})).await;
    }
    let executions = ann.get("/api/executions?limit=1").await["next_cursor"].clone();
    assert_eq!(executions, anns[2], "the cursor is the id of an own execution");
    bob.run(json!({ "code": "1" })).await;
    assert_eq!(ann.get("/api/executions?limit=1").await["next_cursor"], executions, "activity of other owners does not change it");
    let page = ann.get("/api/sessions/opened?limit=1").await;
    assert_eq!(page["next_cursor"], page["sessions"][0]["session_id"]);
    let foreign = [executions, page["next_cursor"].clone()];
    for (path, foreign) in ["/api/executions", "/api/sessions/opened"].into_iter().zip(&foreign) {
        for cursor in [foreign.as_str().expect("a cursor"), "1", "-1", "9223372036854775807", "0", "%00", "x"] {
            let (status, refused) = bob.ask("GET", &format!("{path}?limit=1&cursor={cursor}"), None).await;
            assert_eq!(status, 400, "{path} {cursor}: {refused}");
        }
    }
    // The owner can continue from it, even if the list no longer contains it.
    let rest = ann.get(&format!("/api/executions?limit=10&cursor={}", anns[2].as_str().expect("an id"))).await;
    assert_eq!(rest["executions"].as_array().map(Vec::len), Some(2), "{rest}");
    let failed = ann.get(&format!("/api/executions?status=failed&cursor={}", anns[2].as_str().expect("an id"))).await;
    assert_eq!(failed["executions"], json!([]));
}

/// At any log level, results and output of code never appear in the log; session ids do not appear at the default level.
#[tokio::test]
async fn logs_have_no_secrets_and_no_sessions() {
    for (level, names_are_hidden) in [("trace,rmcp=trace", false), ("info,rmcp=info", true)] {
        let folders = Folders::new();
        let mut command = Server::command(&folders);
        let mut child = command.args(["--http-port", "0", "--log", level]).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stderr = child.stderr.take().expect("piped");
        let (sender, url) = std::sync::mpsc::channel();
        let log = std::thread::spawn(move || {
            let (mut all, mut piece) = (String::new(), [0; 4096]);
            while let Ok(length @ 1..) = stderr.read(&mut piece) {
                all += &String::from_utf8_lossy(&piece[..length]);
                if let Some(line) = all.lines().find_map(|line| line.strip_prefix("Heapstead listens on ")) {
                    let _ = sender.send(line.trim().to_owned());
                }
            }
            all
        });
        let url = url.recv().expect("an address");
        let owner = Owner { name: "anonymous", token: None, client: crate::fixture::client(), http: url.clone(), sse: url };
        let session = owner.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
        let ran = owner.run(json!({ "code": "console.log('mene' + '-tekel'); 'mene' + '-tekel'", "session": session })).await;
        assert_eq!(ran["result"], "\"mene-tekel\"");
        let logical = owner.post("/api/session-context", json!({ "intent": "an intent" })).await["logical_session_id"].clone();
        owner.run(json!({ "code": "1", "session": logical })).await;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        child.wait().expect("the end");
        let log = log.join().expect("the log");
        assert!(!log.contains("mene-tekel"), "{log}");
        let logical = logical.as_str().expect("an id");
        assert!(!names_are_hidden || !(log.contains(&session) || log.contains(logical)), "{log}");
    }
}
