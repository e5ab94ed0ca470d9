//! Faults of S3: the run fails with a clear error and in time, the server stays up, health reports it, and the server recovers by itself.

#[path = "../../../store/tests/contract/proxy.rs"]
#[allow(dead_code, reason = "the store's own tests use the rest")]
mod proxy;
#[path = "../../../store/tests/contract/s3_server.rs"]
#[allow(dead_code, reason = "the store's own tests use the rest")]
mod s3_server;

use crate::fixture::{Folders, Server};
use proxy::{Fault, Proxy};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

struct Bucket {
    proxy: Proxy,
    name: String,
}

impl Bucket {
    fn new() -> Self {
        let s3 = s3_server::start();
        Self { proxy: Proxy::start(s3.port), name: s3.new_bucket() }
    }

    /// Starts a server on this bucket. `more` are additional arguments.
    fn server(&self, folders: &Folders, more: &[&str]) -> Server {
        let endpoint = self.proxy.endpoint();
        let mut arguments = vec!["--s3-bucket", &self.name, "--s3-endpoint", &endpoint, "--s3-region", "us-east-1", "--s3-allow-http"];
        arguments.extend(["--s3-access-key-id", "test", "--s3-secret-access-key", "test", "--execution-timeout", "5"]);
        arguments.extend(more);
        Server::start_with(folders, &arguments)
    }
}

async fn health(server: &Server) -> Value {
    server.get("/api/health").await.1
}

async fn works(server: &Server) -> String {
    let record = server.run("var kept = [1, 2, 3]").await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(health(server).await["status"], "healthy");
    record["heap"].as_str().expect("a heap").to_owned()
}

/// Checks the failure of a run that needs the store.
async fn fails(server: &Server, body: Value, says: &str, what: Fault) {
    let began = Instant::now();
    let record = server.run_with(body).await;
    assert_eq!((&record["status"], &record["heap"]), (&json!("failed"), &Value::Null), "{what:?}: {record}");
    assert!(record["error"].as_str().is_some_and(|error| error.contains(says)), "{what:?}: {record}");
    assert!(began.elapsed() < Duration::from_secs(15), "{what:?} held the run up for {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_bucket_fails_only_the_run() {
    let bucket = Bucket::new();
    let server = bucket.server(&Folders::new(), &[]);
    let heap = works(&server).await;
    for fault in [Fault::Busy, Fault::Refuse, Fault::Forbidden, Fault::CutRequest, Fault::Silence] {
        bucket.proxy.do_always(fault);
        let degraded = async {
            let degraded = health(&server).await;
            assert_eq!(degraded["heap_store"]["ok"], false, "{fault:?}: {degraded}");
        };
        tokio::join!(
            fails(&server, json!({ "code": "1" }), "storage", fault),
            // Never silently fresh: the store cannot tell whether the heap exists.
            fails(&server, json!({ "code": "kept.length", "heap": heap }), "storage", fault),
            degraded,
        );
        bucket.proxy.do_times(Fault::None, 0);
        let record = server.run_with(json!({ "code": "kept.length", "heap": heap })).await;
        assert_eq!(record["result"], "3", "recovered after {fault:?}: {record}");
    }
    works(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transient_faults_are_retried_and_wrong_bytes_detected() {
    let (bucket, folders) = (Bucket::new(), Folders::new());
    let server = bucket.server(&folders, &[]);
    bucket.proxy.do_times(Fault::Busy, 2);
    let heap = works(&server).await;
    drop(server);
    // Another server has nothing in memory, so it must read.
    let server = bucket.server(&folders, &[]);
    bucket.proxy.do_times(Fault::CutAnswer, 1);
    let record = server.run_with(json!({ "code": "kept.length", "heap": heap })).await;
    assert_eq!(record["result"], "3", "{record}");
    drop(server);
    let server = bucket.server(&folders, &[]);
    bucket.proxy.do_always(Fault::FlipAnswer);
    fails(&server, json!({ "code": "kept.length", "heap": heap }), "damaged", Fault::FlipAnswer).await;
    bucket.proxy.do_times(Fault::None, 0);
    let missing = "0".repeat(64);
    let record = server.run_with(json!({ "code": "typeof kept", "heap": missing })).await;
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("\"undefined\"")), "{record}");
    assert!(record["warnings"][0].as_str().is_some_and(|text| text.contains("was not found")), "{record}");
}

/// Regression: damaged heaps are looked up one after another, and with an unresponsive bucket each delayed health by half a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_responds_in_time_with_many_damaged_heaps() {
    let (bucket, folders) = (Bucket::new(), Folders::new());
    let server = bucket.server(&folders, &[]);
    let heaps = [works(&server).await, server.run("var other = 1").await["heap"].as_str().expect("a heap").to_owned()];
    drop(server);
    let server = bucket.server(&folders, &[]);
    bucket.proxy.do_always(Fault::FlipAnswer);
    for heap in &heaps {
        fails(&server, json!({ "code": "1", "heap": heap }), "damaged", Fault::FlipAnswer).await;
    }
    for fault in [Fault::Silence, Fault::Busy] {
        bucket.proxy.do_always(fault);
        let began = Instant::now();
        let found = health(&server).await;
        assert!(began.elapsed() < Duration::from_secs(8), "{fault:?} held health up for {:?}", began.elapsed());
        assert_eq!((&found["heap_store"]["damaged"], &found["heap_store"]["ok"]), (&json!(2), &json!(false)), "{fault:?}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_serves_its_heaps_while_the_bucket_is_down() {
    let (bucket, folders) = (Bucket::new(), Folders::new());
    let cache = folders.path().join("cache").to_str().expect("UTF-8").to_owned();
    let server = bucket.server(&folders, &["--cache-dir", &cache]);
    let heap = works(&server).await;
    drop(server);
    let server = bucket.server(&folders, &["--cache-dir", &cache]);
    bucket.proxy.do_always(Fault::Refuse);
    // The heap can be read, so the code runs. The new heap cannot be stored, so the run fails after its output.
    let (_, record) = server.post("/api/exec", json!({ "code": "console.log(kept.length)", "heap": heap, "wait_secs": 60 })).await;
    assert_eq!(record["status"], "failed", "{record}");
    let id = record["execution_id"].as_str().expect("an id");
    assert_eq!(server.get(&format!("/api/executions/{id}/output")).await.1["data"], "3\n");
    bucket.proxy.do_times(Fault::None, 0);
    let record = server.run_with(json!({ "code": "kept.length", "heap": heap })).await;
    assert_eq!(record["result"], "3", "{record}");
}

/// The time limit of a run includes its storage calls: restoring and saving get the remaining time, and abandoned calls are cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_the_bucket_is_cancelled_when_its_run_ends() {
    let bucket = Bucket::new();
    let server = bucket.server(&Folders::new(), &[]);
    let heap = works(&server).await;
    for (fault, body) in [
        (Fault::Silence, json!({ "code": "1", "execution_timeout_secs": 1 })),
        (Fault::Silence, json!({ "code": "1", "execution_timeout_secs": 1, "heap": heap })),
        (Fault::Busy, json!({ "code": "const end = Date.now() + 3000; while (Date.now() < end);", "execution_timeout_secs": 6 })),
    ] {
        bucket.proxy.do_always(fault);
        let began = Instant::now();
        let record = server.run_with(body.clone()).await;
        let took = began.elapsed();
        assert_eq!(record["status"], "failed", "{record}");
        assert!(record["error"].as_str().is_some_and(|error| error.contains("no good answer within")), "the store says why: {record}");
        let secs = body["execution_timeout_secs"].as_u64().expect("a limit").max(5);
        assert!(took < Duration::from_secs(secs + 2), "{fault:?}: {took:?} for {body}");
        // No more requests to the bucket after the run has ended.
        let asked = bucket.proxy.requests();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bucket.proxy.requests(), asked, "{fault:?}: {body}");
        bucket.proxy.do_times(Fault::None, 0);
    }
    works(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_is_configured_by_the_standard_variables() {
    let s3 = s3_server::start();
    let (name, endpoint) = (s3.new_bucket(), format!("http://127.0.0.1:{}", s3.port));
    let folders = Folders::new();
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let server = Server::start_in(&folders, &["--s3-bucket", &name], &variables);
    let heap = works(&server).await;
    assert!(!folders.heaps().join(&heap).exists(), "it is not in the heap folder");
    drop(server);
    // The same bucket by flags, without the variables.
    let flags = [
        "--s3-endpoint",
        &endpoint,
        "--s3-region",
        "us-east-1",
        "--s3-allow-http",
        "--s3-access-key-id",
        "test",
        "--s3-secret-access-key",
        "test",
    ];
    let other = Server::start_with(&folders, &[&["--s3-bucket", &name], &flags[..]].concat());
    let record = other.run_with(json!({ "code": "kept.length", "heap": heap, "on_missing_heap": "fail" })).await;
    assert_eq!(record["result"], "3", "{record}");
    // A flag takes precedence over the variable.
    let wrong = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1")];
    let server = Server::start_in(&Folders::new(), &[&["--s3-bucket", &name], &flags[..]].concat(), &wrong);
    works(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_a_bucket() {
    let bucket = Bucket::new();
    let cached = Folders::new();
    let cache = cached.path().join("cache").to_str().expect("UTF-8").to_owned();
    let servers = [bucket.server(&Folders::new(), &[]), bucket.server(&cached, &["--cache-dir", &cache])];
    let first = servers[0].run("var steps = [0]").await;
    let mut heap = first["heap"].as_str().expect("a heap").to_owned();
    // Each has a database of its own, so the second one needs the keys of the first.
    let refused = servers[1].run_with(json!({ "code": "steps", "heap": heap, "on_missing_heap": "fail" })).await;
    assert_eq!(refused["error_code"], "heap_unsigned", "{refused}");
    let keys = cached.path().join("keys").to_str().expect("UTF-8").to_owned();
    servers[0].folders().heaps_command(&["export-keys", &keys]);
    cached.heaps_command(&["import-keys", &keys]);
    // A chain that alternates between the servers.
    for step in 1..=6 {
        let body = json!({ "code": format!("steps.push({step}); steps.length"), "heap": heap, "on_missing_heap": "fail" });
        let record = servers[step % 2].run_with(body).await;
        assert_eq!(record["result"], (step + 1).to_string(), "{record}");
        heap = record["heap"].as_str().expect("a heap").to_owned();
    }
    // Both produce the same heap concurrently, and then each continues from the other's heap.
    let same = json!({ "code": "var shared = 'the same'", "heap": heap });
    let (one, other) = tokio::join!(servers[0].run_with(same.clone()), servers[1].run_with(same));
    assert_eq!(one["status"], "completed", "{one}");
    assert_eq!(one["heap"], other["heap"], "the same code produces the same heap");
    // The heaps of the other server are not in this database, so they are not collected.
    let (_, collected) = servers[0].post("/api/heaps/gc", json!({})).await;
    assert_eq!(collected["removed"], json!([]), "{collected}");
    for server in &servers {
        let record = server.run_with(json!({ "code": "shared + steps.length", "heap": one["heap"], "on_missing_heap": "fail" })).await;
        assert_eq!(record["result"], "\"the same7\"", "{record}");
    }
}
