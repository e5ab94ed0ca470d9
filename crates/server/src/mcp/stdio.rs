//! MCP over standard input and output, with the client that started this process.

use super::batch::Outgoing;
use super::dialect::Dialect;
use super::error;
use super::json_rpc::{self, ChannelTransport, ErrorMessage, QUEUED_MAX, Received, Version};
use super::pending_place::PendingPlace;
use super::response_room::Queued;
use super::session_handler::SessionHandler;
use crate::edge::Edge;
use crate::http::{JSON_BYTES_MAX, Shutdown};
use bytes::Bytes;
use heapstead_types::{BudgetHolder, Principal};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage};
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
    let (negotiated, counting) = (version.clone(), edge.clone());
    let disconnected = CancellationToken::new();
    let on_end_of_input = disconnected.clone();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        read_lines(&counting, &read, &responses, &negotiated);
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

fn read_lines(edge: &Edge, read: &mpsc::Sender<Received<ClientJsonRpcMessage>>, responses: &mpsc::Sender<Queued>, version: &Version) {
    let mut input = io::stdin().lock();
    loop {
        let sent = match next_line(&mut input) {
            Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) => {
                match json_rpc::read(Bytes::from(line), version.batches()).and_then(|received| counted(edge, received.messages())) {
                    Ok(received) => read.blocking_send(received).is_ok(),
                    Err(error) => responses.blocking_send(Queued::new(Outgoing::Single(error), Vec::new())).is_ok(),
                }
            }
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let too_long = format!("the line exceeds the maximum of {JSON_BYTES_MAX} bytes");
                let error = json_rpc::error_message(error::request_too_large(too_long), None);
                responses.blocking_send(Queued::new(Outgoing::Single(error.into()), Vec::new())).is_ok()
            }
            Err(error) => return tracing::error!(%error, "standard input can't be read"),
        };
        if !sent {
            return;
        }
    }
}

/// The message or batch, whose requests have places among the pending ones. Items of a batch that are refused are errors.
fn counted(edge: &Edge, received: Received<ClientJsonRpcMessage>) -> Result<Received<ClientJsonRpcMessage>, ErrorMessage> {
    let count = |mut message: ClientJsonRpcMessage| {
        if let JsonRpcMessage::Request(request) = &mut message {
            let place = PendingPlace::take(edge, BudgetHolder::from(&Principal::local()));
            let place = place.map_err(|refused| json_rpc::error_message(error::from_service(refused), Some(request.id.clone())))?;
            request.request.extensions_mut().insert(place);
        }
        Ok(message)
    };
    match received {
        Received::Single(message) => count(message).map(Received::Single),
        Received::Batch(items) => Ok(Received::Batch(items.into_iter().map(|item| item.and_then(count)).collect())),
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

fn write_lines(mut written: mpsc::Receiver<Queued>) {
    let mut output = io::stdout().lock();
    while let Some(queued) = written.blocking_recv() {
        let line = serde_json::to_string(&queued.message).unwrap_or_default() + "\n";
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
