//! Runs the table: every row, by every other owner, over every transport, compared with the same request for an unused name.

use crate::caller::{Caller, Routes};
use crate::client::{Client, LEGACY};
use crate::owned_objects::{ObjectKind, OwnedObjects};
use crate::owners::{Owner, TestServers};
use crate::peer::{Http, Sse, result};
use crate::rows::{Ask, Control, NAMELESS, Row, rows};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const RECORDING_TRIES: usize = 40;
const RECORDING_PAUSE: Duration = Duration::from_millis(50);

/// The two responses, with the names replaced by the same text.
async fn answers(caller: &mut Caller, row: &Row, foreign: &str, missing: &str) -> Option<(String, String)> {
    let foreign_answer = caller.ask(&(row.ask)(foreign)).await?;
    let missing_answer = caller.ask(&(row.ask)(missing)).await?;
    Some((foreign_answer.replace(foreign, "NAME"), missing_answer.replace(missing, "NAME")))
}

/// Requests every object of an owner. Returns the requests whose responses differ.
async fn check(caller: &mut Caller, who: &str, whose: &OwnedObjects) -> Vec<String> {
    check_rows(caller, who, whose, |_| true).await
}

/// As `check`, for some of the rows.
pub async fn check_rows(caller: &mut Caller, who: &str, whose: &OwnedObjects, which: impl Fn(&Row) -> bool) -> Vec<String> {
    let mut differences = Vec::new();
    for row in rows().into_iter().filter(which) {
        let (Some(foreign), Some(missing)) = (whose.name(row.kind), whose.missing(row.kind)) else { continue };
        let Some((mut foreign_answer, mut missing_answer)) = answers(caller, &row, foreign, &missing).await else { continue };
        // Calls are recorded in contexts after they were answered.
        let tries = if matches!((row.ask)(""), Ask::Operation("context_get", _)) { RECORDING_TRIES } else { 0 };
        for _ in 0..tries {
            if foreign_answer == missing_answer {
                break;
            }
            tokio::time::sleep(RECORDING_PAUSE).await;
            let Some(again) = answers(caller, &row, foreign, &missing).await else { break };
            (foreign_answer, missing_answer) = again;
        }
        if foreign_answer != missing_answer {
            let request = (row.ask)(foreign);
            differences.push(format!("{who} over {}: {request:?}\nforeign: {foreign_answer}\nmissing: {missing_answer}", caller.way()));
        }
    }
    differences
}

/// Everything the owner has, as the owner sees it.
async fn inventory(owner: &Owner, of: &OwnedObjects) -> Value {
    let name = |kind: ObjectKind| of.name(kind).expect("a name");
    let mut seen = json!({
        "execution": owner.ask("GET", &format!("/api/executions/{}", name(ObjectKind::Execution)), None).await.1,
        "running": owner.get(&format!("/api/executions/{}", name(ObjectKind::Running))).await,
        "tags": owner.get(&format!("/api/heaps/{}/tags", name(ObjectKind::Heap))).await,
        "heap": owner.ask("GET", &format!("/api/heaps/{}", name(ObjectKind::Heap)), None).await.1["bytes"],
        "head": owner.ask("GET", &format!("/api/heaps/{}", name(ObjectKind::Head)), None).await.1["bytes"],
        "log": owner.get(&format!("/api/session-snapshots?session={}", name(ObjectKind::Log))).await,
    });
    for kind in [ObjectKind::Session, ObjectKind::Logical, ObjectKind::Log] {
        let (status, session) = owner.ask("GET", &format!("/api/sessions/{}", name(kind)), None).await;
        seen[format!("{kind:?}")] = json!([status, session["head"]]);
        seen[format!("log of {kind:?}")] = owner.ask("GET", &format!("/api/session-snapshots?session={}", name(kind)), None).await.1;
        let (status, context) = owner.ask("GET", &format!("/api/context?session={}", name(kind)), None).await;
        seen[format!("context of {kind:?}")] = json!([status, context["custom"], context["searches"]]);
    }
    let over_mcp = owner.request("POST", "/mcp").header("mcp-session-id", name(ObjectKind::Connection));
    let over_mcp = over_mcp.header("accept", "application/json, text/event-stream").header("mcp-protocol-version", LEGACY);
    let over_mcp = over_mcp.json(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })).send().await.expect("an answer");
    seen["connection"] = over_mcp.status().as_u16().into();
    seen
}

#[tokio::test]
async fn foreign_objects_are_indistinguishable_from_missing_ones() {
    let servers = TestServers::start();
    let (ann, anonymous) = (servers.owner("acme/ann"), servers.anonymous());
    let (anns, anonymous_objects) = (OwnedObjects::of(&servers, &ann).await, OwnedObjects::of(&servers, &anonymous).await);
    let before = (inventory(&ann, &anns).await, inventory(&anonymous, &anonymous_objects).await);
    let mut differences = Vec::new();
    // An owner of the same tenant, one of another tenant, and an anonymous caller.
    for other in [servers.owner("acme/bob"), servers.owner("umbra/carol"), servers.anonymous()] {
        for caller in &mut Caller::all_of(&servers, &other).await {
            differences.extend(check(caller, other.name, &anns).await);
            if other.token.is_some() {
                differences.extend(check(caller, other.name, &anonymous_objects).await);
            }
        }
    }
    for local in &mut Caller::local(&servers.folders).await {
        differences.extend(check(local, "local", &anns).await);
        differences.extend(check(local, "local", &anonymous_objects).await);
    }
    assert!(differences.is_empty(), "{} responses reveal whether an object exists:\n{}", differences.len(), differences.join("\n\n"));
    let after = (inventory(&ann, &anns).await, inventory(&anonymous, &anonymous_objects).await);
    assert_eq!(before, after, "no object was changed");
}

/// A row that cannot distinguish existing from missing objects would prove nothing.
#[tokio::test]
async fn every_row_distinguishes_existing_from_missing() {
    let servers = TestServers::start();
    let ann = servers.owner("acme/ann");
    let anns = OwnedObjects::of(&servers, &ann).await;
    let mut callers = Caller::all_of(&servers, &ann).await;
    for row in rows().iter().filter(|row| matches!(row.control, Control::Differs | Control::Same)) {
        let (name, missing) = (anns.name(row.kind).expect("a name"), anns.missing(row.kind).expect("a name"));
        let mut differs = false;
        for caller in &mut callers {
            differs |= answers(caller, row, name, &missing).await.is_some_and(|(own, missing)| own != missing);
        }
        assert_eq!(differs, row.control == Control::Differs, "{:?} {:?}", row.kind, (row.ask)(name));
    }
}

/// That a stranger's destructive request changed nothing proves nothing, unless the same request by the owner changes what the test looks at, and
/// does so because the object exists: for a missing one it changes nothing.
#[tokio::test]
async fn every_destructive_row_changes_what_its_owner_sees() {
    let servers = TestServers::start();
    let mut ineffective = Vec::new();
    for (number, row) in rows().iter().filter(|row| row.control == Control::Changes).enumerate() {
        // An owner of its own for each row, so that its objects are its first ones.
        let ann = servers.owner(Box::leak(format!("acme/ann{number}").into_boxed_str()));
        let mut callers = Caller::all_of(&servers, &ann).await;
        let anns = OwnedObjects::of(&servers, &ann).await;
        let before = inventory(&ann, &anns).await;
        for (name, changes) in [(anns.missing(row.kind).expect("a name"), false), (anns.name(row.kind).expect("a name").to_owned(), true)] {
            let (ask, mut asked) = ((row.ask)(&name), false);
            for caller in &mut callers {
                asked |= caller.ask(&ask).await.is_some();
            }
            assert!(asked, "{ask:?}");
            if (inventory(&ann, &anns).await != before) != changes {
                ineffective.push(format!("{:?} {ask:?} for {}", row.kind, if changes { "its object" } else { "a missing object" }));
            }
        }
        let running = anns.name(ObjectKind::Running).expect("a name");
        ann.ask("POST", &format!("/api/executions/{running}/cancel"), None).await;
    }
    assert!(
        ineffective.is_empty(),
        "these rows do not change what the test sees, or change it without their object:\n{}",
        ineffective.join("\n")
    );
}

/// Every operation of the API must have a row.
#[tokio::test]
async fn the_table_has_every_operation() {
    let servers = TestServers::start();
    let ann = servers.owner("acme/ann");
    let routes = Routes::of(&ann).await;
    let known: BTreeSet<_> = routes.operations().map(str::to_owned).collect();
    let operation = |row: &Row| match (row.ask)("0") {
        Ask::Operation(name, _) | Ask::Headed(name, ..) => Some(name.to_owned()),
        Ask::Route { method, path, .. } => routes.operation_at(method, &path).map(str::to_owned),
        Ask::Method(..) | Ask::In(..) => None,
    };
    let covered: BTreeSet<_> = rows().iter().filter_map(operation).chain(NAMELESS.map(str::to_owned)).collect();
    assert_eq!(covered, known, "rows.rs must have a row for each operation, or list it in NAMELESS");
    let token = ann.authorization().expect("a token");
    let client = Http::modern(servers.server(&ann), &[("authorization", &token)]);
    let tools = client.ask("tools/list", json!({})).await;
    for tool in tools["result"]["tools"].as_array().expect("tools") {
        assert!(covered.contains(tool["name"].as_str().expect("a name")), "{tool}");
    }
}

/// The session name that a connection sends on initialisation is in the namespace of its own owner.
#[tokio::test]
async fn a_connection_that_names_anothers_session_has_an_empty_log() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let anns = OwnedObjects::of(&servers, &ann).await;
    let token = bob.authorization().expect("a token");
    for kind in [ObjectKind::Log, ObjectKind::Session, ObjectKind::LogicalSession] {
        let mut seen = Vec::new();
        for name in [anns.name(kind).expect("a name").to_owned(), anns.missing(kind).expect("a name")] {
            let headers = [("authorization", token.as_str()), ("x-mcp-session-id", &name)];
            let http = Client::Http(Http::connect(servers.server(&bob), LEGACY, &headers).await);
            let mut sse = Sse::open_with(servers.sse_server(&bob), &headers).await;
            sse.initialize(LEGACY).await;
            for mut client in [http, Client::Sse(Box::new(sse))] {
                let mut call =
                    async |tool: &str, arguments| result(client.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await);
                let before = call("list_session_snapshots", json!({ "fields": "index,code" })).await;
                let ran = call("run_js", json!({ "code": "typeof secret + typeof kept", "wait_secs": 60 })).await;
                assert_eq!(ran["structuredContent"]["result"], "\"undefinedundefined\"");
                let after = call("list_session_snapshots", json!({ "fields": "index,code" })).await;
                seen.push((before.to_string().replace(&name, "NAME"), after.to_string().replace(&name, "NAME")));
            }
        }
        assert_eq!(seen[..2], seen[2..], "{kind:?}");
    }
}

/// Sealed state is bound to one session and one owner. Any other sender learns nothing from it.
#[tokio::test]
async fn sealed_state_of_another_owner_is_refused() {
    let servers = TestServers::start();
    let (ann, bob) = (servers.owner("acme/ann"), servers.owner("acme/bob"));
    let anns = OwnedObjects::of(&servers, &ann).await;
    let (foreign, missing) = (anns.name(ObjectKind::Session).expect("a name"), anns.missing(ObjectKind::Session).expect("a name"));
    let bobs = bob.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
    let forged = crate::owned_objects::other(&anns.state);
    let token = bob.authorization().expect("a token");
    let client = Http::connect(servers.server(&bob), "2025-11-25", &[("authorization", &token)]).await;
    let ask = async |id: &str, state: &str| {
        let meta = json!({ "io.modelcontextprotocol/session": { "sessionId": id, "state": state } });
        let mut answer = client.ask("tools/list", json!({ "_meta": meta })).await;
        answer["id"].take();
        answer.to_string().replace(id, "NAME")
    };
    assert_eq!(ask(foreign, &anns.state).await, ask(&missing, &anns.state).await);
    assert_eq!(ask(&bobs, &anns.state).await, ask(&bobs, &forged).await, "the state of another owner is refused like a forged one");
}
