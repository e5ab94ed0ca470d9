//! Sealed session state cannot be forged, changed, truncated or taken from another session; replayed older state is only outdated.

use crate::client::{Client, LEGACY_KEY, code};
use crate::fixture::{Folders, Server};
use serde_json::{Value, json};

async fn refused(client: &mut Client, session: &Value, state: impl Into<Value>) {
    let mut carried = session.clone();
    carried["state"] = state.into();
    let answer = client.ask_in(&carried, "tools/list", json!({})).await;
    assert_eq!(code(&answer), -32602, "{carried}: {answer}");
}

#[tokio::test]
async fn forged_state_is_refused() {
    let mut client = Client::stdio(&Folders::new(), &[]).await;
    let session = client.create().await;
    let state = session["state"].as_str().expect("a state");
    for at in 0..state.len() {
        let digit = if &state[at..=at] == "0" { "1" } else { "0" };
        refused(&mut client, &session, format!("{}{digit}{}", &state[..at], &state[at + 1..])).await;
    }
    for made_up in ["", "x", "00", &"00".repeat(80), "{\"head\":null}"] {
        refused(&mut client, &session, made_up).await;
    }
    refused(&mut client, &session, json!({ "sequence": 1 })).await;
    refused(&mut client, &session, "0".repeat(4098)).await;
}

#[tokio::test]
async fn truncated_state_is_refused() {
    let mut client = Client::stdio(&Folders::new(), &[]).await;
    let session = client.create().await;
    let state = session["state"].as_str().expect("a state");
    for length in 0..state.len() {
        refused(&mut client, &session, &state[..length]).await;
    }
}

#[tokio::test]
async fn state_of_another_session_is_refused() {
    let mut client = Client::stdio(&Folders::new(), &[]).await;
    let (one, other) = (client.create().await, client.create().await);
    refused(&mut client, &one, other["state"].clone()).await;
    // State from another server, with a session of the same client.
    let elsewhere = Client::stdio(&Folders::new(), &[]).await.create().await;
    refused(&mut client, &one, elsewhere["state"].clone()).await;
}

#[tokio::test]
async fn replayed_state_is_outdated() {
    let mut client = Client::stdio(&Folders::new(), &[]).await;
    let session = client.create().await;
    client.run_in(&session, "var n = 1").await;
    client.run_in(&session, "++n").await;
    // The oldest state: the run continues from the head anyway, and the client gets the current state.
    let answer = client.run_in(&session, "++n").await;
    assert_eq!(answer["structuredContent"]["result"], "3");
    assert!(answer["_meta"][LEGACY_KEY]["state"].is_string());
}

#[tokio::test]
async fn servers_on_one_database_accept_each_others_state() {
    let folders = Folders::new();
    let (one, other) = (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]));
    let (mut one, mut other) = (Client::modern(&one), Client::modern(&other));
    let session = one.create().await;
    let metadata = other.run_in(&session, "var n = 1").await["_meta"][one.key()].clone();
    assert_eq!(one.run_in(&metadata, "n").await["structuredContent"]["result"], "1");
}
