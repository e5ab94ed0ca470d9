//! Duplicate checks: whether a resource was fetched or a search was run in this conversation, when, and with what result.

use crate::record::{Resource, ResourceType, Search};
use crate::{Record, query_hash};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceCheck<'a> {
    Unknown,
    Known(&'a Resource),
    /// Fetched before, but with different content.
    Changed(&'a Resource),
}

impl Record {
    /// If `resource_type` is omitted, any type matches. If `content_hash` is omitted, a fetched resource counts as unchanged.
    pub fn check_resource(&self, resource_id: &str, resource_type: Option<ResourceType>, content_hash: Option<&str>) -> ResourceCheck<'_> {
        let is_asked =
            |known: &&Resource| known.resource_id == resource_id && resource_type.is_none_or(|asked| asked == known.resource_type);
        match self.fetched_resources.iter().rev().find(is_asked) {
            None => ResourceCheck::Unknown,
            Some(known) if content_hash.is_some_and(|hash| hash != known.content_hash) => ResourceCheck::Changed(known),
            Some(known) => ResourceCheck::Known(known),
        }
    }

    pub fn check_search(&self, query: &str) -> Option<&Search> {
        let hash = query_hash(query);
        self.searches.iter().rev().find(|known| known.query_hash == hash)
    }
}

/// The result of `context_check` for a resource.
pub fn resource_note(check: &ResourceCheck<'_>, resource_id: &str, resource_type: Option<ResourceType>) -> Value {
    let (found, what) = match check {
        ResourceCheck::Unknown => (None, "not_fetched_this_session"),
        ResourceCheck::Known(found) => (Some(found), "already_fetched_this_session"),
        ResourceCheck::Changed(found) => (Some(found), "changed_since_fetched_this_session"),
    };
    let kind = found.map(|found| found.resource_type).or(resource_type).unwrap_or(ResourceType::Document).as_str();
    let mut note = json!({ "note": format!("{kind}_{what}"), (format!("{kind}_id")): resource_id });
    if let Some(found) = found {
        note["fetched_at"] = json!(found.fetched_at);
        note["summary"] = json!(found.summary);
    }
    note
}

/// The result of `context_check` for a search.
pub fn search_note(found: Option<&Search>, query: &str) -> Value {
    match found {
        None => json!({ "note": "not tried yet", "query": query }),
        Some(found) => json!({
            "note": format!("already tried, returned {} results", found.results),
            "query": found.query, "searched_at": found.searched_at, "results": found.results,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewResource, SessionId, Timestamp};

    fn record() -> Record {
        let mut record = Record::new(SessionId::from_bytes([1; 32]), Timestamp::from_ms(0));
        for (id, resource_type) in [("doc-1", ResourceType::Document), ("7", ResourceType::DatabaseRow)] {
            let new = NewResource { resource_id: id.into(), resource_type, content_hash: "h1".into(), summary: "About it.".into() };
            record.add_resource(new, Timestamp::from_ms(5)).expect("added");
        }
        record.add_search("blue whales", 0, Timestamp::from_ms(7)).expect("added");
        record
    }

    #[test]
    fn a_fetched_resource_is_answered_as_specified() {
        let record = record();
        let check = record.check_resource("doc-1", None, Some("h1"));
        let note = resource_note(&check, "doc-1", None);
        assert_eq!(
            note,
            json!({ "note": "document_already_fetched_this_session", "document_id": "doc-1", "fetched_at": "1970-01-01T00:00:00.005Z", "summary": "About it." })
        );
        let row = resource_note(&record.check_resource("7", None, None), "7", None);
        assert_eq!((&row["note"], &row["database_row_id"]), (&json!("database_row_already_fetched_this_session"), &json!("7")));
    }

    #[test]
    fn another_hash_is_a_change_and_another_type_another_resource() {
        let record = record();
        assert!(matches!(record.check_resource("doc-1", None, Some("h2")), ResourceCheck::Changed(_)));
        assert_eq!(
            resource_note(&record.check_resource("doc-1", None, Some("h2")), "doc-1", None)["note"],
            "document_changed_since_fetched_this_session"
        );
        assert_eq!(record.check_resource("doc-1", Some(ResourceType::ApiResponse), None), ResourceCheck::Unknown);
        assert_eq!(
            resource_note(&ResourceCheck::Unknown, "x", None),
            json!({ "note": "document_not_fetched_this_session", "document_id": "x" })
        );
    }

    #[test]
    fn a_search_is_found_again_whatever_its_spaces() {
        let record = record();
        assert_eq!(search_note(record.check_search(" blue\nwhales "), "x")["note"], "already tried, returned 0 results");
        assert_eq!(record.check_search("blue  Whales"), None);
        assert_eq!(search_note(None, "q"), json!({ "note": "not tried yet", "query": "q" }));
    }
}
