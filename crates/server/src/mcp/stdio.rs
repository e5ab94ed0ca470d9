//! MCP over standard input and output: one client, which started us.

use super::batch::Answer;
use super::dialect::Dialect;
use super::error;
use super::sessioned::Sessioned;
use super::wire::{self, Connection, QUEUED_MAX, Said, Version};
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

/// For the last answers to reach a client that is slow to read them.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Serves until the client closes our standard input, or until everything has ended that should.
pub async fn serve(edge: Arc<Edge>, shutdown: &Shutdown) -> io::Result<()> {
    let (read, incoming) = mpsc::channel(QUEUED_MAX);
    let (outgoing, written) = mpsc::channel(QUEUED_MAX);
    let (done, all_written) = oneshot::channel();
    // Threads of their own: reading and writing can block for ever, and must keep nobody from leaving.
    let (answers, version) = (outgoing.clone(), Arc::new(Version::default()));
    let agreed = version.clone();
    let gone = CancellationToken::new();
    let left = gone.clone();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        read_lines(&read, &answers, &agreed);
        left.cancel();
    })?;
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        write_lines(written);
        let _ = done.send(());
    })?;
    let connection = Dialect::new(Connection::new(incoming, outgoing, version));
    match serve_server_with_ct(Sessioned::new(edge).until(gone), connection, shutdown.over.child_token()).await {
        Ok(running) => drop(running.waiting().await),
        Err(ServerInitializeError::Cancelled | ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(io::Error::other(error)),
    }
    let _ = tokio::time::timeout(LAST_ANSWERS, all_written).await;
    Ok(())
}

fn read_lines(read: &mpsc::Sender<Said<ClientJsonRpcMessage>>, answers: &mpsc::Sender<Answer>, version: &Version) {
    let mut input = io::stdin().lock();
    loop {
        let sent = match next_line(&mut input) {
            Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) => match wire::read(Bytes::from(line), version.batches()) {
                Ok(said) => read.blocking_send(said.messages()).is_ok(),
                Err(refusal) => answers.blocking_send(Answer::One(refusal)).is_ok(),
            },
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let too_long = format!("the line is longer than {JSON_BYTES_MAX} bytes, which is the most that is taken here");
                answers.blocking_send(Answer::One(wire::refusal(error::request_too_large(too_long), None).into())).is_ok()
            }
            Err(error) => return tracing::error!(%error, "standard input can't be read"),
        };
        if !sent {
            return;
        }
    }
}

/// The next line without its end; none when there are no more. One that is too long is an error, and skipped.
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

fn write_lines(mut written: mpsc::Receiver<Answer>) {
    let mut output = io::stdout().lock();
    while let Some(message) = written.blocking_recv() {
        let line = serde_json::to_string(&message).unwrap_or_default() + "\n";
        // The client has closed our output, and will close our input too.
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_one_by_one_and_one_that_is_too_long_is_skipped() {
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
