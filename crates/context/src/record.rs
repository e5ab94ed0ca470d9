//! The record of one conversation, exactly as it is stored and returned.

use crate::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub const SCHEMA_VERSION: u64 = 1;

/// Holds summaries and ids, never full contents. Every list ends with the newest entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    #[serde(default)]
    pub schema_version: u64,
    pub session_id: SessionId,
    pub created_at: Timestamp,
    pub last_updated_at: Timestamp,
    #[serde(default)]
    pub user_preferences: Preferences,
    #[serde(default)]
    pub recent_tool_calls: Vec<ToolCall>,
    #[serde(default)]
    pub fetched_resources: Vec<Resource>,
    #[serde(default)]
    pub searches: Vec<Search>,
    #[serde(default)]
    pub custom: BTreeMap<String, Value>,
    /// Summary of the calls before the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_before_window: Option<String>,
    /// Number of calls folded into the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_start_index: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    Json,
    Markdown,
    Plain,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferences {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_results: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: String,
    pub args: Map<String, Value>,
    pub called_at: Timestamp,
    pub result_summary: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceType {
    Document,
    DatabaseRow,
    ApiResponse,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub resource_id: String,
    pub resource_type: ResourceType,
    pub fetched_at: Timestamp,
    /// A different hash for the same resource means that it has changed.
    pub content_hash: String,
    pub summary: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// See [`crate::query_hash`].
    pub query_hash: String,
    pub query: String,
    pub searched_at: Timestamp,
    /// Number of results.
    pub results: u64,
}

impl Record {
    /// The record of a conversation without any calls.
    pub fn new(session_id: SessionId, now: Timestamp) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            session_id,
            created_at: now,
            last_updated_at: now,
            user_preferences: Preferences::default(),
            recent_tool_calls: Vec::new(),
            fetched_resources: Vec::new(),
            searches: Vec::new(),
            custom: BTreeMap::new(),
            summary_before_window: None,
            window_start_index: None,
        }
    }

    /// Number of all calls, in the window and before it.
    pub fn calls_total(&self) -> u64 {
        self.window_start_index.unwrap_or(0) + self.recent_tool_calls.len() as u64
    }
}

impl ResourceType {
    pub const ALL: [Self; 3] = [Self::Document, Self::DatabaseRow, Self::ApiResponse];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::DatabaseRow => "database_row",
            Self::ApiResponse => "api_response",
        }
    }
}
