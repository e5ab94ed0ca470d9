//! `heapstead heaps`: the same results from a server and from its stores.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Runs the command on the stores of a server and on the server itself.
pub fn both(server: &Server, arguments: &[&str]) -> [Ran; 2] {
    [at_stores(server.folders(), arguments), Place::new().ran(arguments.iter().chain(&["--url", &server.url]))]
}

pub fn at_stores(folders: &Folders, arguments: &[&str]) -> Ran {
    let mut command = Place::new().command(arguments);
    command.current_dir("/").arg("--directory-path").arg(folders.heaps()).arg("--session-db-path").arg(folders.database());
    // The owner of HTTP callers on a server without authentication.
    command.args(["--owner", "anonymous"]);
    command.output().expect("it runs").into()
}

/// The result of both, which must be equal.
pub fn json_of_both(server: &Server, arguments: &[&str]) -> Value {
    let [stores, asked] = both(server, &[arguments, &["--json"]].concat()).map(|ran| {
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?}: {ran:?}");
        ran.json()
    });
    assert_eq!(stores, asked, "{arguments:?}");
    stores
}

#[tokio::test]
async fn heaps_are_listed_and_shown() {
    let server = Server::start();
    let empty = both(&server, &["heaps", "ls"]);
    assert!(empty.iter().all(|ran| (ran.code, ran.out.as_str(), ran.err.as_str()) == (Some(0), "", "there are no heaps\n")), "{empty:?}");
    let mut keys = Vec::new();
    for n in 0..3 {
        let record = server.run_with(json!({ "code": format!("let n = {n}"), "tags": { "n": n.to_string() } })).await;
        keys.push(record["heap"].as_str().expect("a heap").to_owned());
    }
    keys.sort();

    let all = json_of_both(&server, &["heaps", "ls"]);
    let listed: Vec<_> = all["heaps"].as_array().expect("a list").iter().map(|heap| heap["heap"].as_str().expect("a key")).collect();
    assert_eq!(listed, keys);
    let first = json_of_both(&server, &["heaps", "ls", "--limit", "2"]);
    assert_eq!((first["heaps"].as_array().map(Vec::len), &first["next_cursor"]), (Some(2), &json!(keys[1])), "{first}");
    let rest = json_of_both(&server, &["heaps", "ls", "--limit", "2", "--cursor", &keys[1]]);
    assert_eq!((&rest["heaps"][0]["heap"], rest.get("next_cursor")), (&json!(keys[2]), None), "{rest}");
    assert_eq!(json_of_both(&server, &["heaps", "ls", "--all"])["heaps"], all["heaps"]);
    for ran in both(&server, &["heaps", "ls", "--limit", "2"]) {
        let lines: Vec<_> = ran.out.lines().collect();
        assert_eq!(lines.len(), 3, "{ran:?}");
        assert!(lines[0].starts_with("HEAP ") && lines[1].starts_with(&keys[0]) && lines[1].contains(" KB  20"), "{ran:?}");
        assert!(ran.err.contains(&format!("`--cursor {}` continues", keys[1])), "{ran:?}");
    }

    let shown = json_of_both(&server, &["heaps", "show", &keys[0]]);
    assert_eq!(
        (&shown["heap"], shown["tags"]["n"].is_string(), shown["bytes"].as_u64() > Some(100 << 10)),
        (&json!(keys[0]), true, true),
        "{shown}"
    );
    assert!(shown["engine"].as_str().expect("a text").starts_with("v8-"), "{shown}");
    for ran in both(&server, &["heaps", "show", &keys[0]]) {
        for part in [format!("heap     {}", keys[0]), "engine   v8-".into(), "tags     n=".into()] {
            assert!(ran.out.contains(&part), "`{part}` is not in {ran:?}");
        }
    }
}

#[tokio::test]
async fn a_heap_is_exported_and_imported() {
    let (here, there) = (Server::start(), Server::start());
    let record = here.run("let n = 41").await;
    let key = record["heap"].as_str().expect("a heap");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("n.heap");
    let file = file.to_str().expect("a name in UTF-8");
    let stored = std::fs::read(here.folders().heaps().join(key)).expect("a file");
    for [exported, imported] in [both(&here, &["heaps", "export", key, file]), both(&there, &["heaps", "import", file])] {
        for ran in [exported, imported] {
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
        }
        assert_eq!(std::fs::read(file).expect("a file"), stored);
    }
    let went_on = there.run_with(json!({ "code": "++n", "heap": key, "on_missing_heap": "fail" })).await;
    assert_eq!(went_on["result"], "42", "{went_on}");

    // Without its sidecar, as through a pipe, the engine may be named but need not be.
    let [exported, _] = both(&here, &["heaps", "show", key, "--json"]);
    let engine = exported.json()["engine"].as_str().expect("an engine").to_owned();
    std::fs::remove_file(format!("{file}.json")).expect("the sidecar");
    for ran in both(&there, &["heaps", "import", file]) {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains(key) && ran.err.contains("its engine is not known") && ran.err.contains("`--engine ID`"), "{ran:?}");
    }
    for ran in both(&there, &["heaps", "import", file, "--engine", &engine, "--json"]) {
        assert_eq!(ran.json(), json!({ "heap": key }), "{ran:?}");
    }
    for ran in both(&there, &["heaps", "import", file, "--engine", "v8-1.0/x86_64/flags-00000000/natives-1-00000000"]) {
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("the heap itself says that it was written by engine v8-1"), "{ran:?}");
    }
    assert_eq!(json_of_both(&there, &["heaps", "show", key])["engine"], engine.as_str());
}

#[tokio::test]
async fn invalid_files_are_not_imported() {
    let server = Server::start();
    let record = server.run("1").await;
    let key = record["heap"].as_str().expect("a heap");
    let engine = json_of_both(&server, &["heaps", "show", key])["engine"].as_str().expect("an engine").to_owned();
    let mut bytes = std::fs::read(server.folders().heaps().join(key)).expect("a file");
    *bytes.last_mut().expect("a byte") ^= 1;
    let place = Place::new();
    for (name, bytes) in [("flipped", &bytes[..]), ("cut", &bytes[..1000]), ("empty", &[])] {
        let file = place.file(name, bytes);
        for ran in both(&server, &["heaps", "import", &file, "--engine", &engine]) {
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{name}: {ran:?}");
            assert!(ran.err.contains("is not a heap: "), "{name}: {ran:?}");
        }
    }
    assert_eq!(json_of_both(&server, &["heaps", "ls"])["heaps"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn unreferenced_heaps_are_removed_after_their_retention() {
    let server = Server::start();
    let tagged = server.run_with(json!({ "code": "let tagged = 1", "tags": { "keep": "yes" } })).await;
    // An imported heap has no record, so only its age protects it.
    let other = Server::start();
    let stray = other.run("let stray = 1").await["heap"].as_str().expect("a heap").to_owned();
    for file in [stray.clone(), format!(".meta/{stray}.json")] {
        std::fs::copy(other.folders().heaps().join(&file), server.folders().heaps().join(&file)).expect("copied");
    }
    assert_eq!(json_of_both(&server, &["heaps", "gc", "--dry-run"]), json!({ "kept": 1, "removed": [], "removed_bytes": 0 }), "its own");
    assert_eq!(json_of_both(&server, &["heaps", "gc", "--dry-run", "--unknown"])["kept"], 2, "both are young");

    let stored = std::fs::File::options().write(true).open(server.folders().heaps().join(&stray)).expect("a file");
    stored.set_modified(SystemTime::now() - Duration::from_secs(31 * 24 * 3600)).expect("a time");
    // The heap may belong to another server.
    assert_eq!(json_of_both(&server, &["heaps", "gc"])["removed"], json!([]));
    let found = json_of_both(&server, &["heaps", "gc", "--dry-run", "--unknown"]);
    assert_eq!((&found["removed"], &found["kept"]), (&json!([stray]), &json!(1)), "{found}");
    let kept = at_stores(server.folders(), &["heaps", "gc", "--dry-run", "--unknown", "--retain-heaps", "32", "--json"]).json();
    assert_eq!(kept["removed"], json!([]), "{kept}");

    let done = Place::new().ran(["heaps", "gc", "--unknown", "--url", &server.url]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), format!("{stray}\n").as_str()), "{done:?}");
    assert!(done.err.starts_with("removed 1 heaps (") && done.err.ends_with(", kept 1\n"), "{done:?}");
    let left = json_of_both(&server, &["heaps", "ls"]);
    assert_eq!((left["heaps"].as_array().map(Vec::len), &left["heaps"][0]["heap"]), (Some(1), &tagged["heap"]));
}

#[tokio::test]
async fn errors_say_what_to_do_next() {
    let server = Server::start();
    let unknown = "a".repeat(64);
    for command in [&["heaps", "show"][..], &["heaps", "export"]] {
        for ran in both(&server, &[command, &[unknown.as_str()]].concat()) {
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
            assert!(ran.err.contains(&unknown) && ran.err.contains("next: ") && ran.err.contains("ls` lists the existing ones"), "{ran:?}");
        }
    }
    let place = Place::new();
    for (arguments, code, parts) in [
        (&["heaps", "show", "abc"][..], 2, &["64 lowercase hex digits"][..]),
        (&["heaps", "ls", "--limit", "0"], 2, &["--limit"]),
        (&["heaps", "ls"], 1, &["there is no heap folder at", "next: name the folder with `--directory-path DIR`"]),
        (
            &["heaps", "ls", "--url", "http://127.0.0.1:1"],
            1,
            &["no response from http://127.0.0.1:1/", "Connection refused", "next: start a server"],
        ),
        (&["heaps", "ls", "--url", "127.0.0.1:8420"], 2, &["`--url` is `127.0.0.1:8420`", "next: give the address"]),
        (&["heaps", "ls", "--url", "http://h/mcp"], 2, &["it has a path"]),
        (&["heaps", "import", "missing.heap", "--engine", "x"], 2, &["--engine"]),
        (&["heaps", "import", "missing.heap"], 1, &["missing.heap can't be read: No such file"]),
    ] {
        let ran = place.ran(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{arguments:?}: {ran:?}");
        for part in parts {
            assert!(ran.err.contains(part), "{arguments:?}: `{part}` is not in {ran:?}");
        }
    }
    assert!(!place.heaps().exists(), "reading does not create the folder");
}
