//! Search in the catalogs for entities that can be exposed in a session.

use crate::{Caller, Service, ServiceError};
use schemars::JsonSchema;
use serde::Serialize;

const HITS_DEFAULT: u32 = 20;

#[derive(Debug, Clone, Default)]
pub struct CatalogQuery {
    /// Words of the name or the description. If none, everything.
    pub query: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

/// Entities, best matches first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CatalogHits {
    pub entities: Vec<CatalogEntity>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CatalogEntity {
    pub catalog: String,
    pub entity: String,
    /// `function`, `class`, `constant` or `object`.
    pub kind: String,
    pub signature: String,
    pub description: String,
}

impl Service {
    pub fn search_catalogs(&self, caller: &Caller, request: &CatalogQuery) -> Result<CatalogHits, ServiceError> {
        let limit = request.limit.unwrap_or(HITS_DEFAULT) as usize;
        let skipped: usize = match &request.cursor {
            None => 0,
            Some(text) => text.parse().map_err(|_| ServiceError::bad_cursor(text))?,
        };
        // One more than is shown, to see whether there are more.
        let read = skipped.saturating_add(limit).saturating_add(1);
        let hits = match request.query.as_deref().map(str::trim) {
            None | Some("") => self.catalogs().all(read),
            Some(words) => self.catalogs().search(words, read),
        };
        let found = hits.into_iter().skip(skipped).map(|hit| CatalogEntity {
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
        Ok(CatalogHits { entities, next_cursor })
    }
}
