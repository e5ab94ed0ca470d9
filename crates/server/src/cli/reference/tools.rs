//! Generates the page of MCP tools and REST routes from the table of operations.

use crate::api::{Api, Operation};
use crate::startup::{self, StartupError};
use heapstead_catalog::Catalogs;
use heapstead_engine::{Artifacts, Config, Engine};
use heapstead_service::{ContextPlace, ContextSettings, ContextStoreError, OpenContexts, Policy, Service, ServiceError, Stateless};
use heapstead_types::{LimitMaxima, Limits};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::io;

const START: &str = "\
# Operations

Generated from the code by `make reference`. Do not edit.

Each operation is an MCP tool (unless noted) and a REST endpoint, with the same arguments and the same result. In REST, arguments in braces are path parameters; the others are query parameters of a GET or DELETE, or members of the JSON body of a POST or PUT. A running server describes the same operations as OpenAPI 3.1 at `/api-doc/openapi.json`, and for people at `/docs`.

";

#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("a temporary folder can't be made: {0}")]
    Folder(io::Error),
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Contexts(#[from] ContextStoreError),
}

pub async fn page() -> Result<String, PageError> {
    // The table needs a service, so a temporary one is created in its own folder.
    let folder = tempfile::tempdir().map_err(PageError::Folder)?;
    let engine = startup::start_engine(Config::new(Artifacts::find().map_err(StartupError::from)?), || ()).await?;
    let stateless = Api::stateless(&Stateless::new(engine.clone(), Limits::default(), LimitMaxima::default()));
    let service = temporary_service(engine, folder.path()).await?;
    let mut page = START.to_owned();
    for operation in Api::stateful(&service).operations() {
        describe(&mut page, operation);
    }
    page.push_str("# In stateless mode\n\nWith `--stateless`, only these operations exist.\n\n");
    for operation in stateless.operations() {
        describe(&mut page, operation);
    }
    Ok(page)
}

async fn temporary_service(engine: Engine, folder: &std::path::Path) -> Result<Service, PageError> {
    let heaps = startup::open_heaps(&folder.join("heaps"))?;
    let database = startup::open_database(&folder.join("sessions"))?;
    let place = ContextPlace::Sqlite { database: folder.join("context.db") };
    let policy = Policy::default();
    let contexts = OpenContexts::open(ContextSettings { place, ttl: policy.session_ttl, key_file: None }).await?;
    Ok(Service::open(engine, heaps, database, policy, Catalogs::default(), Some(contexts)).await?)
}

fn describe(page: &mut String, operation: &Operation) {
    let tool = if operation.is_tool { "" } else { " · REST only, no MCP tool" };
    let _ = writeln!(page, "## `{}`\n\n`{} {}`{tool}\n", operation.name, operation.route.method, operation.route.path);
    let _ = writeln!(page, "{}\n", operation.text.trim_end());
    fields(page, &operation.input, "argument");
    fields(page, &operation.output, "answer");
}

fn fields(page: &mut String, schema: &Value, title: &str) {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        return;
    }
    let _ = writeln!(page, "| {title} | type | |\n|---|---|---|");
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in properties {
        let must = if title == "argument" && required.contains(&name.as_str()) { " (required)" } else { "" };
        let meaning = property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(page, "| `{name}`{must} | {} | {meaning} |", kind(property));
    }
    page.push('\n');
}

/// The type in words, with its limits.
fn kind(property: &Value) -> String {
    if let Some(choices) = property["enum"].as_array() {
        let choices: Vec<_> = choices.iter().filter_map(Value::as_str).map(|choice| format!("`{choice}`")).collect();
        return choices.join(", ");
    }
    let name = match &property["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    };
    match (&property["minimum"], &property["maximum"]) {
        (Value::Number(minimum), Value::Number(maximum)) => format!("{name} {minimum}–{maximum}"),
        _ if name == "array" => format!("array of {}", kind(&property["items"])),
        _ => name,
    }
}
