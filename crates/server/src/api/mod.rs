//! Everything that can be asked for, in one table: name, description, schemas and what is done. MCP and REST are two skins over it.

mod aliases;
mod context;
mod executions;
mod health;
mod heaps;
mod logical;
mod operation;
mod params;
mod schema;
mod sessions;
mod stateless;
mod tags;

pub use aliases::{in_own_words, tool_of};
pub use executions::heap_key;
pub use operation::{Arguments, Failed, FailureShape, LongText, Operation, Shown, Success};

use heapstead_service::{Service, Stateless};

/// The operations of a server.
pub struct Api {
    operations: Vec<Operation>,
}

impl Api {
    pub fn stateful(service: &Service) -> Self {
        let mut operations = executions::operations(service);
        operations.extend(tags::operations(service));
        operations.extend(sessions::operations(service));
        operations.extend(logical::operations(service));
        operations.extend(heaps::operations(service));
        if service.keeps_contexts() {
            operations.extend(context::operations(service));
        }
        operations.push(health::stateful(service));
        let remembered = |operation: Operation| if operation.is_tool { operation.remembered(service) } else { operation };
        Self { operations: operations.into_iter().map(remembered).collect() }
    }

    pub fn stateless(stateless: &Stateless) -> Self {
        Self { operations: vec![stateless::run_js(stateless), health::stateless(stateless)] }
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Those that are MCP tools.
    pub fn tools(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.is_tool)
    }

    /// Tools under the other names that some hosts know them by.
    pub fn aliases(&self) -> Vec<Operation> {
        aliases::listed(self)
    }

    pub fn tool(&self, name: &str) -> Option<&Operation> {
        self.tools().find(|operation| operation.name == name)
    }
}
