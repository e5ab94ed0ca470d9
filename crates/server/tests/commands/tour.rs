//! Runs the commands of the README's tour in one shell against a server, and compares their output with the page.

use crate::fixture::{Folders, Server};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The server's address on the page.
const README_URL: &str = "http://127.0.0.1:8420";
/// Matches any text, for output that differs between runs.
const ANYTHING: char = '…';

struct Step {
    command: String,
    expected: String,
}

/// The commands of the page's `console` blocks, each with its expected output.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) if line.starts_with("$ ") => steps.push(Step { command: line[2..].to_owned(), expected: String::new() }),
            (true, line) => {
                let step = steps.last_mut().expect("a command before its output");
                if let Some(more) = line.strip_prefix("> ") {
                    step.command.push('\n');
                    step.command.push_str(more);
                } else {
                    step.expected.push_str(line);
                    step.expected.push('\n');
                }
            }
            (false, _) => {}
        }
    }
    steps
}

fn matches(expected: &str, found: &str) -> bool {
    let mut parts = expected.split(ANYTHING);
    let Some(mut rest) = found.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[tokio::test]
async fn the_commands_of_the_tour_print_the_documented_output() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).expect("the README");
    let steps = steps(&page);
    assert!(steps.len() >= 8, "README.md has too few commands");
    let catalogs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogs");
    let folder = |name: &str| catalogs.join(name).to_str().expect("a path in UTF-8").to_owned();
    let server = Server::start_with(&Folders::new(), &["--catalog", &folder("statistics"), "--catalog", &folder("dates")]);
    let marker = |at: usize| format!("--- step {at} ---\n");
    let mut script = "exec 2>&1\n".to_owned();
    for (at, step) in steps.iter().enumerate() {
        script.push_str(&format!("printf '%s\\n' '{}'\n{}\n", marker(at).trim_end(), step.command.replace(README_URL, &server.url)));
    }
    let program = Path::new(env!("CARGO_BIN_EXE_heapstead")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash")
        .env("PATH", path)
        .env("HEAPSTEAD_DIRECTORY_PATH", server.folders().heaps())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    shell.stdin.take().expect("piped").write_all(script.as_bytes()).expect("the script");
    let printed = String::from_utf8(shell.wait_with_output().expect("the end").stdout).expect("UTF-8");
    let mut rest = printed.as_str();
    for (at, step) in steps.iter().enumerate() {
        rest = rest.split_once(&marker(at)).map_or(rest, |(_, rest)| rest);
        let found = rest.split_once(&marker(at + 1)).map_or(rest, |(found, _)| found).replace(&server.url, README_URL);
        assert!(matches(&step.expected, &found), "$ {}\nprints\n{found}\nand not\n{}", step.command, step.expected);
    }
}

#[test]
fn an_ellipsis_matches_any_text() {
    for (expected, found, yes) in [
        ("a\n", "a\n", true),
        ("a…c\n", "abc\n", true),
        ("a…c…e\n", "abcde\n", true),
        ("a…\n", "a\n", true),
        ("a…c\n", "ac", false),
        ("a…c…e\n", "abe\n", false),
        ("a\n", "ab\n", false),
    ] {
        assert_eq!(matches(expected, found), yes, "{expected:?} {found:?}");
    }
}
