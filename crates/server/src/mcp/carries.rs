//! Results that can tell where their session stands: each has its `_meta` in a place of its own.

use rmcp::model::{
    CallToolResponse, CompleteResult, CustomResult, GetTaskResult, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, ReadResourceResponse,
};
use serde_json::Value;

/// A result that can tell where its session stands.
pub trait Carries {
    fn carry(&mut self, key: &str, metadata: Value);
}

fn put(meta: &mut Option<MetaObject>, key: &str, metadata: Value) {
    meta.get_or_insert_default().insert(key.into(), metadata);
}

macro_rules! carries {
    ($($result:ty)*) => { $(
        impl Carries for $result {
            fn carry(&mut self, key: &str, metadata: Value) {
                put(&mut self.meta, key, metadata);
            }
        }
    )* };
}

carries! { InitializeResult ListToolsResult ListResourcesResult ListResourceTemplatesResult ListPromptsResult CompleteResult }

impl Carries for () {
    fn carry(&mut self, _: &str, _: Value) {}
}

impl Carries for CallToolResponse {
    fn carry(&mut self, key: &str, metadata: Value) {
        match self {
            Self::Complete(result) => put(&mut result.meta, key, metadata),
            Self::Task(task) => put(&mut task.meta, key, metadata),
            _ => {}
        }
    }
}

impl Carries for GetTaskResult {
    fn carry(&mut self, key: &str, metadata: Value) {
        put(&mut self.meta, key, metadata);
    }
}

impl Carries for ReadResourceResponse {
    fn carry(&mut self, key: &str, metadata: Value) {
        if let Self::Complete(result) = self {
            put(&mut result.meta, key, metadata);
        }
    }
}

impl Carries for CustomResult {
    fn carry(&mut self, key: &str, metadata: Value) {
        self.0["_meta"][key] = metadata;
    }
}
