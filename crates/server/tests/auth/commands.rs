//! Tests of authentication on the command line: tokens are added, listed and revoked, sent to a server, and checked by `doctor`.

use crate::common::{Place, Ran};
use crate::issuer::{AUDIENCE, ISSUER, Issuer, Key};
use crate::tokens::TokenFile;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).expect("the file").permissions().mode() & 0o777
}

#[test]
fn a_token_is_shown_once_and_not_stored() {
    let file = TokenFile::new();
    let ran = file.auth(&["add", "acme/ann", "--expires", "30d", "--name", "laptop"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let token = ran.out.trim_end();
    let id = &token[4..16];
    assert!(token.starts_with("hst_") && token.len() == 81 && ran.out.lines().count() == 1, "{ran:?}");
    assert!(ran.err.starts_with(&format!("token {id} for acme/ann until 20")) && ran.err.contains("it is not shown again"), "{ran:?}");
    assert_eq!(mode(&file.path()), 0o600);
    let kept = std::fs::read_to_string(file.path()).expect("the file");
    assert!(!kept.contains(&token[17..]) && kept.contains(id), "{kept}");

    let listed = file.auth(&["ls"]);
    let lines: Vec<_> = listed.out.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("ID ") && lines[1].starts_with(id), "{listed:?}");
    assert!(lines[1].contains("  acme/ann  20") && lines[1].ends_with("  laptop"), "{listed:?}");
    let listed = file.auth(&["ls", "--json"]).json();
    assert_eq!((&listed["tokens"][0]["owner"], &listed["tokens"][0]["expired"]), (&json!("acme/ann"), &json!(false)), "{listed}");
    assert!(!listed.to_string().contains("sha256"), "{listed}");

    let revoked = file.auth(&["revoke", id]);
    assert_eq!((revoked.code, revoked.err.as_str()), (Some(0), format!("revoked {id} of acme/ann\n").as_str()), "{revoked:?}");
    assert_eq!(file.auth(&["ls"]).err, "there are no tokens\n");
    let again = file.auth(&["revoke", id]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains(&format!("there is no token `{id}`")) && again.err.contains("next: `heapstead auth ls`"), "{again:?}");
}

#[test]
fn bad_input_is_refused_and_says_what_is_allowed() {
    let file = TokenFile::new();
    for (arguments, part) in [
        (&["add", "ann"][..], "TENANT/SUBJECT"),
        (&["add", "local"], "TENANT/SUBJECT"),
        (&["add", "anonymous"], "TENANT/SUBJECT"),
        (&["add", "a b/c"], "letters, digits, dots"),
        (&["add", "acme/ann", "--expires", "soon"], "such as 30m or 24h"),
    ] {
        let ran = file.auth(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(part), "{ran:?}");
    }
    let ran = Place::new().ran(["auth", "ls"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("`--auth-tokens` is missing") && ran.err.contains("HEAPSTEAD_AUTH_TOKENS"), "{ran:?}");
}

#[test]
fn the_file_may_be_named_by_a_variable_or_the_configuration_too() {
    let place = Place::new();
    let config = place.file("heapstead.toml", "auth-tokens = \"mine.toml\"\nhttp-port = 8420");
    assert_eq!(place.ran(["auth", "add", "acme/ann", "--config", &config]).code, Some(0));
    let ran: Ran = place.command(["auth", "ls", "--json"]).env("HEAPSTEAD_AUTH_TOKENS", "mine.toml").output().expect("it runs").into();
    assert_eq!(ran.json()["tokens"][0]["owner"], "acme/ann", "{ran:?}");
}

/// Each command changes the file under a lock and replaces it atomically, so no change is lost.
#[test]
fn concurrent_changes_are_not_lost() {
    let file = TokenFile::new();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let file = &file;
            scope.spawn(move || {
                let (id, _) = file.add(&format!("acme/{number}"), &[]);
                if number % 2 == 0 {
                    assert_eq!(file.auth(&["revoke", &id]).code, Some(0));
                }
            });
        }
    });
    let listed = file.auth(&["ls", "--json"]).json();
    let mut owners: Vec<_> =
        listed["tokens"].as_array().expect("tokens").iter().map(|token| token["owner"].as_str().expect("text")).collect();
    owners.sort_unstable();
    assert_eq!(owners, ["acme/1", "acme/11", "acme/13", "acme/15", "acme/3", "acme/5", "acme/7", "acme/9"]);
}

#[tokio::test]
async fn commands_send_their_token_to_a_server() {
    let file = TokenFile::new();
    let (_, token) = file.add("acme/ann", &[]);
    let server = file.server(&[]);
    let place = Place::new();
    let token_file = place.file("token", format!("{token}\n"));
    let list = ["executions", "ls", "--json", "--url", &server.url];
    let with = |variable: (&str, &str)| -> Ran { place.command(list).env(variable.0, variable.1).output().expect("it runs").into() };
    for ran in [
        place.ran(list.iter().chain(&["--token", &token])),
        place.ran(list.iter().chain(&["--token-file", &token_file])),
        with(("HEAPSTEAD_TOKEN", &token)),
        with(("HEAPSTEAD_TOKEN_FILE", &token_file)),
        // `--token` takes precedence over `--token-file`.
        place.ran(list.iter().chain(&["--token", &token, "--token-file", "/nowhere"])),
    ] {
        assert_eq!((ran.code, &ran.json()["executions"]), (Some(0), &json!([])), "{ran:?}");
    }
    for ran in [place.ran(list), place.ran(list.iter().chain(&["--token", "wrong"])), with(("HEAPSTEAD_TOKEN", "a\nb"))] {
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("next: give a token for this server: `--token TOKEN`, HEAPSTEAD_TOKEN"), "{ran:?}");
        assert!(!ran.err.contains("wrong"), "{ran:?}");
    }
    let help = place.command(["executions", "ls", "--help"]).env("HEAPSTEAD_TOKEN", &token).output().expect("it runs");
    assert!(!String::from_utf8_lossy(&help.stdout).contains(&token));
}

#[tokio::test]
async fn the_printed_connect_commands_include_a_token() {
    let file = TokenFile::new();
    let (_, token) = file.add("acme/ann", &[]);
    let folders = crate::fixture::Folders::new();
    let mut command = crate::fixture::Server::command(&folders);
    let mut child = command.args(["--http-port", "0", "--auth-tokens", &file.path()]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let curl = lines.find(|line| line.starts_with("  curl ")).expect("a command");
    // The server keeps writing, so its output must be drained.
    std::thread::spawn(move || lines.for_each(drop));
    let curl = curl.trim_start().trim_start_matches("curl").trim_start();
    let ran: Ran = Command::new("sh").args(["-c", curl]).env("HEAPSTEAD_TOKEN", &token).output().expect("a shell").into();
    assert_eq!(ran.json()["result"], "2", "{ran:?}");
    let ran: Ran = Command::new("sh").args(["-c", curl]).env("HEAPSTEAD_TOKEN", "x").output().expect("a shell").into();
    assert_eq!(ran.json()["status"], 401, "{ran:?}");
    child.kill().expect("killed");
    child.wait().expect("the end");
}

#[tokio::test]
async fn doctor_checks_tokens_and_keys() {
    let file = TokenFile::new();
    file.add("acme/ann", &[]);
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let path = file.path();
    let place = Place::new();
    let doctor = |url: &str| {
        let url = url.to_owned();
        let flags =
            ["doctor", "--auth-tokens", &path, "--jwks-url", &url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE].map(str::to_owned);
        let mut command = tokio::process::Command::from(place.command(flags));
        async move { Ran::from(command.output().await.expect("it runs")) }
    };
    let passing = doctor(&issuer.url).await;
    assert_eq!(passing.code, Some(0), "{passing:?}");
    for part in [format!("✓ tokens: 1 in {path}\n"), format!("✓ JWKS: 1 keys at {}\n", issuer.url)] {
        assert!(passing.out.contains(&part), "`{part}` is not in {passing:?}");
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("a mode");
    let failing = doctor("http://127.0.0.1:1/keys").await;
    assert_eq!(failing.code, Some(1), "{failing:?}");
    for part in ["✗ tokens: ", "(mode 644)", "`chmod 600`", "✗ JWKS: http://127.0.0.1:1/keys: no response"] {
        assert!(failing.out.contains(part), "`{part}` is not in {failing:?}");
    }
    let exposed = place.ran(["doctor", "--bind-host", "0.0.0.0"]);
    assert!(exposed.code == Some(1) && exposed.out.contains("✗ authentication: `--bind-host` is 0.0.0.0"), "{exposed:?}");
}
