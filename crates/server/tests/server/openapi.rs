//! The OpenAPI document: the committed file matches the served one, and an independent tool finds no contradiction with the server.

use crate::fixture::{Folders, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `HEAPSTEAD_BLESS=1 cargo test -p heapstead --test server openapi` rewrites the file.
#[tokio::test]
async fn the_committed_document_matches_the_served_one() {
    let server = Server::start();
    let response = server.client.get(format!("{}/api-doc/openapi.json", server.url)).send().await.expect("an answer");
    assert_eq!(response.headers()["content-type"], "application/json");
    let served = response.text().await.expect("a body");
    let path = workspace().join("docs/openapi.json");
    if std::env::var_os("HEAPSTEAD_BLESS").is_some() {
        std::fs::write(&path, &served).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == served, "docs/openapi.json is out of date: HEAPSTEAD_BLESS=1 cargo test -p heapstead --test server openapi");
}

#[tokio::test]
async fn every_operation_has_an_example_and_every_refusal_is_a_problem() {
    let server = Server::start();
    let (_, document) = server.get("/api-doc/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            operations += 1;
            let place = format!("{method} {path}");
            for (status, response) in operation["responses"].as_object().expect("responses") {
                if status.starts_with('2') {
                    continue;
                }
                let name = response["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/responses/")).expect(&place);
                let content = &document["components"]["responses"][name]["content"]["application/problem+json"];
                assert_eq!(content["schema"]["$ref"], "#/components/schemas/Problem", "{place} {status}");
            }
            let no_example = operation["responses"]["200"]["content"]["application/json"]["example"].is_null();
            assert!(
                !no_example
                    || ["import_heap", "export_heap", "follow_execution", "health_check"]
                        .contains(&operation["operationId"].as_str().expect("an id")),
                "{place}"
            );
        }
    }
    assert!(operations >= 18, "{operations}");
}

#[tokio::test]
async fn a_stateless_server_describes_its_own_operations() {
    let server = Server::start_with(&Folders::new(), &["--stateless"]);
    let (_, document) = server.get("/api-doc/openapi.json").await;
    assert_eq!(document["paths"].as_object().expect("paths").keys().collect::<Vec<_>>(), ["/api/exec", "/api/health"]);
    assert_eq!(document.get("kept"), None);
}

#[tokio::test]
async fn the_docs_page_loads_nothing_external() {
    let server = Server::start();
    let get = async |path: &str, accept: &str| {
        server.client.get(format!("{}{path}", server.url)).header("accept", accept).send().await.expect("an answer")
    };
    let from_browser = get("/", "text/html,*/*").await;
    assert!(from_browser.url().path().ends_with("/docs"), "a browser is redirected to it");
    let (_, index) = server.get("/").await;
    assert_eq!((&index["name"], &index["documentation"]), (&Value::from("heapstead"), &Value::from("/docs")));
    for (path, media_type) in [("/docs", "text/html"), ("/docs/docs.js", "text/javascript"), ("/docs/docs.css", "text/css")] {
        let response = get(path, "*/*").await;
        assert!(response.headers()["content-type"].to_str().expect("text").starts_with(media_type), "{path}");
        assert!(response.headers()["content-security-policy"].to_str().expect("text").starts_with("default-src 'none'"));
        let text = response.text().await.expect("a body");
        assert!(!text.contains("http://") && !text.contains("https://"), "{path} refers to another site");
        assert!(path != "/docs" || (text.contains("/docs/docs.js") && text.contains("/docs/docs.css")));
    }
}

/// Schemathesis generates valid and invalid requests from the document, and checks every response against it.
#[tokio::test]
async fn schemathesis_finds_no_violation() {
    let arguments = ["--max-memory-mb", "8192", "--execution-timeout", "2"];
    let server = Server::start_with(&Folders::new(), &arguments);
    let torture = std::env::var_os("HEAPSTEAD_TORTURE").is_some();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = std::process::Command::new(workspace().join("tests/tools/python"));
    command.args(["-m", "schemathesis.cli", "--config-file"]).arg(workspace().join("tests/tools/schemathesis.toml"));
    command.args(["run", "--url", &server.url, "--max-examples", if torture { "300" } else { "12" }]);
    command.arg(format!("{}/api-doc/openapi.json", server.url));
    let output = tokio::task::spawn_blocking(move || command.current_dir(folder.path()).stdin(Stdio::null()).output());
    let output = output.await.expect("a thread").expect("tests/tools/python runs");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.terminate(), Some(0));
}
