//! Estimates the memory use of a record, including heap allocations.

use crate::record::{Record, Resource, Search, ToolCall};
use serde_json::{Map, Value};

/// Overhead of a map entry beyond key and value.
const ENTRY_BYTES: usize = 32;

impl Record {
    pub(crate) fn memory_bytes(&self) -> usize {
        let calls: usize =
            self.recent_tool_calls.iter().map(|call| call.tool.capacity() + map_bytes(&call.args) + call.result_summary.capacity()).sum();
        let resources: usize = self
            .fetched_resources
            .iter()
            .map(|resource| resource.resource_id.capacity() + resource.content_hash.capacity() + resource.summary.capacity())
            .sum();
        let searches: usize = self.searches.iter().map(|search| search.query_hash.capacity() + search.query.capacity()).sum();
        let custom: usize = self.custom.iter().map(|(key, value)| entry_bytes(key, value)).sum();
        let texts =
            [&self.summary_before_window, &self.user_preferences.language].into_iter().flatten().map(String::capacity).sum::<usize>();
        size_of::<Self>()
            + self.recent_tool_calls.capacity() * size_of::<ToolCall>()
            + self.fetched_resources.capacity() * size_of::<Resource>()
            + self.searches.capacity() * size_of::<Search>()
            + calls
            + resources
            + searches
            + custom
            + texts
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.capacity() * size_of::<Value>() + items.iter().map(value_bytes).sum::<usize>(),
        Value::Object(members) => map_bytes(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn map_bytes(members: &Map<String, Value>) -> usize {
    members.iter().map(|(key, value)| entry_bytes(key, value)).sum()
}

fn entry_bytes(key: &String, value: &Value) -> usize {
    size_of::<String>() + key.capacity() + size_of::<Value>() + value_bytes(value) + ENTRY_BYTES
}
