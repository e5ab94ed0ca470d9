//! After a restart: all executions and outputs are found, and interrupted runs are reported as failed.

use crate::fixture::{Folders, Server};
use heapstead_store::records::{ExecutionEnd, NewExecution};
use heapstead_store::{Database, Owner};
use heapstead_types::{ExecutionId, Principal, Status};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};

#[tokio::test]
async fn a_run_interrupted_by_a_crash_has_failed_and_keeps_its_output() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let done = server.run("console.log('é'); 6 * 7").await;
    let (_, accepted) =
        server.post("/api/exec", json!({ "code": "console.log('before'); await new Promise(() => setTimeout(() => {}, 60000))" })).await;
    let id = accepted["execution_id"].as_str().expect("an id").to_owned();
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=10")).await;
    assert_eq!(page["data"], "before\n");
    server.kill();
    let server = Server::start_with(&folders, &[]);
    let (_, record) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!((&record["status"], &record["error"]), (&json!("failed"), &json!("server restarted")), "{record}");
    assert!(record["completed_at"].is_string(), "{record}");
    let (_, page) = server.get(&format!("/api/executions/{id}/output")).await;
    assert_eq!((&page["data"], &page["status"]), (&json!("before\n"), &json!("failed")), "{page}");
    let path = format!("/api/executions/{}", done["execution_id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).await.1, done, "a reported end does not change");
    assert_eq!(server.get(&format!("{path}/output")).await.1["data"], "é\n");
}

#[tokio::test]
async fn a_second_server_sees_the_runs_of_the_first_and_does_not_change_them() {
    let folders = Folders::new();
    let mut first = Server::start_with(&folders, &[]);
    let (_, accepted) =
        first.post("/api/exec", json!({ "code": "console.log('here'); await new Promise(done => setTimeout(done, 1500)); 'done'" })).await;
    let id = accepted["execution_id"].as_str().expect("an id").to_owned();
    let second = Server::start_with(&folders, &[]);
    assert_eq!(second.get(&format!("/api/executions/{id}")).await.1["status"], "running", "it runs in the other server");
    assert_eq!(second.get(&format!("/api/executions/{id}/output?wait_secs=10")).await.1["data"], "here\n");
    let (_, record) = second.get(&format!("/api/executions/{id}?wait_secs=20")).await;
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("\"done\"")), "{record}");
    let (_, accepted) = first.post("/api/exec", json!({ "code": "await new Promise(done => setTimeout(done, 60000))" })).await;
    let lost = accepted["execution_id"].as_str().expect("an id").to_owned();
    first.kill();
    let (_, record) = second.get(&format!("/api/executions/{lost}")).await;
    assert_eq!(
        (&record["status"], &record["error"]),
        (&json!("failed"), &json!("server restarted")),
        "the second server reports it without a restart: {record}"
    );
}

#[tokio::test]
async fn a_server_with_10_000_executions_is_ready_in_under_a_second() {
    let folders = Folders::new();
    fill(&folders, 10_000).await;
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let mut server = Server::start_with(&folders, &[]);
        let (status, list) = server.get("/api/executions?limit=1").await;
        times.push(began.elapsed());
        assert_eq!(status, 200, "{list}");
        server.kill();
    }
    times.sort_unstable();
    println!("ready after {times:?}");
    assert!(times[2] < Duration::from_secs(1), "{times:?}");
}

#[tokio::test]
async fn a_list_without_parameters_covers_a_day_and_one_with_parameters_everything() {
    let folders = Folders::new();
    fill(&folders, 3).await;
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("opened");
    let day_micros = 24 * 3600 * 1_000_000_i64;
    database.execute("UPDATE executions SET completed_at = completed_at - ?1 WHERE seq = 2", [day_micros + 60_000_000]).expect("aged");
    database.execute("UPDATE executions SET completed_at = completed_at - ?1 WHERE seq = 3", [day_micros - 60_000_000]).expect("aged");
    let server = Server::start_with(&folders, &[]);
    let count = async |path: &str| server.get(path).await.1["executions"].as_array().expect("a list").len();
    assert_eq!(count("/api/executions").await, 2, "the one that a dead server left, and the one that ended within the day");
    assert_eq!(count("/api/executions?limit=10").await, 3);
    assert_eq!(count("/api/executions?status=completed").await, 2);
}

/// Retention: old objects that this database knows are removed with their output; new, tagged and unknown ones stay.
#[tokio::test]
async fn only_objects_past_their_retention_are_removed() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let old = server.run("console.log('old'); var old = 1").await;
    let tagged = server.run_with(json!({ "code": "var tagged = 1", "tags": { "keep": "me" } })).await;
    let young = server.run("console.log('young'); var young = 1").await;
    server.kill();
    let path = |record: &Value| folders.heaps().join(record["heap"].as_str().expect("a heap"));
    let stray = folders.heaps().join("0".repeat(64));
    std::fs::copy(path(&old), &stray).expect("a heap that no database knows");
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    for aged in [path(&old), path(&tagged), stray.clone()] {
        std::fs::File::options().write(true).open(aged).expect("opened").set_modified(long_ago).expect("aged");
    }
    let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("opened");
    let three_days_micros = 3 * 24 * 3600 * 1_000_000_i64;
    for aged in [&old, &tagged] {
        let (id, heap) = (aged["execution_id"].as_str().expect("an id"), aged["heap"].as_str().expect("a heap"));
        database.execute("UPDATE executions SET completed_at = completed_at - ?1 WHERE id = ?2", (three_days_micros, id)).expect("aged");
        database.execute("UPDATE heaps SET last_used_at = last_used_at - ?1 WHERE key = ?2", (three_days_micros, heap)).expect("aged");
    }
    let server = Server::start_with(&folders, &["--retain-executions", "1", "--retain-heaps", "1"]);
    let until = Instant::now() + Duration::from_secs(30);
    while path(&old).exists() {
        assert!(Instant::now() < until, "the old heap is still there");
        // Each request gives the background task time to run.
        server.get("/api/health").await;
    }
    assert!(path(&tagged).exists() && path(&young).exists() && stray.exists());
    let status = async |record: &Value| server.get(&format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"))).await.0;
    assert_eq!((status(&old).await, status(&tagged).await, status(&young).await), (404, 404, 200));
    let outputs = |record: &Value| {
        let id = record["execution_id"].as_str().expect("an id").to_owned();
        folders.database().join("outputs").join(&id[..2]).join(format!("{id}.out"))
    };
    assert!(!outputs(&old).exists() && outputs(&young).exists());
}

/// Adds ended executions, and some that a dead server left running.
async fn fill(folders: &Folders, count: u64) {
    let records = Database::open(&folders.database(), Owner::Anyone).expect("a database").records;
    let work = (0..count).map(|number| {
        let records = records.clone();
        async move {
            let mut bits = [0; 16];
            bits[..8].copy_from_slice(&number.to_le_bytes());
            let id = ExecutionId::from_random(bits);
            let new = NewExecution {
                id: id.clone(),
                principal: Principal::anonymous(),
                session: None,
                started_at: Timestamp::now(),
                input_heap: None,
            };
            records.accept_execution(new, None).await.expect("accepted");
            if number % 100 != 0 {
                let end = ExecutionEnd { result: Some("42".into()), ..ExecutionEnd::bare(Status::Completed) };
                records.end_execution(id, end).await.expect("ended");
            }
        }
    });
    futures_util::future::join_all(work).await;
}
