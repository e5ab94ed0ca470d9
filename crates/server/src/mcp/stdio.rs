//! MCP over standard input and output: one client, which started us.

use crate::edge::Edge;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub async fn serve(_edge: Arc<Edge>, _shutdown: CancellationToken) -> std::io::Result<()> {
    Ok(())
}
