//! State shared by the MCP and REST layers: the table of operations, and the settings of connections.

use crate::api::Api;
use crate::auth::Authenticator;
use crate::http::Budgets;
use crate::long_results::LongResults;
use heapstead_service::{Metrics, Service, ServiceError, Stateless};
use heapstead_types::{Principal, SessionName};

pub struct Edge {
    pub api: Api,
    pub mode: Mode,
    /// The session of connections that do not name one (`--session-id`).
    pub session: Option<SessionName>,
    /// Maximum characters of text in an MCP result: longer results are truncated, lists and output are paged.
    pub inline_chars_max: usize,
    /// Whether tools are also listed under their aliases (`--plasm-names`).
    pub plasm_names: bool,
    pub access: Access,
    pub authenticator: Authenticator,
    pub budgets: Budgets,
    pub long_results: LongResults,
}

pub enum Mode {
    Stateful(Service),
    /// `--stateless`: runs code and stores nothing.
    Stateless(Box<Stateless>),
}

impl Edge {
    /// None in stateless mode.
    pub fn service(&self) -> Option<&Service> {
        match &self.mode {
            Mode::Stateful(service) => Some(service),
            Mode::Stateless(_) => None,
        }
    }

    /// Whether the server can serve calls.
    pub async fn is_ready(&self) -> bool {
        match &self.mode {
            Mode::Stateful(service) => service.is_ready().await,
            Mode::Stateless(stateless) => stateless.is_ready().await,
        }
    }

    pub async fn metrics(&self, principal: &Principal) -> Result<Metrics, ServiceError> {
        match &self.mode {
            Mode::Stateful(service) => service.metrics(principal).await,
            Mode::Stateless(stateless) => stateless.metrics(principal),
        }
    }
}

/// The host names and web origins from which requests are accepted, so that a web page cannot misuse a user's browser to call the server.
#[derive(Debug, Clone)]
pub struct Access {
    /// Values of the `Host` header, without port. `*` allows all.
    pub hosts: Vec<String>,
    /// Values of the `Origin` header. Requests without this header do not come from a web page. `*` allows all.
    pub origins: Vec<String>,
}
