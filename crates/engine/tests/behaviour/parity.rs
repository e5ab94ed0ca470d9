//! Compares the console and web globals with Node: the V8 host is a complete Node, which runs the same scripts and must print the same
//! bytes.

use super::support::{Chain, run};
use heapstead_engine::{Artifacts, Kind, Outcome};
use std::path::Path;

async fn check_parity(folder: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder).join("cases.js");
    let host = Artifacts::find().expect("run `make build`").host;
    let theirs = std::process::Command::new(host).arg(&file).env("TZ", "UTC").output().expect("Node runs").stdout;
    let theirs = String::from_utf8(theirs).expect("UTF-8");
    let code = std::fs::read_to_string(&file).expect("cases");
    let ours = Chain::start().await.output(&code).await;
    for (number, (ours, theirs)) in sections(&ours).zip(sections(&theirs)).enumerate() {
        assert_eq!(ours, theirs, "section {number} of {}", file.display());
    }
    assert_eq!(ours.len(), theirs.len());
    assert!(sections(&theirs).count() > 50, "the cases ran");
}

fn sections(output: &str) -> impl Iterator<Item = &str> {
    output.split("\n--- ")
}

#[tokio::test]
async fn the_console_prints_what_node_prints() {
    check_parity("console").await;
}

#[tokio::test]
async fn web_globals_and_intl_behave_as_in_node() {
    check_parity("web").await;
}

/// Every label and stream of every encoding, cloning, events, tasks, digests, locales.
#[tokio::test]
async fn the_other_web_globals_behave_as_in_node() {
    check_parity("globals").await;
}

/// Regression: URLs were parsed by another implementation than Node's, and hundreds of cases of the standard differed.
#[tokio::test]
async fn urls_behave_as_in_node() {
    check_parity("url").await;
}

#[tokio::test]
async fn recent_features_behave_as_v8s_own() {
    check_parity("recent").await;
}

/// Stateless runs use V8's built-ins where stateful ones use ours. Both must agree.
#[tokio::test]
async fn stateless_runs_print_the_same() {
    let code = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recent/cases.js")).expect("cases");
    let engine = super::support::engine().await;
    let (stateless, outcome) = run(&engine, &code, Kind::Stateless).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    let (stateful, _) = run(&engine, &code, Kind::Stateful(None)).await;
    assert_eq!(stateless, stateful);
}

/// The host executable exports a URL parser of the same name. Binding to it would call code of another compiler and library.
#[test]
fn the_url_parser_is_the_workers_own_copy() {
    let library = Artifacts::find().expect("run `make build`").worker;
    let symbols = std::process::Command::new("nm").arg("--dynamic").arg(library).output().expect("nm runs").stdout;
    let symbols = String::from_utf8(symbols).expect("UTF-8");
    assert!(symbols.contains("__libc_start_main"), "these are the library's symbols");
    let names = symbols.lines().filter_map(|line| line.split_whitespace().last());
    let bound: Vec<&str> = names.filter(|name| name.contains("3ada") || name.starts_with("ada_")).collect();
    assert!(bound.is_empty(), "{bound:?}");
}
