//! Third-party MCP clients run the same tour; `tests/clients` has their scripts.

use crate::fixture::{Folders, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Runs `tests/tools/node` or `tests/tools/python` with arguments.
pub fn tool(name: &str) -> Command {
    let mut command = Command::new(repository().join("tests/tools").join(name));
    command.current_dir(repository().join("tests/clients"));
    command
}

pub fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn tour(runner: &str, script: &str, kind: &str, place: &[&str]) {
    let output = tool(runner).arg(script).arg(kind).args(place).output().expect("it starts");
    assert!(output.status.success(), "{script} over {kind}: {}", text(&output));
}

/// The command that starts a stdio server in these folders.
fn command(folders: &Folders) -> Vec<String> {
    let command = Server::command(folders);
    std::iter::once(command.get_program()).chain(command.get_args()).map(|part| part.to_str().expect("text").to_owned()).collect()
}

/// Runs one script on every transport that its client supports.
fn everywhere(runner: &str, script: &str) {
    let folders = Folders::new();
    let stdio = command(&folders);
    tour(runner, script, "stdio", &stdio.iter().map(String::as_str).collect::<Vec<_>>());
    let server = Server::start();
    tour(runner, script, "http", &[&format!("{}/mcp", server.url)]);
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    tour(runner, script, "sse", &[&format!("{}/sse", server.url)]);
}

#[test]
fn python() {
    everywhere("python", "python_client.py");
}

#[test]
fn fastmcp() {
    everywhere("python", "fastmcp_client.py");
}

#[test]
fn langchain() {
    everywhere("python_langchain", "langchain_client.py");
}

/// Tools that its strict mode refuses are never offered to some models.
#[test]
fn openai_agents() {
    let folders = Folders::new();
    let mut stdio = command(&folders);
    stdio.push("--plasm-names".into());
    tour("python", "openai_agents.py", "stdio", &stdio.iter().map(String::as_str).collect::<Vec<_>>());
    let server = Server::start_with(&Folders::new(), &["--plasm-names"]);
    tour("python", "openai_agents.py", "http", &[&format!("{}/mcp", server.url)]);
}

#[test]
fn typescript_sdk_of_versions_with_initialize() {
    everywhere("node", "typescript_sdk.mjs");
}

#[test]
fn typescript_sdk_of_2026_07_28() {
    everywhere("node", "typescript_client.mjs");
}

/// Runs one command of MCP Inspector's CLI.
fn inspector(place: &[&str], arguments: &[&str]) -> Result<serde_json::Value, String> {
    // Node finds the packages through this variable; the tool's own shell script sets it.
    let inspector = "import(process.env.HEAPSTEAD_TEST_PACKAGES + '/@modelcontextprotocol/inspector/clients/launcher/build/index.js')";
    let mut command = tool("node");
    command.args(["-e", inspector, "--", "inspector", "--cli"]);
    // Inspector does not pass its environment on to servers unless told to.
    if let Ok(engine) = std::env::var("HEAPSTEAD_ENGINE_DIR") {
        command.args(["-e", &format!("HEAPSTEAD_ENGINE_DIR={engine}")]);
    }
    command.args(place).args(arguments);
    let output = command.output().expect("it starts");
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", text(&output))),
        false => Err(text(&output)),
    }
}

#[test]
fn inspector_on_the_command_line() {
    let server = Server::start();
    let url = format!("{}/mcp", server.url);
    let folders = Folders::new();
    let stdio = command(&folders);
    let stdio: Vec<_> = stdio.iter().map(String::as_str).collect();
    for place in [&[url.as_str()][..], &stdio] {
        let ask = |arguments: &[&str]| inspector(place, arguments).unwrap_or_else(|error| panic!("{place:?} {arguments:?}: {error}"));
        // It also checks for schemas that some models do not accept.
        let tools = ask(&["--method", "tools/list", "--strict"]);
        assert!(tools["tools"].as_array().is_some_and(|tools| tools.len() >= 12), "{tools}");
        let answer = ask(&["--method", "tools/call", "--tool-name", "run_js", "--tool-arg", "code=6*7", "--tool-arg", "wait_secs=60"]);
        assert_eq!(answer["structuredContent"]["result"], "42", "{answer}");
        let uri = format!("heapstead://executions/{}", answer["structuredContent"]["execution_id"].as_str().expect("an id"));
        let read = ask(&["--method", "resources/read", "--uri", &uri]);
        assert_eq!(read["contents"][0]["uri"], uri.as_str());
        assert!(
            inspector(
                place,
                &["--method", "tools/call", "--tool-name", "run_js", "--tool-arg", "code=null.x", "--tool-arg", "wait_secs=60"]
            )
            .is_err_and(|text| text.contains("TypeError"))
        );
    }
}
