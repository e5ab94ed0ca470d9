//! Tags on heaps: `get_heap_tags`, `set_heap_tags`, `delete_heap_tags`, `query_heaps_by_tags`.

use super::executions::heap_key;
use super::operation::{Description, Done, FailureShape, Operation, Route};
use heapstead_service::Service;
use heapstead_store::Tags;
use heapstead_store::metadata::TagQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PATH: &str = "/api/heaps/{heap}/tags";

#[derive(Deserialize, JsonSchema)]
struct GetHeapTags {
    /// The heap's key: 64 lowercase hex digits.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    heap: String,
}

#[derive(Deserialize, JsonSchema)]
struct SetHeapTags {
    /// The heap's key: 64 lowercase hex digits.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    heap: String,
    /// Replaces all tags of the heap; an empty object clears them.
    #[schemars(schema_with = "heapstead_service::schema::tags")]
    tags: Tags,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteHeapTags {
    /// The heap's key: 64 lowercase hex digits.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    heap: String,
    /// Names of the tags to delete, separated by commas. Absent: all.
    keys: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct QueryHeapsByTags {
    /// Heaps are found whose tags hold every one of these pairs.
    #[schemars(schema_with = "heapstead_service::schema::tags")]
    tags: Tags,
    /// At most this many; `next_cursor` in the answer leads to the rest. Absent: all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Goes on where an earlier answer's `next_cursor` says.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    #[serde(default)]
    cursor: Option<String>,
}

/// The tags of a heap.
#[derive(Serialize, JsonSchema)]
struct HeapTags {
    tags: Tags,
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![get(service), set(service), delete(service), query(service)]
}

fn get(service: &Service) -> Operation {
    let description = Description {
        name: "get_heap_tags",
        title: "Get a heap's tags",
        text: "The tags of a heap, `{}` when it has none. Tags are yours alone, and need no heap to exist.",
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: PATH },
        failure: FailureShape::Ok,
    };
    Operation::new(service, description, |service, caller, params: GetHeapTags| async move {
        Ok(HeapTags { tags: service.heap_tags(&caller, heap_key("heap", &params.heap)?).await? })
    })
}

fn set(service: &Service) -> Operation {
    let description = Description {
        name: "set_heap_tags",
        title: "Set a heap's tags",
        text: "Replaces all tags of a heap. Tagged heaps are found with `query_heaps_by_tags` and are never collected; \
               a run can tag the heap it leaves by itself with the `tags` of `run_js`.",
        is_tool: true,
        read_only: false,
        route: Route { method: "PUT", path: PATH },
        failure: FailureShape::Ok,
    };
    Operation::new(service, description, |service, caller, params: SetHeapTags| async move {
        service.set_heap_tags(&caller, heap_key("heap", &params.heap)?, params.tags).await.map(|()| Done::OK)
    })
}

fn delete(service: &Service) -> Operation {
    let description = Description {
        name: "delete_heap_tags",
        title: "Delete tags of a heap",
        text: "Deletes some tags of a heap, or all of them. The heap itself stays.",
        is_tool: true,
        read_only: false,
        route: Route { method: "DELETE", path: PATH },
        failure: FailureShape::Ok,
    };
    Operation::new(service, description, |service, caller, params: DeleteHeapTags| async move {
        let keys = params.keys.map(|keys| keys.split(',').map(|key| key.trim().to_owned()).collect());
        service.delete_heap_tags(&caller, heap_key("heap", &params.heap)?, keys).await.map(|()| Done::OK)
    })
}

fn query(service: &Service) -> Operation {
    let description = Description {
        name: "query_heaps_by_tags",
        title: "Find heaps by tags",
        text: "Heaps whose tags hold every given pair, with all their tags. `{}` finds every heap that has tags; untagged heaps are never found.",
        is_tool: true,
        read_only: true,
        route: Route { method: "POST", path: "/api/heaps/query" },
        failure: FailureShape::Ok,
    };
    Operation::new(service, description, |service, caller, params: QueryHeapsByTags| async move {
        let after = params.cursor.as_deref().map(|cursor| heap_key("cursor", cursor)).transpose()?;
        service.heaps_by_tags(&caller, TagQuery { pairs: params.tags, after, limit: params.limit }).await
    })
}
