//! Heaps for operators: list, show, delete, collect. They are not tools, because agents have no use for them.

use super::operation::{Description, Done, FailureShape, Operation};
use heapstead_service::{CollectRequest, Service, parse_heap_key};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct ListHeaps {
    /// At most this many; `next_cursor` in the answer leads to the rest. If omitted, all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    #[serde(default)]
    cursor: Option<String>,
    /// Also heaps that are not in this server's database, which takes as long as listing the store. Has no effect for callers with credentials.
    /// Default false.
    unknown: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct OneHeap {
    /// The heap's key: 64 lowercase hex digits.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    heap: String,
}

#[derive(Deserialize, JsonSchema)]
struct CollectHeaps {
    /// Report what would be removed, and remove nothing. Default false.
    dry_run: Option<bool>,
    /// Also remove heaps that are not in this server's database. Use it only if no other server uses the same store. Has no effect for callers
    /// with credentials. Default false.
    unknown: Option<bool>,
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![list(service), show(service), upgrade(service), delete(service), collect(service)]
}

fn list(service: &Service) -> Operation {
    let description =
        Description::endpoint("list_heaps", "List heaps", "Lists your heaps, ordered by key.", ("GET", "/api/heaps")).read_only();
    Operation::new(service, description, |service, caller, params: ListHeaps| async move {
        let after = params.cursor.as_deref().map(|cursor| parse_heap_key("cursor", cursor)).transpose()?;
        let request = heapstead_service::ListHeaps { after, limit: params.limit, unknown: params.unknown.unwrap_or_default() };
        service.heaps().list(&caller, request).await
    })
}

fn show(service: &Service) -> Operation {
    let description = Description {
        may_conflict: true,
        ..Description::endpoint("show_heap", "Show a heap", "Returns size, age and engine of a heap.", ("GET", "/api/heaps/{heap}"))
            .read_only()
    };
    Operation::new(service, description, |service, caller, params: OneHeap| async move {
        service.heaps().show(&caller, parse_heap_key("heap", &params.heap)?).await
    })
}

fn delete(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        may_conflict: true,
        ..Description::endpoint(
            "delete_heap",
            "Delete a heap",
            "Deletes a heap of yours and its tags. Refused if it is the head of a session, if an execution that has not ended starts from it, or \
             if it is being stored. Session logs that name it stay; a run on it is one on a heap that does not exist.",
            ("DELETE", "/api/heaps/{heap}"),
        )
    };
    Operation::new(service, description, |service, caller, params: OneHeap| async move {
        service.heaps().delete(&caller, parse_heap_key("heap", &params.heap)?).await.map(|_in_background| Done::OK)
    })
}

fn upgrade(service: &Service) -> Operation {
    let description = Description {
        may_conflict: true,
        ..Description::endpoint(
            "upgrade_heap",
            "Upgrade a heap",
            "Rebuilds a heap that another engine has written, by repeating the runs that led to it with the same clock readings and random numbers, \
             and stores it under a new key. Refused if a run does something else than before.",
            ("POST", "/api/heaps/{heap}/upgrade"),
        )
    };
    Operation::new(service, description, |service, caller, params: OneHeap| async move {
        service.upgrade_heap(&caller, parse_heap_key("heap", &params.heap)?).await
    })
}

fn collect(service: &Service) -> Operation {
    let description = Description::endpoint(
        "collect_heaps",
        "Collect heaps",
        "Removes your heaps that are past their retention and that no tag, session, recent log entry or running execution refers to. Heaps \
         that are not in this server's database stay, since they may belong to another server.",
        ("POST", "/api/heaps/gc"),
    );
    Operation::new(service, description, |service, caller, params: CollectHeaps| async move {
        let request = CollectRequest { dry_run: params.dry_run.unwrap_or_default(), unknown: params.unknown.unwrap_or_default() };
        service.heaps().collect(&caller, request).await
    })
}
