//! Flags of what all clients together may make the server hold.

use super::CONNECTIONS;
use super::values::between;
use crate::http::{ClientLimits, JSON_BYTES_MAX};

/// The longest body fits into the half that one owner may use.
const BODY_MB_MIN: u64 = 200;
const _: () = assert!(BODY_MB_MIN << 19 >= JSON_BYTES_MAX as u64);

#[derive(clap::Args)]
pub struct ClientOptions {
    /// Maximum number of TCP connections of a port, 40 to 1000000; half as many requests may be in progress, and an eighth as many MCP connections open
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_CONNECTIONS", default_value_t = 4000, value_parser = between::<40, 1_000_000>, allow_negative_numbers = true, help_heading = CONNECTIONS)]
    max_connections: u64,
    /// Maximum total size of request bodies in memory, 200 to 1048576; more are refused
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_BODY_MB", default_value_t = 256, value_parser = between::<BODY_MB_MIN, { 1 << 20 }>, allow_negative_numbers = true, help_heading = CONNECTIONS)]
    max_body_mb: u64,
    /// Maximum total size of long responses that have not been sent yet, 16 to 1048576; more are refused
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_RESPONSE_MB", default_value_t = 256, value_parser = between::<16, { 1 << 20 }>, allow_negative_numbers = true, help_heading = CONNECTIONS)]
    max_response_mb: u64,
}

impl ClientOptions {
    pub fn limits(&self) -> ClientLimits {
        ClientLimits {
            connections_max: self.max_connections,
            body_bytes_max: self.max_body_mb << 20,
            response_bytes_max: self.max_response_mb << 20,
        }
    }
}
