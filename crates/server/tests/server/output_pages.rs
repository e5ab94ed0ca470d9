//! Output pages while the code is still writing: random text, random chunks, random limits, both modes.

use crate::fixture::{Server, torture};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::{Value, json};
use std::time::Instant;

/// Code that writes each piece separately, some after a pause.
fn code(pieces: &[String]) -> String {
    let pieces = serde_json::to_string(pieces).expect("JSON");
    format!(
        "let at = 0; for (const piece of {pieces}) {{ console.log(piece); if (++at % 3 === 0) await new Promise(done => setTimeout(done, 2)) }}"
    )
}

/// The whole output of that code.
fn written(pieces: &[String]) -> String {
    pieces.iter().map(|piece| format!("{piece}\n")).collect()
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    let character = prop_oneof![6 => Just('a'), 3 => Just('\n'), 2 => Just('é'), 2 => Just('€'), 2 => Just('𝄞')];
    let piece = prop::collection::vec(character, 0..30).prop_map(String::from_iter);
    let long = (piece.clone(), 1..300usize).prop_map(|(text, times)| text.repeat(times));
    prop::collection::vec(prop_oneof![8 => piece, 1 => long], 1..40)
}

/// How a follower reads: by lines or bytes, and how many per page.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Lines(u64),
    Bytes(u64),
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![(1..50u64).prop_map(Mode::Lines), (1..300u64).prop_map(Mode::Bytes)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_every_byte_once_while_the_code_writes() {
    let server = Server::start();
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(Default::default(), &seed()));
    for round in 0..if torture() { 300 } else { 25 } {
        let pieces = pieces().new_tree(&mut runner).expect("a value").current();
        let followers: Vec<Mode> = prop::collection::vec(modes(), 3).new_tree(&mut runner).expect("a value").current();
        let text = written(&pieces);
        let (status, accepted) = server.post("/api/exec", json!({ "code": code(&pieces) })).await;
        assert_eq!(status, 202, "{accepted}");
        let id = accepted["execution_id"].as_str().expect("an id");
        let reads = followers.iter().map(|mode| follow(&server, id, *mode, &text));
        futures_util::future::join_all(reads).await;
        let record = server.get(&format!("/api/executions/{id}?wait_secs=20")).await.1;
        assert_eq!(record["status"], "completed", "round {round}: {record}");
    }
}

/// A fixed seed, or the seed of a failure to replay.
fn seed() -> [u8; 32] {
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
    println!("SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes
}

async fn follow(server: &Server, id: &str, mode: Mode, text: &str) {
    let (mut seen, mut line, mut byte) = (String::new(), 1, 0);
    loop {
        let query = match mode {
            Mode::Lines(limit) => format!("line_offset={line}&line_limit={limit}"),
            Mode::Bytes(limit) => format!("byte_offset={byte}&byte_limit={limit}"),
        };
        let (status, page) = server.get(&format!("/api/executions/{id}/output?{query}&wait_secs=10")).await;
        assert_eq!(status, 200, "{page}");
        check(&page, mode, text);
        assert!(number(&page, "next_line_offset") >= line && number(&page, "next_byte_offset") >= byte, "a cursor moved backwards: {page}");
        match mode {
            Mode::Lines(_) => assert_eq!(number(&page, "start_line"), line, "{page}"),
            Mode::Bytes(_) => assert_eq!(number(&page, "start_byte"), byte, "{page}"),
        }
        (line, byte) = (number(&page, "next_line_offset"), number(&page, "next_byte_offset"));
        seen.push_str(page["data"].as_str().expect("text"));
        if page["status"] != "running" && page["has_more"] == false {
            break;
        }
    }
    assert_eq!(seen, text, "{mode:?}");
}

fn number(page: &Value, field: &str) -> u64 {
    page[field].as_u64().unwrap_or_else(|| panic!("`{field}` in {page}"))
}

/// Checks that a page matches the output of the code.
fn check(page: &Value, mode: Mode, text: &str) {
    let (start, end, total) =
        (number(page, "start_byte") as usize, number(page, "end_byte") as usize, number(page, "total_bytes") as usize);
    let data = page["data"].as_str().expect("text");
    assert!(end <= total && total <= text.len(), "{page}");
    assert_eq!(data, &text[start..end], "{page}");
    let newlines = |to: usize| text[..to].matches('\n').count() as u64;
    assert_eq!(number(page, "total_lines"), newlines(total), "{page}");
    if data.is_empty() {
        assert_eq!(number(page, "start_line"), number(page, "end_line") + 1, "{page}");
        assert_eq!(start, end, "{page}");
    } else {
        assert_eq!(number(page, "start_line"), newlines(start) + 1, "{page}");
        assert_eq!(number(page, "end_line"), newlines(end) + 1 - u64::from(data.ends_with('\n')), "{page}");
    }
    match mode {
        Mode::Lines(limit) => {
            assert!(data.is_empty() || data.ends_with('\n'), "whole lines only: {page}");
            assert!(data.matches('\n').count() as u64 <= limit, "{page}");
            assert_eq!(page["has_more"], number(page, "next_line_offset") <= number(page, "total_lines"), "{page}");
        }
        Mode::Bytes(limit) => {
            assert!(data.len() as u64 <= limit.max(4), "{page}");
            assert_eq!(page["has_more"], end < total, "{page}");
        }
    }
}

#[tokio::test]
async fn a_cursor_past_the_end_does_not_move_and_output_is_kept() {
    let server = Server::start();
    let code = "console.log('one'); await new Promise(done => setTimeout(done, 3000))";
    let (_, accepted) = server.post("/api/exec", json!({ "code": code })).await;
    let id = accepted["execution_id"].as_str().expect("an id");
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=10")).await;
    assert_eq!((&page["data"], &page["status"]), (&json!("one\n"), &json!("running")), "{page}");
    let (_, empty) = server.get(&format!("/api/executions/{id}/output?line_offset=2")).await;
    assert_eq!((&empty["data"], &empty["next_line_offset"], &empty["start_byte"]), (&json!(""), &json!(2), &json!(4)), "{empty}");
    let (status, _) = server.post(&format!("/api/executions/{id}/cancel"), json!({})).await;
    assert_eq!(status, 200);
    let (_, kept) = server.get(&format!("/api/executions/{id}/output")).await;
    assert_eq!((&kept["data"], &kept["status"]), (&json!("one\n"), &json!("cancelled")), "{kept}");
}

#[tokio::test]
async fn byte_parameters_take_precedence_and_characters_are_not_split() {
    let server = Server::start();
    let record = server.run("console.log('é€𝄞\\n' + 'x'.repeat(5000)); for (let i = 0; i < 150; i++) console.log(i)").await;
    let id = record["execution_id"].as_str().expect("an id");
    let page = async |query: &str| server.get(&format!("/api/executions/{id}/output?{query}")).await.1;
    let both = page("byte_offset=0&byte_limit=2&line_offset=7&line_limit=3").await;
    assert_eq!((&both["data"], &both["start_byte"], &both["end_byte"]), (&json!("é"), &json!(0), &json!(2)), "lines are ignored: {both}");
    let lines = page("line_offset=3&line_limit=2&byte_limit=1").await;
    assert_eq!(lines["data"], "0\n1\n", "`byte_limit` is ignored without `byte_offset`: {lines}");
    assert_eq!(page("byte_offset=0").await["end_byte"], 4096);
    assert_eq!(page("").await["end_line"], 100);
    let inside = page("byte_offset=6&byte_limit=1").await;
    assert_eq!((&inside["data"], &inside["start_byte"], &inside["end_byte"]), (&json!("𝄞"), &json!(5), &json!(9)), "{inside}");
    let total = number(&inside, "total_bytes");
    let tail = page(&format!("byte_offset={}&byte_limit=4096", total - 4096)).await;
    assert_eq!((tail["next_byte_offset"].as_u64(), &tail["has_more"]), (Some(total), &json!(false)), "{tail}");
    let far = page("byte_offset=99999999").await;
    assert_eq!((&far["data"], &far["next_byte_offset"], &far["has_more"]), (&json!(""), &json!(99_999_999), &json!(false)), "{far}");
}

#[tokio::test]
async fn output_is_visible_within_50_ms() {
    let server = Server::start();
    let code = "for (let i = 0; i < 20; i++) { console.log(Date.now()); await new Promise(done => setTimeout(done, 30)) }";
    let (_, accepted) = server.post("/api/exec", json!({ "code": code })).await;
    let id = accepted["execution_id"].as_str().expect("an id");
    let mut delays = Vec::new();
    for line in 1..=20 {
        let (_, page) = server.get(&format!("/api/executions/{id}/output?line_offset={line}&line_limit=1&wait_secs=10")).await;
        let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis() as i64;
        delays.push(now_ms - page["data"].as_str().expect("text").trim().parse::<i64>().expect("a time"));
    }
    delays.sort_unstable();
    assert!(delays[10] <= 50, "half of the lines took longer than 50 ms: {delays:?}");
}

#[tokio::test]
async fn waiting_for_output_ends_with_output_or_the_timeout() {
    let server = Server::start();
    let (_, accepted) =
        server.post("/api/exec", json!({ "code": "await new Promise(done => setTimeout(done, 700)); console.log('late')" })).await;
    let id = accepted["execution_id"].as_str().expect("an id");
    let began = Instant::now();
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=0.1")).await;
    assert_eq!((&page["data"], &page["status"]), (&json!(""), &json!("running")));
    assert!(began.elapsed().as_millis() >= 90, "it waited");
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=30")).await;
    assert_eq!(page["data"], "late\n");
    assert!(began.elapsed().as_secs() < 20, "it returned when there was output");
}
