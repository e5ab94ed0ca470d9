//! Heaps as things, for people who run a server: listed, shown, collected. Not tools, because agents have no use for them.

use super::executions::heap_key;
use super::operation::{Description, FailureShape, Operation, Route};
use heapstead_service::{CollectRequest, HeapSummary, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct ListHeaps {
    /// At most this many; `next_cursor` in the answer leads to the rest. Absent: all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Goes on where an earlier answer's `next_cursor` says.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ShowHeap {
    /// The heap's key: 64 lowercase hex digits.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    heap: String,
}

#[derive(Deserialize, JsonSchema)]
struct CollectHeaps {
    /// Only tell what would be removed. Default false.
    dry_run: Option<bool>,
    /// Also heaps that this database knows nothing of: only where no other server uses the same store. They are nobody's, and so left alone where the
    /// caller has credentials. Default false.
    unknown: Option<bool>,
}

/// Heaps in the order of their keys.
#[derive(Serialize, JsonSchema)]
struct HeapList {
    heaps: Vec<HeapSummary>,
    /// Pass this as `cursor` for the rest. Absent when there is no rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![list(service), show(service), collect(service)]
}

fn list(service: &Service) -> Operation {
    let description = Description {
        name: "list_heaps",
        title: "List heaps",
        text: "All your heaps, in the order of their keys.",
        is_tool: false,
        read_only: true,
        route: Route { method: "GET", path: "/api/heaps" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ListHeaps| async move {
        let after = params.cursor.as_deref().map(|cursor| heap_key("cursor", cursor)).transpose()?;
        let (heaps, more) = service.heaps(&caller, after, params.limit).await?;
        let next_cursor = if more { heaps.last().map(|heap| heap.heap.to_string()) } else { None };
        Ok(HeapList { heaps, next_cursor })
    })
}

fn show(service: &Service) -> Operation {
    let description = Description {
        name: "show_heap",
        title: "Show a heap",
        text: "Size, age and engine of a heap.",
        is_tool: false,
        read_only: true,
        route: Route { method: "GET", path: "/api/heaps/{heap}" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: ShowHeap| async move {
        service.heap(&caller, heap_key("heap", &params.heap)?).await
    })
}

fn collect(service: &Service) -> Operation {
    let description = Description {
        name: "collect_heaps",
        title: "Collect heaps",
        text: "Removes your heaps that are past their time and that no tag, no session, no recent log entry and no running execution refers to. \
               Those that this database knows nothing of may be another server's, and stay.",
        is_tool: false,
        read_only: false,
        route: Route { method: "POST", path: "/api/heaps/gc" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: CollectHeaps| async move {
        let request = CollectRequest { dry_run: params.dry_run.unwrap_or_default(), unknown: params.unknown.unwrap_or_default() };
        service.collect_heaps(&caller, request).await
    })
}
