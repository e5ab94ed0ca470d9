//! Logical sessions: `session_context`, and `catalog_search` for entities that can be exposed in them.

use super::alias;
use super::operation::{Description, Operation};
use heapstead_catalog::Pick;
use heapstead_service::{CatalogQuery, ContextRequest, Service};
use schemars::JsonSchema;
use serde::Deserialize;

/// Most seeds of one call.
const SEEDS_MAX: usize = 200;
/// No catalog or entity has a longer name.
const SEED_CHARS_MAX: usize = 256;

#[derive(Deserialize, JsonSchema)]
struct SessionContextParams {
    /// Describes the task: any text of 1 to 512 bytes that stays the same as long as the task does. The same text gives the same session.
    #[schemars(length(min = 1))]
    intent: String,
    /// Entities of catalogs to expose in the session, as `catalog_search` finds them. If omitted, none.
    #[schemars(length(min = 1, max = SEEDS_MAX))]
    seeds: Option<Vec<Seed>>,
    /// The `logical_session_id` of an earlier answer: continues that session after a reconnect. Only clients without credentials may present it
    /// with another intent than it was opened with.
    logical_session_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Seed {
    /// Name of the catalog.
    #[schemars(length(max = SEED_CHARS_MAX))]
    catalog: String,
    /// Name of the entity.
    #[schemars(length(max = SEED_CHARS_MAX))]
    entity: String,
}

#[derive(Deserialize, JsonSchema)]
struct CatalogSearch {
    /// Words of the name or the description. If omitted, everything.
    query: Option<String>,
    /// At most this many. Default 20.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Continues after `next_cursor` of an earlier answer.
    #[schemars(schema_with = "heapstead_service::schema::cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![session_context(service), catalog_search(service)]
}

fn session_context(service: &Service) -> Operation {
    let description = Description {
        aliases: &alias::SESSION_CONTEXT,
        ..Description::tool(
            "session_context",
            "Open or extend a session",
            include_str!("descriptions/session_context.md"),
            ("POST", "/api/session-context"),
        )
    };
    Operation::new(service, description, |service, caller, params: SessionContextParams| async move {
        let picks = params.seeds.into_iter().flatten().map(|seed| Pick::new(seed.catalog, seed.entity)).collect();
        let request = ContextRequest { intent: params.intent, picks, logical_session_id: params.logical_session_id };
        service.session_context(&caller, request).await
    })
}

fn catalog_search(service: &Service) -> Operation {
    let description = Description::tool(
        "catalog_search",
        "Search the catalogs",
        include_str!("descriptions/catalog_search.md"),
        ("GET", "/api/catalogs/search"),
    )
    .read_only();
    Operation::new(service, description, |service, caller, params: CatalogSearch| async move {
        service.search_catalogs(&caller, &CatalogQuery { query: params.query, limit: params.limit, cursor: params.cursor })
    })
}
