//! Server start: the printed commands work, and errors say what to do.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// A server, and its output before the log.
struct Started {
    child: Child,
    said: Vec<String>,
}

impl Started {
    fn new(folders: &Folders, arguments: &[&str]) -> Self {
        let mut child =
            Server::command(folders).args(["--http-port", "0"]).args(arguments).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = Vec::new();
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        for line in &mut lines {
            let last = line.starts_with("  Documentation");
            said.push(line);
            // Two more lines, and the commands for stdio.
            if last && arguments.contains(&"--stateless") {
                break;
            }
            if said.iter().filter(|line| line.starts_with("  Cursor")).count() == 2 {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, said }
    }

    /// The printed command for a client.
    fn printed_command(&self, client: &str) -> Vec<&str> {
        self.said.iter().filter_map(|line| line.strip_prefix("  ")?.strip_prefix(client)).map(str::trim_start).collect()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shell(command: &str) -> Ran {
    Command::new("sh").args(["-c", command]).output().expect("a shell").into()
}

#[test]
fn the_printed_curl_command_runs_code() {
    let folders = Folders::new();
    let started = Started::new(&folders, &[]);
    let ran = shell(started.printed_command("curl")[0]);
    assert_eq!((ran.code, &ran.json()["result"]), (Some(0), &json!("2")), "{ran:?}");
    let stateless = Started::new(&Folders::new(), &["--stateless"]);
    let ran = shell(stateless.printed_command("curl")[0]);
    assert_eq!(ran.json(), json!({ "output": "2\n" }), "{ran:?}");
    let page = shell(&format!("curl -sf {}", started.printed_command("Documentation")[0]));
    assert!(page.code == Some(0) && page.out.contains("<html"), "{page:?}");
}

#[test]
fn the_printed_client_commands_connect_over_mcp() {
    let folders = Folders::new();
    let started = Started::new(&folders, &[]);
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }
    });
    // Over HTTP.
    let claude = started.printed_command("Claude Code");
    let url = claude[0].strip_prefix("claude mcp add --transport http heapstead ").expect("a command");
    let config: Value =
        serde_json::from_str(started.printed_command("Cursor")[0].split_once(": ").expect("a file and JSON").1).expect("JSON");
    assert_eq!(config["mcpServers"]["heapstead"]["url"], url);
    let headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'";
    let ran = shell(&format!("curl -s {url} {headers} -d '{initialize}'"));
    assert!(ran.out.contains("\"serverInfo\""), "{ran:?}");
    // Over stdio, with the command printed for each client.
    let command = claude[1].strip_prefix("claude mcp add heapstead -- ").expect("a command");
    let config: Value = serde_json::from_str(started.printed_command("Cursor")[1]).expect("JSON");
    let entry = &config["mcpServers"]["heapstead"];
    let words: Vec<_> =
        std::iter::once(&entry["command"]).chain(entry["args"].as_array().expect("arguments")).filter_map(Value::as_str).collect();
    assert_eq!(words.join(" "), command);
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    writeln!(stdin, "{initialize}").expect("written");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("an answer");
    let answer: Value = serde_json::from_str(&line).expect("JSON and nothing else");
    assert_eq!((&answer["id"], answer["result"]["serverInfo"]["name"].is_string()), (&json!(1), true), "{answer}");
    // The server exits with its client.
    drop(stdin);
    stdout.read_to_string(&mut line).expect("the end");
    assert!(child.wait().expect("an end").success());
}

#[tokio::test]
async fn a_port_in_use_is_an_error_with_a_hint() {
    let server = Server::start();
    let port = server.url.rsplit(':').next().expect("a port");
    let folders = Folders::new();
    for flag in ["--http-port", "--sse-port"] {
        let ran: Ran = Server::command(&folders).args([flag, port]).output().expect("it runs").into();
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        for part in
            [format!("can't listen on 127.0.0.1:{port}"), "in use".into(), "choose another port".into(), "make run PORT=8421".into()]
        {
            assert!(ran.err.contains(&part), "`{part}` is not in {ran:?}");
        }
    }
    assert!(!folders.heaps().exists() && !folders.database().exists(), "nothing was started");
    let doctor = Place::new().ran(["doctor", "--http-port", port]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains(&format!("✗ port: 127.0.0.1:{port} can't be listened on")), "{doctor:?}");
}

#[test]
fn a_foreign_bind_address_is_an_error() {
    let ran: Ran = Server::command(&Folders::new())
        .args(["--http-port", "0", "--bind-host", "192.0.2.1", "--insecure-no-auth"])
        .output()
        .expect("it runs")
        .into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("`--bind-host` has to be an address of this machine"), "{ran:?}");
}
