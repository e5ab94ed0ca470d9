//! Operations: everything that can be requested, in one table. MCP, REST and the documents are generated from it.

mod alias;
mod answer_stream;
mod context;
mod executions;
mod health;
mod heaps;
mod logical_sessions;
mod operation;
mod parameters;
mod schema;
mod sessions;
mod stateless;
mod tags;
mod usage;

pub use alias::Alias;
pub use operation::{Arguments, Done, Failed, FailureShape, LongText, NeedsSession, Operation, Shown, Success, to_json};
pub use parameters::Parameters;

use heapstead_service::{Service, Stateless};
use std::sync::Arc;

/// The operations of a server.
pub struct Api {
    /// Shared with the endpoints: a schema is as long as a small document, and cloning it took half of the time of a short request.
    operations: Vec<Arc<Operation>>,
}

impl Api {
    pub fn stateful(service: &Service) -> Self {
        let mut operations = executions::operations(service);
        operations.extend(tags::operations(service));
        operations.extend(sessions::operations(service));
        operations.extend(logical_sessions::operations(service));
        operations.extend(heaps::operations(service));
        if service.contexts().is_enabled() {
            operations.extend(context::operations(service));
        }
        operations.push(usage::show(service));
        operations.push(health::stateful(service));
        let recorded = |operation: Operation| Arc::new(if operation.is_recorded { operation.recorded(service) } else { operation });
        Self { operations: operations.into_iter().map(recorded).collect() }
    }

    pub fn stateless(stateless: &Stateless) -> Self {
        Self { operations: [stateless::run_js(stateless), health::stateless(stateless)].map(Arc::new).into() }
    }

    pub fn operations(&self) -> &[Arc<Operation>] {
        &self.operations
    }

    /// The operations that are MCP tools.
    pub fn tools(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().map(Arc::as_ref).filter(|operation| operation.is_tool)
    }

    /// The tools under their aliases.
    pub fn aliases(&self) -> Vec<Operation> {
        self.tools().flat_map(|tool| tool.aliases.iter().map(|alias| tool.under(alias))).collect()
    }

    pub fn tool(&self, name: &str) -> Option<&Operation> {
        self.tools().find(|operation| operation.name == name)
    }

    /// The tool with this alias.
    pub fn tool_by_alias(&self, name: &str) -> Option<(&Operation, &'static Alias)> {
        self.tools().find_map(|tool| tool.aliases.iter().find(|alias| alias.name == name).map(|alias| (tool, alias)))
    }

    /// The tool that runs code.
    pub fn run_tool(&self) -> Option<&Operation> {
        self.tools().find(|operation| operation.runs_code)
    }
}
