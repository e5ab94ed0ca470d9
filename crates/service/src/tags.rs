//! Tags on heaps: who may see them, and how large they may be.

use crate::{Archive, Caller, ServiceError};
use heapstead_store::Tags;
use heapstead_store::metadata::TagQuery;
use heapstead_types::HeapKey;
use schemars::JsonSchema;
use serde::Serialize;

/// Tags are labels, not storage.
pub const TAGS_MAX: usize = 64;
pub const TAG_KEY_CHARS_MAX: usize = 128;
pub const TAG_VALUE_CHARS_MAX: usize = 1024;
/// The shortest heap with tags in a list: a key and one tag.
const RESULT_CHARS_MIN: usize = 80;

/// Heaps and their tags, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaggedHeaps {
    pub results: Vec<TaggedHeap>,
    /// Pass this as `cursor` for the rest. Absent when there is no rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaggedHeap {
    #[schemars(schema_with = "crate::schema::heap_key")]
    pub heap: HeapKey,
    pub tags: Tags,
}

/// Whether tags are within their bounds.
pub fn check_tags(tags: &Tags) -> Result<(), ServiceError> {
    if tags.len() > TAGS_MAX {
        return Err(ServiceError::bad_value("tags", format!("{} tags", tags.len()), format!("at most {TAGS_MAX} are allowed on a heap")));
    }
    for (key, value) in tags {
        let key_chars = key.chars().count();
        if key_chars == 0 || key_chars > TAG_KEY_CHARS_MAX || key.trim() != key || key.contains(',') || key.chars().any(char::is_control) {
            let allowed = format!(
                "a tag's name has 1 to {TAG_KEY_CHARS_MAX} characters, none of them a comma or a control character, and no white space around it"
            );
            return Err(ServiceError::bad_value("tags", format!("a map with the name `{key}`"), allowed));
        }
        let value_chars = value.chars().count();
        if value_chars > TAG_VALUE_CHARS_MAX {
            let allowed = format!("a tag's value has at most {TAG_VALUE_CHARS_MAX} characters");
            return Err(ServiceError::bad_value("tags", format!("a map whose `{key}` has {value_chars} characters"), allowed));
        }
    }
    Ok(())
}

impl Archive {
    pub async fn heap_tags(&self, caller: &Caller, heap: HeapKey) -> Result<Tags, ServiceError> {
        Ok(self.0.metadata.tags(&caller.principal, heap).await?)
    }

    /// Replaces all tags; an empty map clears them.
    pub async fn set_heap_tags(&self, caller: &Caller, heap: HeapKey, tags: Tags) -> Result<(), ServiceError> {
        check_tags(&tags)?;
        Ok(self.0.metadata.set_tags(&caller.principal, heap, tags).await?)
    }

    /// Removes these tags; all of them when none are named.
    pub async fn delete_heap_tags(&self, caller: &Caller, heap: HeapKey, keys: Option<Vec<String>>) -> Result<(), ServiceError> {
        match keys {
            Some(keys) => Ok(self.0.metadata.remove_tags(&caller.principal, heap, keys).await?),
            None => Ok(self.0.metadata.set_tags(&caller.principal, heap, Tags::new()).await?),
        }
    }

    pub async fn heaps_by_tags(&self, caller: &Caller, query: TagQuery) -> Result<TaggedHeaps, ServiceError> {
        check_tags(&query.pairs)?;
        let query = TagQuery { limit: caller.list_limit(query.limit, RESULT_CHARS_MIN), ..query };
        let (found, more) = self.0.metadata.heaps_by_tags(&caller.principal, query).await?;
        let mut results: Vec<_> = found.into_iter().map(|found| TaggedHeap { heap: found.heap, tags: found.tags }).collect();
        let fitting = caller.items_that_fit(&results);
        let more = more || fitting < results.len();
        results.truncate(fitting);
        let next_cursor = results.last().filter(|_| more).map(|last| last.heap.to_string());
        Ok(TaggedHeaps { results, next_cursor })
    }
}
