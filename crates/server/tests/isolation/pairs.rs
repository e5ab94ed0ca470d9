//! Every ordered pair of operations: one owner does something with its object, then another owner makes a request. What the second one sees
//! does not depend on the first. Both sides come from the table of rows, so a new operation is in every pair.

use crate::caller::Caller;
use crate::fixture::torture;
use crate::matrix::check_rows;
use crate::owned_objects::{ObjectKind, OwnedObjects};
use crate::owners::TestServers;
use crate::rows::{Ask, Control, Row, rows};
use std::collections::BTreeSet;

/// Rows that code has to run for take too long to be repeated after every other row and for every kind of object. Contexts record the stranger's own
/// calls, some later than others, so they need a stranger that has made none.
fn is_repeatable(ask: &Ask) -> bool {
    let (Ask::Operation(operation, _) | Ask::Headed(operation, ..)) = ask else { return true };
    *operation != "run_js" && !operation.starts_with("context_")
}

/// The other rows, for the kinds of objects that differ.
fn is_for_new_stranger(row: &Row) -> bool {
    matches!(row.kind, ObjectKind::Heap | ObjectKind::Session | ObjectKind::Log) && !is_repeatable(&(row.ask)(""))
}

/// One owner does everything that the table has for its objects; after each, another one asks for all of them.
#[tokio::test]
async fn what_an_owner_does_with_its_object_is_not_visible_to_others() {
    let servers = TestServers::start();
    let ann = servers.owner("acme/ann");
    let mut as_ann = Caller::all_of(&servers, &ann).await.swap_remove(0);
    let mut anns = OwnedObjects::of(&servers, &ann).await;
    let mut strangers = Vec::new();
    for other in [servers.owner("acme/bob"), servers.anonymous()] {
        strangers.push((other.name, Caller::all_of(&servers, &other).await.swap_remove(0)));
    }
    let (mut done, mut operations, mut differences) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for row in rows().into_iter().filter(|row| row.control != Control::Waits) {
        let Some(name) = anns.name(row.kind).map(str::to_owned) else { continue };
        let ask = (row.ask)(&name);
        let operation = match &ask {
            Ask::Operation(operation, _) | Ask::Headed(operation, ..) => (row.kind, (*operation).to_owned()),
            Ask::Route { method, path, .. } => (row.kind, format!("{method} {}", path.replace(&name, "NAME"))),
            // The same operations over MCP.
            Ask::Method(..) | Ask::In(..) => continue,
        };
        // Once for each kind of object: sessions of different kinds differ, different arguments hardly do.
        if !done.insert(operation.clone()) {
            continue;
        }
        as_ann.ask(&ask).await.expect("possible over REST");
        for (who, stranger) in &mut strangers {
            let found = check_rows(stranger, who, &anns, |row| is_repeatable(&(row.ask)(""))).await;
            differences.extend(found.into_iter().map(|found| format!("after {operation:?}: {found}")));
        }
        // In the short form after what changes something.
        if (torture() || row.control == Control::Changes) && operations.insert(operation.1.clone()) {
            let stranger = servers.owner(Box::leak(format!("umbra/carol{}", operations.len()).into_boxed_str()));
            let found = check_rows(&mut Caller::rest(&stranger).await, stranger.name, &anns, is_for_new_stranger).await;
            differences.extend(found.into_iter().map(|found| format!("after {operation:?}: {found}")));
        }
        if row.control == Control::Changes {
            anns = OwnedObjects::of(&servers, &ann).await;
        }
    }
    assert!(done.len() > 40, "the table was used: {done:?}");
    assert!(differences.is_empty(), "{} requests reveal what another owner did:\n{}", differences.len(), differences.join("\n\n"));
}
