//! Quotas apply to each owner separately.

use crate::owner::{Owner, Site};
use serde_json::json;

#[tokio::test]
async fn sessions_are_bounded_for_each_owner() {
    let site = Site::new();
    let (ann, bob) = (Owner::new(&site.token("acme/ann")), Owner::new(&site.token("acme/bob")));
    let server = site.start(&["--max-sessions-per-owner", "2"]);
    let (_, first) = ann.post(&server, "/api/sessions", json!({})).await;
    ann.context(&server, "a task", &[]).await;
    let (status, refused) = ann.post(&server, "/api/sessions", json!({})).await;
    assert_eq!(status, 429, "{refused}");
    assert_eq!(ann.post(&server, "/api/session-context", json!({ "intent": "another" })).await.0, 429);
    assert_eq!(ann.post(&server, "/api/session-context", json!({ "intent": "a task" })).await.0, 200, "existing sessions can be used");
    assert_eq!(bob.post(&server, "/api/sessions", json!({})).await.0, 200);
    let id = first["session_id"].as_str().expect("an id");
    assert_eq!(ann.delete(&server, &format!("/api/sessions/{id}")).await.0, 200);
    assert_eq!(ann.post(&server, "/api/sessions", json!({})).await.0, 200, "one has ended");
}

/// Regression: the record of an ended task still counted against the quota, with no way to free it.
#[tokio::test]
async fn an_ended_task_does_not_count_until_it_continues() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&["--max-sessions-per-owner", "2"]);
    let open = async |intent: &str| ann.post(&server, "/api/session-context", json!({ "intent": intent })).await;
    let mut ids = Vec::new();
    for intent in ["a", "b"] {
        ids.push(open(intent).await.1["logical_session_id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(open("c").await.0, 429);
    for id in &ids {
        for status in [200, 404] {
            assert_eq!(ann.delete(&server, &format!("/api/sessions/{id}")).await.0, status, "the session has already ended");
        }
    }
    assert_eq!(ann.post(&server, "/api/sessions", json!({})).await.0, 200);
    assert_eq!(open("a").await.0, 200, "one can be reopened");
    assert_eq!(open("b").await.0, 429, "the quota is used up again");
    assert_eq!(ann.post(&server, "/api/sessions", json!({})).await.0, 429);
    assert_eq!(open("a").await.1["wave"]["mode"], "noop", "existing sessions can be used");
    assert_eq!(ann.delete(&server, &format!("/api/sessions/{}", ids[0])).await.0, 200);
    assert_eq!(open("b").await.0, 200);
}

/// An expired task does not count either.
#[tokio::test]
async fn an_expired_task_does_not_count() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&["--max-sessions-per-owner", "1", "--session-ttl", "1s"]);
    let mut opened = 0;
    for intent in ["a", "b", "a"] {
        for _ in 0..100 {
            let (status, answer) = ann.post(&server, "/api/session-context", json!({ "intent": intent })).await;
            if status == 200 {
                opened += 1;
                break;
            }
            assert_eq!(status, 429, "{answer}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
    assert_eq!(opened, 3);
}

#[tokio::test]
async fn running_executions_are_bounded_for_each_owner() {
    let site = Site::new();
    let (ann, bob) = (Owner::new(&site.token("acme/ann")), Owner::new(&site.token("acme/bob")));
    let server = site.start(&["--max-running-per-owner", "2"]);
    let waits = json!({ "code": "await new Promise((done) => setTimeout(done, 60_000))" });
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (status, begun) = ann.post(&server, "/api/exec", waits.clone()).await;
        assert_eq!(status, 202);
        ids.push(begun["execution_id"].as_str().expect("an id").to_owned());
    }
    let (status, refused) = ann.post(&server, "/api/exec", json!({ "code": "1" })).await;
    assert_eq!(status, 429, "{refused}");
    assert_eq!(bob.post(&server, "/api/exec", json!({ "code": "1", "wait_secs": 60 })).await.0, 200);
    assert_eq!(ann.post(&server, &format!("/api/executions/{}/cancel", ids[0]), json!({})).await.0, 200);
    assert_eq!(ann.post(&server, "/api/exec", json!({ "code": "1", "wait_secs": 60 })).await.0, 200);
}

#[tokio::test]
async fn bytes_of_heaps_are_bounded_for_each_owner() {
    let site = Site::new();
    let (ann, bob) = (Owner::new(&site.token("acme/ann")), Owner::new(&site.token("acme/bob")));
    let server = site.start(&["--max-heap-mb-per-owner", "2"]);
    let run = json!({ "code": "globalThis.a = crypto.randomUUID()", "wait_secs": 60 });
    let mut completed = 0;
    let refused = loop {
        let (_, record) = ann.post(&server, "/api/exec", run.clone()).await;
        if record["status"] != "completed" {
            break record;
        }
        completed += 1;
        assert!(completed < 100, "the quota was not enforced");
    };
    assert!(completed > 0 && refused["error"].as_str().expect("an error").contains("2 MB"), "{refused}");
    assert_eq!(refused["error_code"], "heap_quota_exceeded", "{refused}");
    assert_eq!(bob.post(&server, "/api/exec", run).await.1["status"], "completed");
}

/// Waves count against the heap quota too.
#[tokio::test]
async fn waves_are_bounded_like_runs() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&["--max-heap-mb-per-owner", "2"]);
    let mut opened = 0;
    let refused = loop {
        let entity = ["mean", "median", "variance", "quantile"][opened];
        let seeds = json!([{ "catalog": "statistics", "entity": entity }]);
        let (status, answer) = ann.post(&server, "/api/session-context", json!({ "intent": opened.to_string(), "seeds": seeds })).await;
        if status != 200 {
            break answer;
        }
        opened += 1;
        assert!(opened < 4, "the quota was not enforced");
    };
    assert!(opened > 0 && refused["detail"].as_str().expect("a reason").contains("2 MB"), "{refused}");
}
