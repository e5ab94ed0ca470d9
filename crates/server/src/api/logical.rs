//! Sessions that a host names by its intent: `session_context`, and `catalog_search` for what can be drawn into them.

use super::operation::{Description, FailureShape, Operation, Route};
use heapstead_catalog::Pick;
use heapstead_service::{ContextRequest, Service, ServiceError, logical_id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seeds of one call: more are a mistake, not a wish.
const SEEDS_MAX: usize = 200;
/// No catalog or entity has a longer name.
const SEED_CHARS_MAX: usize = 256;
const HITS_DEFAULT: u32 = 20;

#[derive(Deserialize, JsonSchema)]
struct SessionContextParams {
    /// What the task is, in the host's own words: any text of 1 to 512 bytes that stays the same as long as the task does. The same text gives the
    /// same session.
    #[schemars(length(min = 1, max = 512))]
    intent: String,
    /// What to bring into the session: entities of catalogs, as `catalog_search` finds them. Absent: nothing.
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
    /// Words that the name or the description has. Absent: everything there is.
    query: Option<String>,
    /// At most this many. Default 20.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Continues where `next_cursor` of an earlier answer says.
    #[schemars(schema_with = "heapstead_service::schema::cursor")]
    #[serde(default)]
    cursor: Option<String>,
}

/// Entities, best matches first.
#[derive(Serialize, JsonSchema)]
struct Found {
    entities: Vec<FoundEntity>,
    /// Pass this as `cursor` for the rest. Absent when there is no rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FoundEntity {
    catalog: String,
    entity: String,
    /// `function`, `class`, `constant` or `object`.
    kind: String,
    signature: String,
    description: String,
}

pub fn operations(service: &Service) -> Vec<Operation> {
    vec![session_context(service), catalog_search(service)]
}

fn session_context(service: &Service) -> Operation {
    let description = Description {
        name: "session_context",
        title: "Open or extend a session",
        text: include_str!("descriptions/session_context.md"),
        is_tool: true,
        read_only: false,
        route: Route { method: "POST", path: "/api/session-context" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: SessionContextParams| async move {
        let picks = match params.seeds {
            None => Vec::new(),
            Some(seeds) if seeds.is_empty() => {
                let allowed = "expected at least one entity of a catalog; leave it out to open a session without any";
                return Err(ServiceError::bad_value("seeds", "[]", allowed));
            }
            Some(seeds) if seeds.len() > SEEDS_MAX => {
                return Err(ServiceError::bad_value("seeds", format!("{} long", seeds.len()), format!("at most {SEEDS_MAX} are taken")));
            }
            Some(seeds) => seeds.into_iter().map(pick).collect::<Result<_, _>>()?,
        };
        let unknown = |text: &str| ServiceError::NoSession(text.chars().take(80).collect());
        let held = params.logical_session_id.map(|text| logical_id(&text).ok_or_else(|| unknown(&text))).transpose()?;
        service.session_context(&caller, ContextRequest { intent: params.intent, picks, logical: held }).await
    })
}

fn pick(seed: Seed) -> Result<Pick, ServiceError> {
    if let Some(name) = [&seed.catalog, &seed.entity].into_iter().find(|name| name.chars().count() > SEED_CHARS_MAX) {
        let allowed = format!("names of catalogs and entities have at most {SEED_CHARS_MAX} characters");
        return Err(ServiceError::bad_value("seeds", format!("a list with the name `{name}`"), allowed));
    }
    Ok(Pick::new(seed.catalog, seed.entity))
}

fn catalog_search(service: &Service) -> Operation {
    let description = Description {
        name: "catalog_search",
        title: "Search the catalogs",
        text: include_str!("descriptions/catalog_search.md"),
        is_tool: true,
        read_only: true,
        route: Route { method: "GET", path: "/api/catalogs/search" },
        failure: FailureShape::Error,
    };
    Operation::new(service, description, |service, caller, params: CatalogSearch| async move {
        let limit = params.limit.unwrap_or(HITS_DEFAULT) as usize;
        let skipped: usize = match &params.cursor {
            None => 0,
            Some(text) => text.parse().map_err(|_| ServiceError::bad_cursor(text))?,
        };
        // One more than is shown tells whether there are more.
        let read = skipped.saturating_add(limit).saturating_add(1);
        let hits = match params.query.as_deref().map(str::trim) {
            None | Some("") => service.catalogs().all(read),
            Some(words) => service.catalogs().search(words, read),
        };
        let found = hits.into_iter().skip(skipped).map(|hit| FoundEntity {
            catalog: hit.catalog.to_owned(),
            entity: hit.entity.to_owned(),
            kind: hit.kind.as_str().to_owned(),
            signature: hit.signature.to_owned(),
            description: hit.description.to_owned(),
        });
        let mut entities: Vec<_> = found.collect();
        let fitting = caller.items_that_fit(&entities).min(limit);
        let next_cursor = (fitting < entities.len()).then(|| (skipped + fitting).to_string());
        entities.truncate(fitting);
        Ok(Found { entities, next_cursor })
    })
}
