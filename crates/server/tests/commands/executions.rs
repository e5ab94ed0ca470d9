//! `heapstead executions`: the same results from a server and from its stores, and output that is followed live.

use crate::common::Place;
use crate::fixture::Server;
use crate::heaps::{both, json_of_both};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Child;

/// Starts code that keeps running, and returns its id.
pub async fn started(server: &Server, code: &str) -> String {
    let (status, answer) = server.post("/api/exec", json!({ "code": code })).await;
    assert_eq!(status, 202, "{answer}");
    answer["execution_id"].as_str().expect("an id").to_owned()
}

/// `executions output --follow`, on the stores and on the server.
fn followers(server: &Server, id: &str) -> [Child; 2] {
    let follow = |place: Place| place.command(["executions", "output", id, "--follow"]);
    let mut stores = follow(Place::new());
    stores.current_dir("/").arg("--directory-path").arg(server.folders().heaps()).arg("--session-db-path").arg(server.folders().database());
    stores.args(["--owner", "anonymous"]);
    let mut asked = follow(Place::new());
    asked.current_dir("/").args(["--url", &server.url]);
    [stores, asked].map(|mut command| command.spawn().expect("it starts"))
}

#[tokio::test]
async fn executions_are_listed_and_shown() {
    let server = Server::start();
    let completed = server.run_with(json!({ "code": "console.log('one'); 6 * 7", "session": "mine" })).await;
    let failed = server.run("null.x").await;
    let all = json_of_both(&server, &["executions", "ls"]);
    let ids =
        |list: &Value| list["executions"].as_array().expect("a list").iter().map(|one| one["execution_id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&all), [failed["execution_id"].clone(), completed["execution_id"].clone()]);
    for (arguments, expected) in [(["--status", "failed"], &failed), (["--session", "mine"], &completed)] {
        assert_eq!(ids(&json_of_both(&server, &[&["executions", "ls"], &arguments[..]].concat())), [expected["execution_id"].clone()]);
    }
    let first = json_of_both(&server, &["executions", "ls", "--limit", "1"]);
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    assert_eq!(ids(&json_of_both(&server, &["executions", "ls", "--limit", "1", "--cursor", cursor])), [completed["execution_id"].clone()]);
    for ran in both(&server, &["executions", "ls"]) {
        let lines: Vec<_> = ran.out.lines().collect();
        assert!(
            lines.len() == 3
                && lines[0].starts_with("EXECUTION ")
                && lines[1].contains("  failed     20")
                && lines[2].contains("  completed  20"),
            "{ran:?}"
        );
    }

    let id = completed["execution_id"].as_str().expect("an id");
    assert_eq!(json_of_both(&server, &["executions", "show", id]), completed);
    for ran in both(&server, &["executions", "show", id]) {
        for part in ["status     completed\n", "result     42\n", "heap       "] {
            assert!(ran.out.contains(part), "`{part}` is not in {ran:?}");
        }
    }
    for ran in both(&server, &["executions", "output", id]) {
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "one\n", ""), "{ran:?}");
    }
}

#[tokio::test]
async fn an_empty_list_without_filters_mentions_older_executions() {
    let server = Server::start();
    for ran in both(&server, &["executions", "ls"]) {
        assert!(ran.err.contains("`--limit 100` also lists"), "{ran:?}");
    }
    for arguments in [["--limit", "2"], ["--status", "failed"], ["--session", "mine"]] {
        for ran in both(&server, &[&["executions", "ls"], &arguments[..]].concat()) {
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), "there are none\n"), "{arguments:?}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn output_is_followed_as_it_is_written_and_ends_with_the_run() {
    let server = Server::start();
    // It never ends by itself, so everything seen is seen while it runs.
    let id = started(&server, "console.log('first'); await new Promise(done => setTimeout(done, 1e6))").await;
    let mut following = followers(&server, &id).map(|mut follower| {
        let mut out = BufReader::new(follower.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert_eq!(line, "first\n");
        assert_eq!(follower.try_wait().expect("a status"), None, "it ended before the run did");
        (follower, out)
    });
    assert_eq!(Place::new().ran(["executions", "cancel", &id, "--url", &server.url]).code, Some(0));
    for (follower, out) in &mut following {
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("the rest");
        assert_eq!((rest.as_str(), follower.wait().expect("an end").code()), ("", Some(130)));
    }
}

#[tokio::test]
async fn the_exit_code_of_follow_reports_the_status() {
    let server = Server::start_with(&crate::fixture::Folders::new(), &["--execution-timeout", "1"]);
    for (code, expected, error) in [
        ("console.log(1)", 0, None),
        ("console.log(1); null.x", 1, Some("TypeError")),
        ("console.log(1); for (;;);", 124, Some("limit of 1 s")),
    ] {
        let id = started(&server, code).await;
        for ran in both(&server, &["executions", "output", &id, "--follow"]) {
            assert_eq!((ran.code, ran.out.as_str()), (Some(expected), "1\n"), "{code}: {ran:?}");
            assert!(error.is_none_or(|error| ran.err.contains(error)), "{code}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn an_execution_is_cancelled_through_the_server_and_the_stores() {
    let server = Server::start();
    for at in 0..2 {
        let id = started(&server, "for (;;);").await;
        // The first of the two cancels it; the second comes too late.
        let arguments = ["executions", "cancel", &id];
        let ran = match at {
            0 => crate::heaps::at_stores(server.folders(), &arguments),
            _ => Place::new().ran(arguments.iter().chain(&["--url", server.url.as_str()])),
        };
        assert_eq!((ran.code, ran.err), (Some(0), format!("cancelled {id}\n")));
        assert_eq!(json_of_both(&server, &["executions", "show", &id])["status"], "cancelled");
        for late in both(&server, &arguments) {
            assert_eq!(late.code, Some(1), "{late:?}");
            assert!(late.err.contains("is not running: it is cancelled"), "{late:?}");
        }
    }
}

#[tokio::test]
async fn a_run_is_repeated_by_the_server_and_with_an_engine_of_its_own() {
    let server = Server::start();
    let record = server.run("console.log(Math.random()); Date.now()").await;
    let id = record["execution_id"].as_str().expect("an id");
    for ran in both(&server, &["executions", "replay", id]) {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("identical: completed again, with the same result and output"), "{ran:?}");
    }
    let report = json_of_both(&server, &["executions", "replay", id]);
    assert_eq!((&report["identical"], &report["heap"]), (&json!(true), &record["heap"]), "{report}");
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    database.execute("UPDATE journal SET output_sha256 = zeroblob(32)", []).expect("changed");
    for ran in both(&server, &["executions", "replay", id]) {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("the replay differs in its output: it completed"), "{ran:?}");
    }
}

#[tokio::test]
async fn errors_say_what_to_do_next() {
    let server = Server::start();
    let unknown = "0".repeat(32);
    for command in ["show", "output", "cancel"] {
        for id in [unknown.as_str(), "../x", "?"] {
            for ran in both(&server, &["executions", command, id]) {
                assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
                assert!(ran.err.contains(&format!("execution `{id}` is not known")) && ran.err.contains("next: "), "{ran:?}");
            }
        }
    }
    let place = Place::new();
    let ran = place.command(["executions", "ls"]).env("HEAPSTEAD_SESSION_DB_PATH", place.path("none")).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("next: name the folder with `--session-db-path DIR`"), "{ran:?}");
    assert!(!place.path("none").exists(), "reading does not create the folder");
    let ran = place.ran(["executions", "ls", "--status", "sleeping"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("allowed are running, completed, failed, timed_out, cancelled"), "{ran:?}");
}
