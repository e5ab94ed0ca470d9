//! Our own conformance suite (`tests/conformance-sessions`), with third-party clients, over stdio and HTTP, against each kind of server it
//! supports.

use crate::fixture::{Folders, Server};
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Runs the cases for one kind of server, started with the flag of the same name.
fn hold(runner: &str, script: &str, kind: &str) {
    let flag = format!("--{kind}");
    let flags: &[&str] = if kind == "normal" { &[] } else { &[&flag] };
    let folders = Folders::new();
    let command = Server::command(&folders);
    let stdio = std::iter::once(command.get_program()).chain(command.get_args()).map(|part| part.to_str().expect("text").to_owned());
    let server = Server::start_with(&Folders::new(), flags);
    let over_stdio: Vec<_> = std::iter::once("stdio".to_owned()).chain(stdio).chain(flags.iter().map(|flag| (*flag).to_owned())).collect();
    for place in [over_stdio, vec!["http".to_owned(), format!("{}/mcp", server.url)]] {
        let mut run = Command::new(repository().join("tests/tools").join(runner));
        let output = run.arg(repository().join("tests/conformance-sessions").join(script)).args(["--server", kind]).args(&place).output();
        let output = output.expect("it starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{script} on a {kind} server over {}:\n{printed}\n{}",
            place[0],
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn python() {
    for kind in ["normal", "stateless", "require-session"] {
        hold("python", "run.py", kind);
    }
}

#[test]
fn typescript() {
    for kind in ["normal", "stateless", "require-session"] {
        hold("node", "run.mjs", kind);
    }
}
