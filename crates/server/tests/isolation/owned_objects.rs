//! One object of every kind for an owner, and for each an unused name of the same form.

use crate::owners::{Owner, TestServers};
use crate::peer::{Http, Sse};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kinds of named objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// An ended execution; also the name of its task and a cursor.
    Execution,
    /// A running execution.
    Running,
    Heap,
    /// The heap that an opened session continues from.
    Head,
    /// An opened session.
    Session,
    /// An opened session that was ended.
    EndedSession,
    /// The execute session of a logical session.
    LogicalSession,
    /// The id of a logical session.
    Logical,
    /// The ref of a logical session without a connection: `s0`.
    Ref,
    /// A log that its owner named.
    Log,
    /// The value of a tag.
    TagValue,
    /// A connection over Streamable HTTP.
    Connection,
    /// A connection over SSE.
    SseConnection,
}

pub struct OwnedObjects {
    names: BTreeMap<ObjectKind, String>,
    /// A marker in everything the owner's runs produce, to search for.
    pub secret: String,
    /// The sealed session state that the owner's client holds.
    pub state: String,
    /// Keeps the connections open.
    _connections: (Http, Sse),
}

impl OwnedObjects {
    pub async fn of(servers: &TestServers, owner: &Owner) -> Self {
        let secret = format!("mene-tekel-of-{}", owner.name.replace('/', "-"));
        let code = format!("console.log('{secret}'); var secret = '{secret}'");
        let logged = owner.run(json!({ "code": code, "session": format!("{secret}-log"), "tags": { "mine": secret } })).await;
        let waits = "console.log('begun'); await new Promise(done => setTimeout(done, 250000))";
        let running = owner.post("/api/exec", json!({ "code": waits, "execution_timeout_secs": 300 })).await;
        // Its record includes the start of its code, so wait for that.
        let id = running["execution_id"].as_str().expect("an id");
        let begun = owner.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
        assert_eq!(begun["data"], "begun\n");
        let session = owner.post("/api/sessions", json!({})).await["session_id"].clone();
        let head =
            owner.run(json!({ "code": format!("let kept = '{secret}'"), "session": session, "durability": "snapshot" })).await["heap"]
                .clone();
        let ended = owner.post("/api/sessions", json!({})).await["session_id"].clone();
        owner.run(json!({ "code": format!("let lost = '{secret}'"), "session": ended })).await;
        assert_eq!(owner.ask("DELETE", &format!("/api/sessions/{}", ended.as_str().expect("an id")), None).await.0, 200);
        let opening = json!({ "intent": format!("{secret} intent"), "seeds": [{ "catalog": "statistics", "entity": "mean" }] });
        let logical = owner.post("/api/session-context", opening).await;
        let code = format!("let known = '{secret}'");
        owner.run(json!({ "code": code, "session": logical["logical_session_id"], "durability": "snapshot" })).await;
        // Creates the contexts, because an existing context differs from that of an unused name.
        for own in [&session, &logical["logical_session_id"]] {
            owner.post("/api/context/record", json!({ "session": own, "query": "x", "results": 1 })).await;
        }
        let listed = owner.ask("GET", "/api/sessions/opened", None).await.1;
        let of_logical = listed["sessions"].as_array().expect("sessions").iter().find(|other| other["session_id"] != session);
        let authorization = owner.authorization();
        let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let http = Http::connect(servers.server(owner), "2025-11-25", &headers).await;
        let sse = Sse::open_with(servers.sse_server(owner), &headers).await;
        let resumed = http.ask("sessions/resume", json!({ "sessionId": session })).await;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("a name: {value}")).to_owned();
        let mut names = BTreeMap::from([
            (ObjectKind::Execution, text(&logged["execution_id"])),
            (ObjectKind::Running, text(&running["execution_id"])),
            (ObjectKind::Heap, text(&logged["heap"])),
            (ObjectKind::Head, text(&head)),
            (ObjectKind::Session, text(&session)),
            (ObjectKind::EndedSession, text(&ended)),
            (ObjectKind::Logical, text(&logical["logical_session_id"])),
            (ObjectKind::Log, format!("{secret}-log")),
            (ObjectKind::TagValue, secret.clone()),
            (ObjectKind::Connection, http.connection.clone().expect("a connection")),
            (ObjectKind::SseConnection, sse.endpoint.rsplit('=').next().expect("an id").to_owned()),
        ]);
        // Without credentials, the ref is the id, and there is no list.
        names.insert(ObjectKind::Ref, text(&logical["logical_session_ref"]));
        names.extend(of_logical.map(|session| (ObjectKind::LogicalSession, text(&session["session_id"]))));
        Self { names, secret, state: text(&resumed["result"]["session"]["state"]), _connections: (http, sse) }
    }

    /// `None` if this owner cannot have such an object.
    pub fn name(&self, kind: ObjectKind) -> Option<&str> {
        self.names.get(&kind).map(String::as_str)
    }

    pub fn names(&self) -> impl Iterator<Item = (ObjectKind, &str)> {
        self.names.iter().map(|(kind, name)| (*kind, name.as_str()))
    }

    /// An unused name of the same form, which differs only in its last character.
    pub fn missing(&self, kind: ObjectKind) -> Option<String> {
        self.name(kind).map(other)
    }
}

/// A name like this one, which sorts right after it: as a cursor, it must list the same.
pub fn other(name: &str) -> String {
    if let Some(rest) = name.strip_suffix('f') {
        return other(rest) + "0";
    }
    let mut other = name.to_owned();
    let last = other.pop().expect("a name");
    other.push(match last {
        '0' => '7',
        '9' => 'a',
        '1'..='8' | 'a'..='e' => char::from_u32(last as u32 + 1).expect("a character"),
        _ => 'x',
    });
    other
}
