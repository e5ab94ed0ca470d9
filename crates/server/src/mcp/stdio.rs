//! MCP over standard input and output, with the client that started this process.

use super::batch::Outgoing;
use super::dialect::Dialect;
use super::error;
use super::json_rpc::{self, ChannelTransport, QUEUED_MAX, Received, Version};
use super::session_handler::SessionHandler;
use crate::edge::Edge;
use crate::http::{JSON_BYTES_MAX, Shutdown};
use bytes::Bytes;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How long to wait for a slow client to read the last responses.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until the client closes standard input, or until shutdown.
pub async fn serve(edge: Arc<Edge>, shutdown: &Shutdown) -> io::Result<()> {
    let (read, incoming) = mpsc::channel(QUEUED_MAX);
    let (outgoing, written) = mpsc::channel(QUEUED_MAX);
    let (done, all_written) = oneshot::channel();
    // Separate threads: blocking reads and writes must not prevent the exit of the process.
    let (responses, version) = (outgoing.clone(), Arc::new(Version::default()));
    let negotiated = version.clone();
    let disconnected = CancellationToken::new();
    let on_end_of_input = disconnected.clone();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        read_lines(&read, &responses, &negotiated);
        on_end_of_input.cancel();
    })?;
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        write_lines(written);
        let _ = done.send(());
    })?;
    let connection = Dialect::new(ChannelTransport::new(incoming, outgoing, version));
    match serve_server_with_ct(SessionHandler::new(edge).with_disconnect_token(disconnected), connection, shutdown.over.child_token()).await
    {
        Ok(running) => drop(running.waiting().await),
        Err(ServerInitializeError::Cancelled | ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(io::Error::other(error)),
    }
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, all_written).await;
    Ok(())
}

fn read_lines(read: &mpsc::Sender<Received<ClientJsonRpcMessage>>, responses: &mpsc::Sender<Outgoing>, version: &Version) {
    let mut input = io::stdin().lock();
    loop {
        let sent = match next_line(&mut input) {
            Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) => match json_rpc::read(Bytes::from(line), version.batches()) {
                Ok(received) => read.blocking_send(received.messages()).is_ok(),
                Err(error) => responses.blocking_send(Outgoing::Single(error)).is_ok(),
            },
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let too_long = format!("the line exceeds the maximum of {JSON_BYTES_MAX} bytes");
                responses.blocking_send(Outgoing::Single(json_rpc::error_message(error::request_too_large(too_long), None).into())).is_ok()
            }
            Err(error) => return tracing::error!(%error, "standard input can't be read"),
        };
        if !sent {
            return;
        }
    }
}

/// The next line without its line break; `None` at the end of input. A line that is too long is skipped and returned as an error.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.take(JSON_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > JSON_BYTES_MAX {
        input.skip_until(b'\n')?;
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(line))
}

fn write_lines(mut written: mpsc::Receiver<Outgoing>) {
    let mut output = io::stdout().lock();
    while let Some(message) = written.blocking_recv() {
        let line = serde_json::to_string(&message).unwrap_or_default() + "\n";
        // The client has closed standard output. It will close standard input too.
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let long = vec![b'x'; JSON_BYTES_MAX + 1];
        let text = [b"one\n\n".as_slice(), &long, b"\ntwo"].concat();
        let mut input = text.as_slice();
        let mut next = || next_line(&mut input).map_err(|error| error.kind());
        assert_eq!(next(), Ok(Some(b"one".to_vec())));
        assert_eq!(next(), Ok(Some(Vec::new())));
        assert_eq!(next(), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(next(), Ok(Some(b"two".to_vec())));
        assert_eq!(next(), Ok(None));
    }
}
