//! Tags on heaps: `get_heap_tags`, `set_heap_tags`, `delete_heap_tags`, `query_heaps_by_tags`.

use super::answer_stream::Paged;
use super::operation::{Description, Done, FailureShape, Operation};
use heapstead_service::{Service, parse_heap_key};
use heapstead_store::Tags;
use heapstead_store::records::TagQuery;
use schemars::JsonSchema;
use serde::Deserialize;

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
    /// Names of the tags to delete, separated by commas. If omitted, all.
    keys: Option<String>,
}

#[derive(Clone, Deserialize, JsonSchema)]
struct QueryHeapsByTags {
    /// Finds heaps whose tags contain every one of these pairs.
    #[schemars(schema_with = "heapstead_service::schema::tags")]
    tags: Tags,
    /// At most this many; `next_cursor` in the answer leads to the rest. If omitted, all.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::heap_key")]
    #[serde(default)]
    cursor: Option<String>,
}

impl Paged for QueryHeapsByTags {
    fn limit(&self) -> Option<u32> {
        self.limit
    }

    fn set_page(&mut self, cursor: String, limit: Option<u32>) {
        (self.cursor, self.limit) = (Some(cursor), limit);
    }
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![get(service), set(service), delete(service), query(service)]
}

fn get(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        ..Description::tool(
            "get_heap_tags",
            "Get a heap's tags",
            "Returns the tags of a heap, `{}` if it has none. Only you see your tags. The heap does not have to exist.",
            ("GET", PATH),
        )
        .read_only()
    };
    Operation::new(service, description, |service, caller, params: GetHeapTags| async move {
        service.heaps().tags(&caller, parse_heap_key("heap", &params.heap)?).await
    })
}

fn set(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        ..Description::tool(
            "set_heap_tags",
            "Set a heap's tags",
            "Replaces all tags of a heap. Tagged heaps are found with `query_heaps_by_tags` and are never collected. \
         `tags` of `run_js` sets the tags of the heap that the run produces.",
            ("PUT", PATH),
        )
    };
    Operation::new(service, description, |service, caller, params: SetHeapTags| async move {
        service.heaps().set_tags(&caller, parse_heap_key("heap", &params.heap)?, params.tags).await.map(|()| Done::OK)
    })
}

fn delete(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        ..Description::tool(
            "delete_heap_tags",
            "Delete tags of a heap",
            "Deletes some or all tags of a heap. The heap itself stays.",
            ("DELETE", PATH),
        )
    };
    Operation::new(service, description, |service, caller, params: DeleteHeapTags| async move {
        let keys = params.keys.map(|keys| keys.split(',').map(|key| key.trim().to_owned()).collect());
        service.heaps().delete_tags(&caller, parse_heap_key("heap", &params.heap)?, keys).await.map(|()| Done::OK)
    })
}

fn query(service: &Service) -> Operation {
    let description = Description {
        failure: FailureShape::Ok,
        ..Description::tool(
            "query_heaps_by_tags",
            "Find heaps by tags",
            "Finds heaps whose tags contain every given pair, and returns them with all their tags. `{}` finds every tagged heap.",
            ("POST", "/api/heaps/query"),
        )
        .read_only()
    };
    Operation::list(service, description, |service, caller, params: QueryHeapsByTags| async move {
        let after = params.cursor.as_deref().map(|cursor| parse_heap_key("cursor", cursor)).transpose()?;
        service.heaps().find_by_tags(&caller, TagQuery { pairs: params.tags, after, limit: params.limit }).await
    })
}
