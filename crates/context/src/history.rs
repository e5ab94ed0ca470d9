//! Adds calls, resources and searches to a record, and removes the oldest when there are too many.

use crate::json_size::json_bytes;
use crate::limits::{
    CONTENT_HASH_CHARS_MAX, QUERY_CHARS_MAX, RESOURCE_ID_CHARS_MAX, RESOURCE_SUMMARY_CHARS_MAX, RESOURCES_BYTES_MAX, RESOURCES_MAX,
    SEARCHES_BYTES_MAX, SEARCHES_MAX, TOOL_NAME_BYTES_MAX,
};
use crate::preferences::{refused, shown};
use crate::record::{Resource, ResourceType, Search, ToolCall};
use crate::text::{clean, cut_args, cut_bytes, result_summary_of_text};
use crate::{Record, Refused, Timestamp};
use ring::digest;
use serde::Serialize;

/// A resource as the caller describes it.
#[derive(Debug, Clone)]
pub struct NewResource {
    pub resource_id: String,
    pub resource_type: ResourceType,
    pub content_hash: String,
    pub summary: String,
}

impl Record {
    /// Adds a call that the server observed. Long texts are truncated and secrets masked. A run that ended late is inserted at the position
    /// of its call, because the newest calls are last.
    pub fn add_call(&mut self, call: ToolCall) {
        let older = self.recent_tool_calls.iter().rposition(|known| known.called_at <= call.called_at);
        let added = ToolCall {
            tool: cut_bytes(&clean(&call.tool), TOOL_NAME_BYTES_MAX),
            args: cut_args(&call.args),
            called_at: call.called_at,
            result_summary: result_summary_of_text(&call.result_summary),
        };
        self.recent_tool_calls.insert(older.map_or(0, |older| older + 1), added);
    }

    /// Replaces an earlier entry for the same resource.
    pub fn add_resource(&mut self, new: NewResource, now: Timestamp) -> Result<(), Refused> {
        check_text("resource_id", &new.resource_id, 1, RESOURCE_ID_CHARS_MAX)?;
        check_text("content_hash", &new.content_hash, 0, CONTENT_HASH_CHARS_MAX)?;
        check_text("summary", &new.summary, 0, RESOURCE_SUMMARY_CHARS_MAX)?;
        let NewResource { resource_id, resource_type, content_hash, summary } = new;
        self.fetched_resources.retain(|known| (known.resource_type, &known.resource_id) != (resource_type, &resource_id));
        self.fetched_resources.push(Resource { resource_id, resource_type, fetched_at: now, content_hash, summary });
        oldest_out(&mut self.fetched_resources, RESOURCES_MAX, RESOURCES_BYTES_MAX);
        Ok(())
    }

    /// Replaces an earlier entry for the same query.
    pub fn add_search(&mut self, query: &str, results: u64, now: Timestamp) -> Result<(), Refused> {
        check_text("query", query, 1, QUERY_CHARS_MAX)?;
        let query_hash = query_hash(query);
        self.searches.retain(|known| known.query_hash != query_hash);
        self.searches.push(Search { query_hash, query: query.to_owned(), searched_at: now, results });
        oldest_out(&mut self.searches, SEARCHES_MAX, SEARCHES_BYTES_MAX);
        Ok(())
    }
}

/// SHA-256 in hex of the words of the query joined by single spaces, so that queries that differ only in white space are equal.
pub fn query_hash(query: &str) -> String {
    let words: Vec<&str> = query.split_whitespace().collect();
    hex::encode(digest::digest(&digest::SHA256, words.join(" ").as_bytes()))
}

fn check_text(parameter: &str, text: &str, min: usize, max: usize) -> Result<(), Refused> {
    if text.trim().len() < min {
        return Err(refused(parameter, format!("`{}`", shown(text)), "it must not be empty".into()));
    }
    let chars = text.chars().count();
    if chars > max {
        return Err(refused(
            parameter,
            format!("{chars} characters long (`{}`)", shown(text)),
            format!("at most {max} characters are allowed"),
        ));
    }
    Ok(())
}

fn oldest_out<T: Serialize>(list: &mut Vec<T>, count_max: usize, bytes_max: usize) {
    let sizes: Vec<usize> = list.iter().map(|item| json_bytes(item) + 1).collect();
    let mut bytes: usize = sizes.iter().sum();
    let mut leaving = 0;
    while list.len() - leaving > count_max || (bytes > bytes_max && leaving + 1 < list.len()) {
        bytes -= sizes[leaving];
        leaving += 1;
    }
    list.drain(..leaving);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionId;

    fn record() -> Record {
        Record::new(SessionId::from_bytes([1; 32]), Timestamp::from_ms(0))
    }

    fn resource(id: &str, hash: &str) -> NewResource {
        NewResource { resource_id: id.into(), resource_type: ResourceType::Document, content_hash: hash.into(), summary: "s".into() }
    }

    #[test]
    fn above_200_the_oldest_resource_and_search_are_removed() {
        let mut record = record();
        for index in 0..250 {
            record.add_resource(resource(&format!("doc-{index}"), "h"), Timestamp::from_ms(index)).expect("added");
            record.add_search(&format!("query {index}"), 3, Timestamp::from_ms(index)).expect("added");
        }
        assert_eq!((record.fetched_resources.len(), record.searches.len()), (200, 200));
        assert_eq!(
            (record.fetched_resources[0].resource_id.as_str(), record.fetched_resources[199].resource_id.as_str()),
            ("doc-50", "doc-249")
        );
        assert_eq!(record.searches[0].query, "query 50");
    }

    #[test]
    fn a_repeated_entry_is_stored_once_as_the_newest() {
        let mut record = record();
        for (id, hash) in [("a", "1"), ("b", "1"), ("a", "2")] {
            record.add_resource(resource(id, hash), Timestamp::from_ms(0)).expect("added");
        }
        for (query, results) in [("two  words", 1), ("other", 2), (" two words\n", 3)] {
            record.add_search(query, results, Timestamp::from_ms(0)).expect("added");
        }
        let resources: Vec<_> =
            record.fetched_resources.iter().map(|known| (known.resource_id.as_str(), known.content_hash.as_str())).collect();
        assert_eq!(resources, [("b", "1"), ("a", "2")]);
        assert_eq!(record.searches.iter().map(|known| known.results).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_row_and_a_document_of_one_id_are_two_resources() {
        let mut record = record();
        record.add_resource(resource("7", "1"), Timestamp::from_ms(0)).expect("added");
        record
            .add_resource(NewResource { resource_type: ResourceType::DatabaseRow, ..resource("7", "1") }, Timestamp::from_ms(0))
            .expect("added");
        assert_eq!(record.fetched_resources.len(), 2);
    }

    #[test]
    fn values_over_a_limit_are_refused_by_name() {
        let mut changed = record();
        let long = "x".repeat(2000);
        for (new, parameter) in [
            (resource(&long, "h"), "resource_id"),
            (resource(" ", "h"), "resource_id"),
            (resource("a", &long), "content_hash"),
            (NewResource { summary: long.clone(), ..resource("a", "h") }, "summary"),
        ] {
            let error = changed.add_resource(new, Timestamp::from_ms(0)).expect_err("refused");
            assert_eq!(error.parameter, parameter);
        }
        assert_eq!(changed.add_search(&long, 1, Timestamp::from_ms(0)).expect_err("refused").to_string().matches("1024").count(), 1);
        assert_eq!(changed, record());
    }

    #[test]
    fn a_record_of_maximum_parts_fits() {
        let mut record = record();
        let wide = |bytes: usize, index: usize| format!("{index}{}", "\u{1}".repeat(bytes - 4));
        for index in 0..220 {
            let summary = wide(RESOURCE_SUMMARY_CHARS_MAX, index);
            record
                .add_resource(NewResource { summary, ..resource(&wide(512, index), &wide(128, index)) }, Timestamp::from_ms(0))
                .expect("added");
            record.add_search(&wide(1024, index), u64::MAX, Timestamp::from_ms(0)).expect("added");
        }
        assert!(json_bytes(&record.fetched_resources) <= RESOURCES_BYTES_MAX + 2 && json_bytes(&record.searches) <= SEARCHES_BYTES_MAX + 2);
        assert_eq!(record.fetched_resources.last().map(|known| known.resource_id.starts_with("219")), Some(true));
    }
}
