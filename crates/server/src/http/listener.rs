//! A port: accepts connections up to a limit, and closes those that stall.
//!
//! It speaks only HTTP/1.1. No known client uses HTTP/2 without TLS, and it would add attack surface.

use super::write_stall_timeout::WriteStallTimeout;
use super::{Problem, Shutdown};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Ten times the number of event listeners the server is meant for. A connection costs a few kilobytes.
const CONNECTIONS_MAX: usize = 10_000;
/// Time within which the head of a request must arrive, counted from the previous response. Also limits how long an idle connection stays open.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a head, and of the write buffer of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Time to keep reading after the response to a request whose body was not read: the reset of an immediate close could discard the response.
const LINGER: Duration = Duration::from_secs(2);
/// Pause after an error that does not concern one connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for responses that are still being sent after everything else has ended.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// Serves until shutdown is requested, and then until all connections are done or everything else has ended.
pub async fn serve(listener: TcpListener, routes: Router, shutdown: &Shutdown) {
    raise_open_files();
    serve_at_most(CONNECTIONS_MAX, listener, routes, shutdown).await;
}

async fn serve_at_most(connections_max: usize, listener: TcpListener, routes: Router, shutdown: &Shutdown) {
    let connections = TaskTracker::new();
    let slots = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.requested.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match slots.clone().try_acquire_owned() {
                Ok(slot) => {
                    let (routes, shutdown) = (routes.clone(), shutdown.clone());
                    connections.spawn(async move {
                        connection(stream, peer, routes, shutdown).await;
                        drop(slot);
                    });
                }
                Err(_) => refuse(stream, connections_max),
            },
            Err(error) if concerns_one_connection(error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "can't accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = async { shutdown.over.cancelled().await; sleep(DRAIN_MAX).await } => {}
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, routes: Router, shutdown: Shutdown) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        Box::pin(routes.clone().oneshot(request))
    });
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(WriteStallTimeout::new(stream)), service);
    let mut requested = pin!(shutdown.requested.cancelled());
    let done = tokio::select! {
        biased;
        done = poll_fn(|context| http.poll_without_shutdown(context)) => done,
        () = requested.as_mut() => {
            Pin::new(&mut http).graceful_shutdown();
            poll_fn(|context| http.poll_without_shutdown(context)).await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%peer, %error, "a connection ended with an error");
    }
    linger(http.into_parts().io.into_inner()).await;
}

/// Closes the write side, then reads and discards what still arrives, for at most `LINGER`.
async fn linger(mut stream: WriteStallTimeout) {
    let _ = timeout(LINGER, async {
        stream.shutdown().await?;
        let mut rest = [0; 8 << 10];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    })
    .await;
}

/// Tells a client over the connection limit to retry, without waiting for it.
fn refuse(stream: TcpStream, connections_max: usize) {
    tokio::spawn(async move {
        let problem = Problem::unavailable(format!("{connections_max} connections are open, which is the maximum"));
        let (head, body) = problem.into_response().into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let mut text = format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len());
        for (name, value) in &head.headers {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
        let answer = [text.as_bytes(), b"\r\n", &body].concat();
        if stream.try_write(&answer).is_ok() {
            linger(WriteStallTimeout::new(stream)).await;
        }
    });
}

/// Raises the limit of open files to the system's maximum. The usual limit exists for programs that use `select`, which we do not.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "can't raise the limit on open files");
    }
}

fn concerns_one_connection(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_util::sync::CancellationToken;

    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..count]).into_owned()
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_is_told_to_retry() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shutdown = Shutdown::new(CancellationToken::new());
        let routes = Router::new().route("/", axum::routing::get(async || "hello"));
        let serving = serve_at_most(1, listener, routes, &shutdown);
        let asking = async {
            let mut first = TcpStream::connect(address).await.expect("a connection");
            assert!(ask(&mut first).await.starts_with("HTTP/1.1 200 OK"));
            let mut second = TcpStream::connect(address).await.expect("a connection");
            let answer = ask(&mut second).await;
            assert!(
                answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 5") && answer.contains("1 connections are open"),
                "{answer}"
            );
            drop(first);
            // The slot is released shortly after the connection has closed.
            while !ask(&mut TcpStream::connect(address).await.expect("a connection")).await.starts_with("HTTP/1.1 200 OK") {}
            shutdown.requested.cancel();
        };
        tokio::join!(serving, asking);
    }
}
