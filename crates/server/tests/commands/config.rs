//! Precedence of values (command line, variable, file, default), and useful errors for an invalid file.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use serde_json::json;

/// The database folder that a command would use. The error names it because it does not exist.
fn database_used(place: &Place, arguments: &[&str], variable: Option<&str>) -> String {
    let mut command = place.command(["executions", "ls"].iter().chain(arguments));
    match variable {
        Some(value) => command.env("HEAPSTEAD_SESSION_DB_PATH", value),
        None => command.env_remove("HEAPSTEAD_SESSION_DB_PATH"),
    };
    let ran: Ran = command.output().expect("it runs").into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found = ran.err.lines().next().and_then(|line| line.strip_prefix("error: there is no database folder at "));
    found.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

#[test]
fn precedence_is_command_line_variable_file_default() {
    let place = Place::new();
    let file =
        place.file("heapstead.toml", "session-db-path = \"/from/file\"\nhttp-port = 1 # of the server, and none of this command's\n");
    let (config, flag) = (["--config", &file], ["--session-db-path", "/from/flag"]);
    assert_eq!(database_used(&place, &[config, flag].concat(), Some("/from/variable")), "/from/flag");
    assert_eq!(database_used(&place, &config, Some("/from/variable")), "/from/variable");
    assert_eq!(database_used(&place, &config, None), "/from/file");
    let page = place.ran(["reference", "flags"]).out;
    assert!(page.contains("| `--session-db-path DIR` | `HEAPSTEAD_SESSION_DB_PATH` | `/tmp/mcp-v8-sessions` |"), "{page}");
}

#[test]
fn the_file_may_be_named_by_a_variable() {
    let place = Place::new();
    let file = place.file("heapstead.toml", "session-db-path = \"/from/file\"\n");
    let mut command = place.command(["executions", "ls"]);
    let ran: Ran = command.env_remove("HEAPSTEAD_SESSION_DB_PATH").env("HEAPSTEAD_CONFIG", file).output().expect("it runs").into();
    assert!(ran.err.contains("there is no database folder at /from/file"), "{ran:?}");
}

#[test]
fn errors_name_file_key_value_and_allowed_values() {
    let place = Place::new();
    for (text, parts) in [
        ("http-prot = 8420", &["`http-prot` is not a setting", "allowed are http-port, sse-port,"][..]),
        ("http_port = 8420", &["`http_port` is not a setting", "write `http-port`"]),
        ("config = \"other.toml\"", &["`config` is not a setting"]),
        ("url = \"http://x\"", &["`url` is not a setting"]),
        ("http-port = \"8420\"", &["`http-port` is \"8420\"", "expected a whole number, without quotes"]),
        ("http-port = 70000", &["`http-port` is 70000", "65535"]),
        ("http-port = 80.5", &["`http-port` is 80.5", "expected a whole number"]),
        ("execution-timeout = 301", &["`execution-timeout` is 301", "allowed are 1 to 300 seconds"]),
        ("execution-timeout = -1", &["`execution-timeout` is -1", "allowed are 1 to 300 seconds"]),
        ("max-queued = 0", &["`max-queued` is 0", "allowed are 1 to 1000000"]),
        ("stateless = \"yes\"", &["`stateless` is \"yes\"", "expected true or false, without quotes"]),
        ("stateless = 1", &["`stateless` is 1", "expected true or false"]),
        ("s3-path-style = \"\"", &["`s3-path-style` is \"\"", "expected true or false"]),
        ("on-missing-heap = \"cry\"", &["`on-missing-heap` is \"cry\"", "allowed are fresh, fail"]),
        ("bind-host = \"here\"", &["`bind-host` is \"here\"", "invalid IP address"]),
        ("directory-path = 7", &["`directory-path` is 7", "expected a string in quotes"]),
        ("allowed-hosts = [1, 2]", &["`allowed-hosts` is [1, 2]", "expected a list of strings in quotes"]),
        ("allowed-hosts = 1", &["`allowed-hosts` is 1", "expected a list of strings in quotes"]),
        ("session-id = \"\"", &["`session-id` is \"\"", "1 to 256 characters"]),
        ("[heaps]\ndirectory-path = \"x\"", &["`heaps` is not a setting"]),
        ("http-port = ", &["it is not TOML", "line 1"]),
        ("http-port = 1\nhttp-port = 2", &["it is not TOML", "duplicate key"]),
    ] {
        let file = place.file("bad.toml", text);
        let ran = place.ran(["serve", "--config", &file]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{text}: {ran:?}");
        for part in parts.iter().chain([&"bad.toml"]) {
            assert!(ran.err.contains(part), "{text}: `{part}` is not in {}", ran.err);
        }
    }
    let ran = place.ran(["--config", "missing.toml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("`--config` is `missing.toml`, which can't be read: No such file"), "{ran:?}");
}

#[tokio::test]
async fn a_server_uses_the_file_unless_overridden() {
    let folders = Folders::new();
    let file = folders.path().join("heapstead.toml");
    let text = "execution-timeout = 1\nheap-memory-max = 16\noutput-max-mb = 1\nsession-id = \"of the file\"\non-missing-heap = \"fail\"\n\
                allowed-hosts = [\"127.0.0.1\", \"other.example\"]\nmax-memory-mb = 300\nstateless = true\nmax-inline-chars = 2000\n";
    std::fs::write(&file, text).expect("file");
    let config = ["--config", file.to_str().expect("a name in UTF-8"), "--stateless=false"];
    let server = Server::start_in(&folders, &config, &[("HEAPSTEAD_SESSION_ID", "of the variable")]);

    let looped = server.run("for (;;);").await;
    assert_eq!(looped["status"], "timed_out", "{looped}");
    assert!(looped["error"].as_str().expect("a text").contains("its limit of 1 s"), "{looped}");
    let large = server.run("const all = []; for (;;) all.push(new Array(1e4).fill({}))").await;
    assert!(large["error"].as_str().expect("a text").contains("16 MB"), "{large}");
    let talkative = server.run("console.log('x'.repeat(2 << 20))").await;
    let (_, page) =
        server.get(&format!("/api/executions/{}/output?line_offset=2", talkative["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(page["data"], "[output truncated: more than 1 MB was written]\n", "{page}");
    assert_eq!(server.post("/api/exec", json!({ "code": "1", "heap": "a".repeat(64) })).await.0, 404);
    let (status, refused) = server.post("/api/exec", json!({ "code": "1", "heap_memory_max_mb": 128 })).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused["detail"].as_str().expect("a text").contains("expected an integer from 8 to 46"), "{refused}");
    let (_, sessions) = server.get("/api/sessions").await;
    assert_eq!(sessions, json!({ "sessions": ["of the variable"] }));
    for (host, expected) in [("other.example", 200), ("foreign.example", 403)] {
        let asked = server.client.get(format!("{}/api/health", server.url)).header("host", host).send().await.expect("an answer");
        assert_eq!(asked.status().as_u16(), expected, "{host}");
    }
}

#[test]
fn an_s3_flag_without_a_bucket_is_refused() {
    let place = Place::new();
    for (flag, value) in [("--cache-dir", "cache"), ("--s3-endpoint", "https://s3.example"), ("--s3-secret-access-key", "secret")] {
        for command in [&["serve"][..], &["run", "-e", "1"], &["heaps", "ls"], &["executions", "ls"]] {
            let ran = place.ran(command.iter().chain(&[flag, value]));
            assert_eq!(ran.code, Some(2), "{command:?}: {ran:?}");
            assert!(ran.err.contains(&format!("`{flag}` is given without `--s3-bucket`")), "{ran:?}");
            assert!(!ran.err.contains("secret\n"), "{ran:?}");
        }
    }
}
