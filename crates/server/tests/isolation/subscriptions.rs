//! Subscribing to another owner's resource gets the same response as an unknown resource, and no notifications.

use crate::client::{Listener, UPDATED};
use crate::owned_objects::{ObjectKind, OwnedObjects, other};
use crate::owners::{Owner, TestServers};
use crate::peer::{Http, request};
use serde_json::{Value, json};

fn modern(servers: &TestServers, owner: &Owner) -> Http {
    let authorization = owner.authorization();
    let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
    Http::modern(servers.server(owner), &headers)
}

fn head(session: &str) -> String {
    format!("heapstead://sessions/{session}/head")
}

/// Opens a listener. Returns it with its first message.
async fn listen(http: &Http, uris: &[String]) -> (Listener, Value) {
    let mut listener =
        Listener::new(http.send(&request("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } }))).await);
    let accepted = listener.next_of("notifications/subscriptions/acknowledged").await["notifications"].clone();
    (listener, accepted)
}

#[tokio::test]
async fn a_subscriber_to_anothers_resource_gets_no_notifications() {
    let servers = TestServers::start();
    let ann = servers.owner("acme/ann");
    let anns = OwnedObjects::of(&servers, &ann).await;
    let name = |kind| anns.name(kind).expect("a name");
    let (session, running) = (name(ObjectKind::Session), name(ObjectKind::Running));
    let uris = [head(session), format!("heapstead://executions/{running}"), format!("heapstead://executions/{running}/output")];
    let missing = uris.each_ref().map(|uri| uri.replace(session, &other(session)).replace(running, &other(running)));
    let mut listeners = Vec::new();
    for other_owner in [servers.owner("acme/bob"), servers.owner("umbra/carol"), servers.anonymous()] {
        let http = modern(&servers, &other_owner);
        let own = other_owner.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
        let with_own = |uris: &[String]| [uris, &[head(&own)]].concat();
        let (listener, accepted) = listen(&http, &with_own(&uris)).await;
        let (_, accepted_missing) = listen(&http, &with_own(&missing)).await;
        let accepted_missing = accepted_missing.to_string().replace(&other(session), session).replace(&other(running), running);
        assert_eq!(accepted.to_string(), accepted_missing, "{}", other_owner.name);
        listeners.push((other_owner, own, listener));
    }
    let (mut hers, _) = listen(&modern(&servers, &ann), &uris).await;
    ann.run(json!({ "code": "1", "session": session })).await;
    hers.updated(&uris[0]).await;
    ann.post(&format!("/api/executions/{running}/cancel"), json!({})).await;
    hers.updated(&uris[1]).await;
    for (other_owner, own, mut listener) in listeners {
        other_owner.run(json!({ "code": "1", "session": own })).await;
        assert_eq!(listener.next_of(UPDATED).await["uri"], *head(&own), "{} is notified only of its own session", other_owner.name);
    }
}
