//! What both skins stand on: the table of operations, and what the operator decided about connections.

use crate::api::Api;
use crate::auth::{Authenticator, Resolution};
use heapstead_service::Service;
use heapstead_types::SessionName;

pub struct Edge {
    pub api: Api,
    /// None in stateless mode.
    pub service: Option<Service>,
    /// The session of connections that name none.
    pub session: Option<SessionName>,
    /// Text in an MCP answer that is longer than this is cut; the structured content beside it never is.
    pub inline_chars_max: usize,
    /// Whether tools are listed under their other names too.
    pub plasm_names: bool,
    pub access: Access,
    pub authenticator: Authenticator,
    /// With whose rights opened sessions are reused.
    pub resolution: Resolution,
}

/// Which web pages and host names may reach the server: a browser must not be talked into speaking to it.
#[derive(Debug, Clone)]
pub struct Access {
    /// Values of the `Host` header, without port. `*` allows all.
    pub hosts: Vec<String>,
    /// Values of the `Origin` header. Requests without one come from no web page. `*` allows all.
    pub origins: Vec<String>,
}
