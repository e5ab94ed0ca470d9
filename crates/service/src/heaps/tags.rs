//! Tags on heaps: bounds, and operations of their owner.

use super::Heaps;
use crate::{Caller, ListPage, LongAnswer, ServiceError};
use heapstead_store::Tags;
use heapstead_store::records::TagQuery;
use heapstead_types::HeapKey;
use schemars::JsonSchema;
use serde::Serialize;

/// Tags are labels, not storage.
pub const TAGS_MAX: usize = 64;
pub const TAG_KEY_CHARS_MAX: usize = 128;
pub const TAG_VALUE_CHARS_MAX: usize = 1024;
/// The shortest item of a list: a key and one tag.
const RESULT_CHARS_MIN: usize = 80;

/// Heaps and their tags, ordered by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaggedHeaps {
    pub results: Vec<TaggedHeap>,
    /// Pass this as `cursor` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The tags of a heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapTags {
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaggedHeap {
    #[schemars(schema_with = "crate::schema::heap_key")]
    pub heap: HeapKey,
    pub tags: Tags,
}

impl LongAnswer for TaggedHeap {}

impl ListPage for TaggedHeaps {
    const MEMBER: &'static str = "results";
    type Item = TaggedHeap;

    fn into_items(self) -> (Vec<TaggedHeap>, Option<String>) {
        (self.results, self.next_cursor)
    }
}

/// Checks the bounds of tags.
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

impl Heaps<'_> {
    pub async fn tags(&self, caller: &Caller, heap: HeapKey) -> Result<HeapTags, ServiceError> {
        Ok(HeapTags { tags: self.0.records.tags(&caller.principal, heap).await? })
    }

    /// Replaces all tags; an empty map deletes them.
    pub async fn set_tags(&self, caller: &Caller, heap: HeapKey, tags: Tags) -> Result<(), ServiceError> {
        check_tags(&tags)?;
        Ok(self.0.records.set_tags(&caller.principal, heap, tags).await?)
    }

    /// Deletes these tags, or all if none are named.
    pub async fn delete_tags(&self, caller: &Caller, heap: HeapKey, keys: Option<Vec<String>>) -> Result<(), ServiceError> {
        match keys {
            Some(keys) => Ok(self.0.records.remove_tags(&caller.principal, heap, keys).await?),
            None => Ok(self.0.records.set_tags(&caller.principal, heap, Tags::new()).await?),
        }
    }

    pub async fn find_by_tags(&self, caller: &Caller, query: TagQuery) -> Result<TaggedHeaps, ServiceError> {
        check_tags(&query.pairs)?;
        let query = TagQuery { limit: caller.list_limit(query.limit, RESULT_CHARS_MIN), ..query };
        let (found, more) = self.0.records.heaps_by_tags(&caller.principal, query).await?;
        let mut results: Vec<_> = found.into_iter().map(|found| TaggedHeap { heap: found.heap, tags: found.tags }).collect();
        let fitting = caller.items_that_fit(&results);
        let more = more || fitting < results.len();
        results.truncate(fitting);
        let next_cursor = results.last().filter(|_| more).map(|last| last.heap.to_string());
        Ok(TaggedHeaps { results, next_cursor })
    }
}
