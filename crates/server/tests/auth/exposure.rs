//! A server without authentication is not exposed to other machines by accident.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use crate::tokens::TokenFile;

fn refused(arguments: &[&str]) -> Ran {
    let folders = Folders::new();
    let ran: Ran = Server::command(&folders).args(arguments).output().expect("it runs").into();
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    assert!(!folders.heaps().exists() && !folders.database().exists(), "something was started");
    ran
}

#[test]
fn without_authentication_remote_addresses_are_refused() {
    for host in ["0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1"] {
        for port in ["--http-port", "--sse-port"] {
            let ran = refused(&[port, "0", "--bind-host", host]);
            for part in [
                &format!("`--bind-host` is {host}"),
                "heapstead auth add",
                "--auth-tokens FILE",
                "--jwks-url",
                "--bind-host 127.0.0.1",
                "--insecure-no-auth",
            ] {
                assert!(ran.err.contains(part), "`{part}` is not in {ran:?}");
            }
        }
    }
}

#[tokio::test]
async fn with_authentication_or_the_insecure_flag_remote_addresses_are_accepted() {
    let file = TokenFile::new();
    file.add("acme/ann", &[]);
    for (arguments, status) in [(&["--auth-tokens", &file.path()][..], 401), (&["--insecure-no-auth"], 200)] {
        let server = Server::start_with(&Folders::new(), &[&["--bind-host", "0.0.0.0"], arguments].concat());
        let port = server.url.rsplit(':').next().expect("a port");
        let asked = server.client.get(format!("http://127.0.0.1:{port}/api/executions")).send().await.expect("an answer");
        assert_eq!(asked.status(), status, "{arguments:?}");
    }
    for host in ["127.0.0.1", "127.9.9.9", "::1"] {
        Server::start_with(&Folders::new(), &["--bind-host", host]);
    }
}

#[test]
fn inconsistent_flags_are_refused() {
    let (url, issuer, audience) =
        (["--jwks-url", "https://id.example/keys"], ["--jwt-issuer", "https://id.example/"], ["--jwt-audience", "heapstead"]);
    for (given, missing) in [
        ([url, issuer].concat(), "--jwt-audience"),
        ([url, audience].concat(), "--jwt-issuer"),
        ([issuer, audience].concat(), "--jwks-url"),
    ] {
        let ran = refused(&[&["--http-port", "0"], &given[..]].concat());
        assert!(ran.err.contains(&format!("`{missing}` is missing")), "{ran:?}");
    }
    let ran = refused(&["--http-port", "0", "--jwks-url", "http://id.example/keys"]);
    assert!(ran.err.contains("expected https://"), "{ran:?}");
}

#[test]
fn a_missing_invalid_or_writable_token_file_prevents_the_start() {
    let place = Place::new();
    let missing = place.path("none.toml");
    let missing = missing.to_str().expect("a name in UTF-8");
    let ran = refused(&["--http-port", "0", "--auth-tokens", missing]);
    assert!(ran.err.contains(&format!("`heapstead auth add OWNER --auth-tokens {missing}` creates it")), "{ran:?}");
    let broken = place.file("broken.toml", "[[tokens]]\nid = 7");
    assert!(refused(&["--http-port", "0", "--auth-tokens", &broken]).err.contains("broken.toml"));
    let open = place.file("open.toml", "");
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("a mode");
    let ran = refused(&["--http-port", "0", "--auth-tokens", &open]);
    assert!(ran.err.contains("mode 666") && ran.err.contains("chmod 600"), "{ran:?}");
}

/// Over stdio, the only caller is the process that started the server.
#[tokio::test]
async fn stdio_needs_no_authentication() {
    let folders = Folders::new();
    let flags = ["--auth-tokens", "/nowhere/tokens.toml", "--bind-host", "0.0.0.0"];
    let mut client = crate::peer::Stdio::connect(&folders, "2025-11-25", &flags).await;
    let answer = client.call("run_js", serde_json::json!({ "code": "1 + 1", "wait_secs": 60 })).await;
    assert_eq!(answer["structuredContent"]["result"], "2", "{answer}");
}
