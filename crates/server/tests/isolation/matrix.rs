//! Runs the table: every row, by every other owner, over every transport, compared with the same request for an unused name.

use crate::asker::{Asker, Routes};
use crate::belongings::{Belongings, Thing};
use crate::peer::{Http, Sse, result};
use crate::rows::{Ask, Control, NAMELESS, Row, rows};
use crate::talk::{Client, LEGACY};
use crate::world::{Owner, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The two responses, with the names replaced by the same text.
async fn answers(asker: &mut Asker, row: &Row, foreign: &str, missing: &str) -> Option<(String, String)> {
    let foreign_answer = asker.ask(&(row.ask)(foreign)).await?;
    let missing_answer = asker.ask(&(row.ask)(missing)).await?;
    Some((foreign_answer.replace(foreign, "NAME"), missing_answer.replace(missing, "NAME")))
}

/// Requests every object of an owner. Returns the requests whose responses differ.
async fn check(asker: &mut Asker, who: &str, whose: &Belongings) -> Vec<String> {
    let mut told = Vec::new();
    for row in rows() {
        let (Some(foreign), Some(missing)) = (whose.name(row.thing), whose.missing(row.thing)) else { continue };
        let Some((foreign_answer, missing_answer)) = answers(asker, &row, foreign, &missing).await else { continue };
        if foreign_answer != missing_answer {
            let asked = (row.ask)(foreign);
            told.push(format!("{who} over {}: {asked:?}\nforeign: {foreign_answer}\nmissing: {missing_answer}", asker.way()));
        }
    }
    told
}

/// Everything the owner has, as the owner sees it.
async fn inventory(owner: &Owner, of: &Belongings) -> Value {
    let name = |thing: Thing| of.name(thing).expect("a name");
    let mut seen = json!({
        "execution": owner.get(&format!("/api/executions/{}", name(Thing::Execution))).await,
        "running": owner.get(&format!("/api/executions/{}", name(Thing::Running))).await,
        "tags": owner.get(&format!("/api/heaps/{}/tags", name(Thing::Heap))).await,
        "heap": owner.get(&format!("/api/heaps/{}", name(Thing::Heap))).await["bytes"],
        "log": owner.get(&format!("/api/session-snapshots?session={}", name(Thing::Log))).await,
    });
    for thing in [Thing::Session, Thing::Logical] {
        seen[format!("{thing:?}")] = owner.get(&format!("/api/sessions/{}", name(thing))).await["head"].clone();
        seen[format!("log of {thing:?}")] = owner.get(&format!("/api/session-snapshots?session={}", name(thing))).await;
    }
    seen
}

#[tokio::test]
async fn foreign_objects_are_indistinguishable_from_missing_ones() {
    let world = World::start();
    let (ann, anonymous) = (world.owner("acme/ann"), world.anonymous());
    let (anns, nobodys) = (Belongings::of(&world, &ann).await, Belongings::of(&world, &anonymous).await);
    let before = (inventory(&ann, &anns).await, inventory(&anonymous, &nobodys).await);
    let mut told = Vec::new();
    // An owner of the same tenant, one of another tenant, and an anonymous caller.
    for other in [world.owner("acme/bob"), world.owner("umbra/carol"), world.anonymous()] {
        for asker in &mut Asker::all_of(&world, &other).await {
            told.extend(check(asker, other.name, &anns).await);
            if other.token.is_some() {
                told.extend(check(asker, other.name, &nobodys).await);
            }
        }
    }
    for local in &mut Asker::local(&world.folders).await {
        told.extend(check(local, "local", &anns).await);
        told.extend(check(local, "local", &nobodys).await);
    }
    assert!(told.is_empty(), "{} cells can be told apart:\n{}", told.len(), told.join("\n\n"));
    let after = (inventory(&ann, &anns).await, inventory(&anonymous, &nobodys).await);
    assert_eq!(before, after, "and nothing happened to any of it");
}

/// A row that cannot distinguish existing from missing objects would prove nothing.
#[tokio::test]
async fn every_row_distinguishes_existing_from_missing() {
    let world = World::start();
    let ann = world.owner("acme/ann");
    let anns = Belongings::of(&world, &ann).await;
    let mut askers = Asker::all_of(&world, &ann).await;
    for row in rows().iter().filter(|row| row.control != Control::Skipped) {
        let (name, missing) = (anns.name(row.thing).expect("a name"), anns.missing(row.thing).expect("a name"));
        let mut differs = false;
        for asker in &mut askers {
            differs |= answers(asker, row, name, &missing).await.is_some_and(|(own, missing)| own != missing);
        }
        assert_eq!(differs, row.control == Control::Differs, "{:?} {:?}", row.thing, (row.ask)(name));
    }
}

/// Every operation of the API must have a row.
#[tokio::test]
async fn the_table_has_every_operation() {
    let world = World::start();
    let ann = world.owner("acme/ann");
    let routes = Routes::of(&ann).await;
    let known: BTreeSet<_> = routes.operations().map(str::to_owned).collect();
    let asked = |row: &Row| match (row.ask)("0") {
        Ask::Operation(name, _) | Ask::Headed(name, ..) => Some(name.to_owned()),
        Ask::Route { method, path, .. } => routes.operation_at(method, &path).map(str::to_owned),
        Ask::Method(..) | Ask::In(..) => None,
    };
    let covered: BTreeSet<_> = rows().iter().filter_map(asked).chain(NAMELESS.map(str::to_owned)).collect();
    assert_eq!(covered, known, "rows.rs has to say how each operation names things, or that it names none");
    let token = ann.authorization().expect("a token");
    let client = Http::modern(world.server(&ann), &[("authorization", &token)]);
    let tools = client.ask("tools/list", json!({})).await;
    for tool in tools["result"]["tools"].as_array().expect("tools") {
        assert!(covered.contains(tool["name"].as_str().expect("a name")), "{tool}");
    }
}

/// The session name that a connection sends on initialisation is in the namespace of its own owner.
#[tokio::test]
async fn a_connection_that_names_anothers_session_has_an_empty_log() {
    let world = World::start();
    let (ann, bob) = (world.owner("acme/ann"), world.owner("acme/bob"));
    let anns = Belongings::of(&world, &ann).await;
    let token = bob.authorization().expect("a token");
    for thing in [Thing::Log, Thing::Session, Thing::LogicalSession] {
        let mut seen = Vec::new();
        for name in [anns.name(thing).expect("a name").to_owned(), anns.missing(thing).expect("a name")] {
            let headers = [("authorization", token.as_str()), ("x-mcp-session-id", &name)];
            let http = Client::Http(Http::connect(world.server(&bob), LEGACY, &headers).await);
            let mut sse = Sse::open_with(world.sse_server(&bob), &headers).await;
            sse.greet(LEGACY).await;
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
        assert_eq!(seen[..2], seen[2..], "{thing:?}");
    }
}

/// Sealed state is bound to one session and one owner. Any other sender learns nothing from it.
#[tokio::test]
async fn sealed_state_of_another_owner_is_refused() {
    let world = World::start();
    let (ann, bob) = (world.owner("acme/ann"), world.owner("acme/bob"));
    let anns = Belongings::of(&world, &ann).await;
    let (foreign, missing) = (anns.name(Thing::Session).expect("a name"), anns.missing(Thing::Session).expect("a name"));
    let bobs = bob.post("/api/sessions", json!({})).await["session_id"].as_str().expect("an id").to_owned();
    let forged = crate::belongings::other(&anns.state);
    let token = bob.authorization().expect("a token");
    let client = Http::connect(world.server(&bob), "2025-11-25", &[("authorization", &token)]).await;
    let ask = async |id: &str, state: &str| {
        let meta = json!({ "io.modelcontextprotocol/session": { "sessionId": id, "state": state } });
        let mut answer = client.ask("tools/list", json!({ "_meta": meta })).await;
        answer["id"].take();
        answer.to_string().replace(id, "NAME")
    };
    assert_eq!(ask(foreign, &anns.state).await, ask(&missing, &anns.state).await);
    assert_eq!(ask(&bobs, &anns.state).await, ask(&bobs, &forged).await, "a true one of another's is as good as a forged one");
}
