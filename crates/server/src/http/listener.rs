//! A port: takes connections in, as many as are meant to be, and lets go of those that keep it waiting.
//!
//! It speaks HTTP/1.1 alone. Version 2 without TLS is spoken by nobody who calls us, and would be one more way to be abused.

use super::patience::Patient;
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

/// Ten times the listeners that are meant to be possible; a connection costs some kilobytes.
const CONNECTIONS_MAX: usize = 10_000;
/// To send the head of a request, from the moment the one before was answered: longer than clients pause, shorter than attackers wait.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// Each head, and what is kept of an answer until its reader takes it.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// After the answer to a body that was not read: closing at once would take the answer back.
const LINGER: Duration = Duration::from_secs(2);
/// After an error that is not one connection's, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// After everything has ended, for answers that are still being sent.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// Serves until it is asked to stop, and then until all connections are done, or everything else is.
pub async fn serve(listener: TcpListener, routes: Router, shutdown: &Shutdown) {
    raise_open_files();
    serve_at_most(CONNECTIONS_MAX, listener, routes, shutdown).await;
}

async fn serve_at_most(connections_max: usize, listener: TcpListener, routes: Router, shutdown: &Shutdown) {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.asked.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match places.clone().try_acquire_owned() {
                Ok(place) => {
                    let (routes, shutdown) = (routes.clone(), shutdown.clone());
                    connections.spawn(async move {
                        connection(stream, peer, routes, shutdown).await;
                        drop(place);
                    });
                }
                Err(_) => refuse(stream, connections_max),
            },
            Err(error) if is_of_one_connection(error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken in");
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
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    let mut leaving = pin!(shutdown.asked.cancelled());
    let done = tokio::select! {
        biased;
        done = poll_fn(|context| http.poll_without_shutdown(context)) => done,
        () = leaving.as_mut() => {
            Pin::new(&mut http).graceful_shutdown();
            poll_fn(|context| http.poll_without_shutdown(context)).await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%peer, %error, "a connection ended badly");
    }
    linger(http.into_parts().io.into_inner()).await;
}

/// Closes our side, and takes in what still comes for a moment.
async fn linger(mut stream: Patient) {
    let _ = timeout(LINGER, async {
        stream.shutdown().await?;
        let mut rest = [0; 8 << 10];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    })
    .await;
}

/// Tells one connection too many to come again, as far as that can be done without waiting for it.
fn refuse(stream: TcpStream, connections_max: usize) {
    tokio::spawn(async move {
        let problem = Problem::unavailable(format!("{connections_max} connections are open, which is as many as are taken"));
        let (head, body) = problem.into_response().into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let mut text = format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len());
        for (name, value) in &head.headers {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
        let answer = [text.as_bytes(), b"\r\n", &body].concat();
        if stream.try_write(&answer).is_ok() {
            linger(Patient::new(stream)).await;
        }
    });
}

/// As many files as the system lets us have: the usual limit is for programs that wait with `select`, which we do not.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit on open files can't be raised");
    }
}

fn is_of_one_connection(kind: ErrorKind) -> bool {
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
    async fn one_connection_too_many_is_told_to_come_again() {
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
            // Its place is free a moment after it is gone.
            while !ask(&mut TcpStream::connect(address).await.expect("a connection")).await.starts_with("HTTP/1.1 200 OK") {}
            shutdown.asked.cancel();
        };
        tokio::join!(serving, asking);
    }
}
