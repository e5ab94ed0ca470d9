//! MCP: the API's operations as tools, over stdio, Streamable HTTP and the older HTTP with server-sent events.

pub mod http;
pub mod sse;
pub mod stdio;
