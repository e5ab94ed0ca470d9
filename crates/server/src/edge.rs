//! State shared by the MCP and REST layers: the table of operations, and the settings of connections.

use crate::api::Api;
use crate::auth::Authenticator;
use heapstead_service::{HealthStatus, Metrics, Service, ServiceError, Stateless};
use heapstead_types::{Principal, SessionName};

pub struct Edge {
    pub api: Api,
    /// None in stateless mode.
    pub service: Option<Service>,
    /// None unless in stateless mode.
    pub stateless: Option<Stateless>,
    /// The session of connections that do not name one (`--session-id`).
    pub session: Option<SessionName>,
    /// Maximum characters of text in an MCP result: longer results are truncated, lists and output are paged.
    pub inline_chars_max: usize,
    /// Whether tools are also listed under their aliases (`--plasm-names`).
    pub plasm_names: bool,
    pub access: Access,
    pub authenticator: Authenticator,
}

impl Edge {
    /// Whether the server can serve calls.
    pub async fn is_ready(&self) -> bool {
        match (&self.service, &self.stateless) {
            (Some(service), _) => service.is_ready().await,
            (None, Some(stateless)) => stateless.health().await.status == HealthStatus::Healthy,
            (None, None) => false,
        }
    }

    pub async fn metrics(&self, principal: &Principal) -> Result<Metrics, ServiceError> {
        match (&self.service, &self.stateless) {
            (Some(service), _) => service.metrics(principal).await,
            (None, Some(stateless)) => stateless.metrics(principal),
            (None, None) => Err(ServiceError::Unavailable("the server has no engine".into())),
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
