//! What both skins stand on: the table of operations, and what the operator decided about connections.

use crate::api::Api;
use crate::auth::Authenticator;
use heapstead_service::{HealthStatus, Metrics, Service, ServiceError, Stateless};
use heapstead_types::{Principal, SessionName};

pub struct Edge {
    pub api: Api,
    /// None in stateless mode.
    pub service: Option<Service>,
    /// None in any other.
    pub stateless: Option<Stateless>,
    /// The session of connections that name none.
    pub session: Option<SessionName>,
    /// Characters of text in an MCP answer: longer results are shown in part, lists and output in pages of this size.
    pub inline_chars_max: usize,
    /// Whether tools are listed under their other names too.
    pub plasm_names: bool,
    pub access: Access,
    pub authenticator: Authenticator,
}

impl Edge {
    /// Whether calls can be served.
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

/// Which web pages and host names may reach the server: a browser must not be talked into speaking to it.
#[derive(Debug, Clone)]
pub struct Access {
    /// Values of the `Host` header, without port. `*` allows all.
    pub hosts: Vec<String>,
    /// Values of the `Origin` header. Requests without one come from no web page. `*` allows all.
    pub origins: Vec<String>,
}
