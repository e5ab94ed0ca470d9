//! A connection whose client must read: one that reads nothing for too long, or slower than the minimum rate, is disconnected.

use super::pace::{Pace, WaitAllowance};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

pub struct WriteStallTimeout {
    stream: TcpStream,
    allowance: WaitAllowance,
    /// Since when the send buffer is full, and the timeout. An idle event stream sends nothing, so it does not stall.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl WriteStallTimeout {
    pub fn new(stream: TcpStream, pace: Pace) -> Self {
        Self { stream, allowance: WaitAllowance::new(pace), stalled: None }
    }

    /// Sends small responses at once.
    pub fn set_nodelay(&self) {
        // An error means that the connection has already ended.
        let _ = self.stream.set_nodelay(true);
    }

    fn check_stall(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = written {
            let waited = self.stalled.take().map(|(since, _)| since.elapsed()).unwrap_or_default();
            self.allowance.waited(waited, *result.as_ref().unwrap_or(&0));
            return Poll::Ready(result);
        }
        let (_, timeout) = self.stalled.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(self.allowance.left()))));
        ready!(timeout.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteStallTimeout {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteStallTimeout {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_stall(context, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.check_stall(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Never blocks: a TCP stream has no buffer of its own.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
