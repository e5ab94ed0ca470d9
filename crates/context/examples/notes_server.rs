//! A small MCP server over stdio that stores notes and remembers what the conversation has already done with them.
//!
//! Run `cargo run --example notes_server` and connect an MCP client. With `CONTEXT_DB=FILE` contexts are stored in that database, otherwise
//! in memory.

use heapstead_context::store::{ContextStore, Memory, MemorySettings, Sqlite, SqliteSettings};
use heapstead_context::{
    Access, Audited, CONTEXT_TOOLS, Contexts, Error, Metered, NewResource, Outcome, Recorder, ResourceType, SessionId, ToolEnd, check,
};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InitializeResult, JsonObject, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::{ErrorData, transport::io::stdio};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

struct NotesServer {
    notes: Mutex<BTreeMap<String, String>>,
    contexts: Contexts,
    recorder: Recorder,
    /// The server has one client, so one conversation.
    session: SessionId,
}

/// Name, description and parameters of each tool. All parameters are strings.
const TOOLS: [(&str, &str, &[&str]); 8] = [
    ("add_note", "Writes a note.", &["title", "text"]),
    ("read_note", "Reads a note, unless this conversation has read it as it is now.", &["title"]),
    ("search_notes", "Titles of the notes with these words, unless this conversation has already searched for them.", &["query"]),
    ("context_get", "What this conversation has already done.", &[]),
    ("context_set", "Keeps a value for this conversation.", &["key", "value"]),
    ("context_check", "Whether a note was already read.", &["title"]),
    ("context_clear", "Forgets what this conversation has done.", &[]),
    ("health_check", "How the context store is.", &[]),
];

impl NotesServer {
    fn access<'a>(&'a self, tool: &'a str) -> Access<'a> {
        Access::new(&self.session, tool)
    }

    /// The result of the tool, or the error.
    async fn call(&self, tool: &str, args: &JsonObject) -> Result<Value, Error> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        match tool {
            "add_note" => {
                self.notes().insert(text("title").to_owned(), text("text").to_owned());
                Ok(json!({ "added": text("title") }))
            }
            "read_note" => self.read_note(text("title")).await,
            "search_notes" => self.search_notes(text("query")).await,
            "context_get" => Ok(json!(*self.contexts.get(self.access(tool)).await?)),
            "context_set" => {
                let values = JsonObject::from_iter([(text("key").to_owned(), text("value").into())]);
                self.contexts.update(self.access(tool), |record| record.set_custom(&values)).await?;
                Ok(json!({ "set": text("key") }))
            }
            "context_check" => {
                let record = self.contexts.get(self.access(tool)).await?;
                Ok(check::resource_note(&record.check_resource(text("title"), None, None), text("title"), None))
            }
            "context_clear" => {
                self.contexts.clear(self.access(tool)).await?;
                let message = "Conversation context has been reset. Starting fresh.";
                Ok(json!({ "status": "cleared", "session_id": self.session, "message": message }))
            }
            _ => {
                let health = self.contexts.health().await;
                let status = if health.degraded.is_empty() { "healthy" } else { "degraded" };
                Ok(json!({ "status": status, "context_store": health, "timestamp": self.contexts.clock().now() }))
            }
        }
    }

    async fn read_note(&self, title: &str) -> Result<Value, Error> {
        let Some(note) = self.notes().get(title).cloned() else { return Ok(json!({ "error": "there is no such note" })) };
        let hash = hash(&note);
        // If the context store is down, the tool reads the note as if there were no context.
        if let Ok(record) = self.contexts.get(self.access("read_note")).await {
            let known = record.check_resource(title, Some(ResourceType::Document), Some(&hash));
            if let heapstead_context::ResourceCheck::Known(_) = known {
                return Ok(check::resource_note(&known, title, None));
            }
        }
        let summary = note.chars().take(80).collect();
        let resource = NewResource { resource_id: title.to_owned(), resource_type: ResourceType::Document, content_hash: hash, summary };
        let now = self.contexts.clock().now();
        let noted = self.contexts.update(self.access("read_note"), |record| record.add_resource(resource.clone(), now)).await;
        if let Err(Error::Refused(refused)) = noted {
            return Err(refused.into());
        }
        Ok(json!({ "title": title, "text": note }))
    }

    async fn search_notes(&self, query: &str) -> Result<Value, Error> {
        let record = self.contexts.get(self.access("search_notes")).await?;
        if let Some(found) = record.check_search(query) {
            return Ok(check::search_note(Some(found), query));
        }
        let titles: Vec<String> = self.notes().iter().filter(|(_, text)| text.contains(query)).map(|(title, _)| title.clone()).collect();
        let now = self.contexts.clock().now();
        self.contexts.update(self.access("search_notes"), |record| record.add_search(query, titles.len() as u64, now)).await?;
        Ok(json!({ "titles": titles }))
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for NotesServer {
    fn get_info(&self) -> ServerConfig {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let tool = |(name, description, parameters): (&'static str, &'static str, &[&str])| {
            let properties: JsonObject = parameters.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
            let schema = json!({ "type": "object", "properties": properties, "required": parameters });
            Tool::new(name, description, Arc::new(schema.as_object().cloned().unwrap_or_default()))
        };
        Ok(ListToolsResult::with_all_items(TOOLS.map(tool).to_vec()))
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let Some((tool, ..)) = TOOLS.iter().find(|(name, ..)| *name == request.name) else {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        };
        let called_at = self.contexts.clock().now();
        let args = request.arguments.unwrap_or_default();
        let answer = match self.call(tool, &args).await {
            Ok(answer) => CallToolResult::structured(answer),
            Err(error) => CallToolResult::structured_error(json!({ "error": error.to_string() })),
        };
        if !CONTEXT_TOOLS.contains(tool) {
            let outcome = serde_json::to_value(&answer).unwrap_or_default();
            let end = ToolEnd {
                session: &self.session,
                tenant: "",
                owner: "",
                owner_bytes_max: None,
                tool,
                args: &args,
                called_at,
                outcome: Outcome::Result(&outcome),
            };
            self.recorder.record(end);
        }
        Ok(answer.into())
    }
}

fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store: Arc<dyn ContextStore> = match std::env::var_os("CONTEXT_DB") {
        Some(path) => Arc::new(Sqlite::open(path.as_ref(), SqliteSettings::default())?),
        None => Arc::new(Memory::new(MemorySettings::default())),
    };
    let contexts = Contexts::new(Metered::new(Audited::new(store)));
    let _upkeep = contexts.keep_up(Duration::from_secs(30));
    let recorder = Recorder::start(contexts.clone());
    let session = SessionId::random()?;
    let server = NotesServer { notes: Mutex::default(), contexts: contexts.clone(), recorder: recorder.clone(), session };
    server.serve(stdio()).await?.waiting().await?;
    // The conversation has ended, so its context is removed.
    recorder.flush().await;
    contexts.end(Access::new(&session, "shutdown")).await?;
    Ok(())
}
