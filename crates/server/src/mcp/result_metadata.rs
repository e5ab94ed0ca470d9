//! Session metadata in the `_meta` of results, whose types have no common field for it.

use rmcp::model::{
    CallToolResponse, CompleteResult, CustomResult, GetTaskResult, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, ReadResourceResponse,
};
use serde_json::Value;

/// A result with `_meta`.
pub trait ResultMetadata {
    fn set_metadata(&mut self, key: &str, metadata: Value);
}

fn insert(meta: &mut Option<MetaObject>, key: &str, metadata: Value) {
    meta.get_or_insert_default().insert(key.into(), metadata);
}

macro_rules! result_metadata {
    ($($result:ty)*) => { $(
        impl ResultMetadata for $result {
            fn set_metadata(&mut self, key: &str, metadata: Value) {
                insert(&mut self.meta, key, metadata);
            }
        }
    )* };
}

result_metadata! { InitializeResult ListToolsResult ListResourcesResult ListResourceTemplatesResult ListPromptsResult CompleteResult }

impl ResultMetadata for () {
    fn set_metadata(&mut self, _: &str, _: Value) {}
}

impl ResultMetadata for CallToolResponse {
    fn set_metadata(&mut self, key: &str, metadata: Value) {
        match self {
            Self::Complete(result) => insert(&mut result.meta, key, metadata),
            Self::Task(task) => insert(&mut task.meta, key, metadata),
            _ => {}
        }
    }
}

impl ResultMetadata for GetTaskResult {
    fn set_metadata(&mut self, key: &str, metadata: Value) {
        insert(&mut self.meta, key, metadata);
    }
}

impl ResultMetadata for ReadResourceResponse {
    fn set_metadata(&mut self, key: &str, metadata: Value) {
        if let Self::Complete(result) = self {
            insert(&mut result.meta, key, metadata);
        }
    }
}

impl ResultMetadata for CustomResult {
    fn set_metadata(&mut self, key: &str, metadata: Value) {
        self.0["_meta"][key] = metadata;
    }
}
