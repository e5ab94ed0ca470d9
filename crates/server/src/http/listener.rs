//! A port: accepts connections up to a limit, of which one address gets a part, and closes those that stall.
//!
//! It speaks only HTTP/1.1. No known client uses HTTP/2 without TLS, and it would add attack surface.

use super::connection_place::{ConnectionPlace, ConnectionPlaces};
use super::pace::{Pace, READ_PACE};
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
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Time within which the head of a request must arrive, counted from the previous response. Also limits how long an idle connection stays open.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a head, and of the write buffer of a response.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Time to keep reading after the response to a request whose body was not read: the reset of an immediate close could discard the response.
const LINGER: Duration = Duration::from_secs(2);
/// Refused connections that are given time to read why. More are closed at once.
const REFUSALS_MAX: usize = 64;
/// Pause after an error that does not concern one connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for responses that are still being sent after everything else has ended.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// The bounds of a port.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    connections_max: u64,
    read_pace: Pace,
}

/// Serves until shutdown is requested, and then until all connections are done or everything else has ended.
pub async fn serve(listener: TcpListener, routes: Router, connections_max: u64, shutdown: &Shutdown) {
    // Databases, heaps and workers need files too.
    let connections_max = connections_max.min(raise_open_files() / 2);
    serve_within(Bounds { connections_max, read_pace: READ_PACE }, listener, routes, shutdown).await;
}

async fn serve_within(bounds: Bounds, listener: TcpListener, routes: Router, shutdown: &Shutdown) {
    let connections = TaskTracker::new();
    // Who the caller is, is not known before its request is read.
    let (places, refusals) = (ConnectionPlaces::new(bounds.connections_max), Arc::new(Semaphore::new(REFUSALS_MAX)));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.requested.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match places.take(peer.ip()) {
                Ok(place) => {
                    let (routes, shutdown) = (routes.clone(), shutdown.clone());
                    let stream = WriteStallTimeout::new(stream, bounds.read_pace);
                    connections.spawn(async move {
                        tokio::select! {
                            () = connection(stream, peer, place.clone(), routes, shutdown) => {}
                            () = place.closed() => {}
                        }
                    });
                }
                Err(reason) => {
                    let Ok(refusal) = refusals.clone().try_acquire_owned() else { continue };
                    let stream = WriteStallTimeout::new(stream, bounds.read_pace);
                    tokio::spawn(async move {
                        refuse(stream, reason).await;
                        drop(refusal);
                    });
                }
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

async fn connection(stream: WriteStallTimeout, peer: SocketAddr, place: ConnectionPlace, routes: Router, shutdown: Shutdown) {
    stream.set_nodelay();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(place.clone());
        Box::pin(routes.clone().oneshot(request))
    });
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
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
async fn refuse(mut stream: WriteStallTimeout, reason: String) {
    let (head, body) = Problem::unavailable(reason).into_response().into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut text = format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len());
    for (name, value) in &head.headers {
        text += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    let answer = [text.as_bytes(), b"\r\n", &body].concat();
    if timeout(LINGER, stream.write_all(&answer)).await.is_ok() {
        linger(stream).await;
    }
}

/// Raises the limit of open files to the system's maximum, and returns it. The usual limit exists for programs that use `select`, which we
/// do not.
fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, "can't raise the limit on open files");
            limit.current.unwrap_or(u64::MAX)
        }
    }
}

fn concerns_one_connection(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Extension;
    use heapstead_types::BudgetHolder;
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::sync::oneshot;
    use tokio_util::sync::CancellationToken;

    const UNLIMITED: Bounds = Bounds { connections_max: 100, read_pace: READ_PACE };

    /// Serves while a client asks.
    async fn serving<F: Future<Output = ()>>(bounds: Bounds, routes: Router, ask: impl FnOnce(SocketAddr) -> F) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let asking = ask(listener.local_addr().expect("an address"));
        let shutdown = Shutdown::new(CancellationToken::new());
        tokio::select! {
            () = serve_within(bounds, listener, routes, &shutdown) => unreachable!("it serves until shutdown"),
            () = asking => {}
        }
    }

    /// A request counts as authenticated for its address.
    async fn greet(
        ConnectInfo(peer): ConnectInfo<SocketAddr>,
        Extension(place): Extension<ConnectionPlace>,
    ) -> Result<&'static str, Problem> {
        place.count_for(&BudgetHolder::network(peer.ip())).map(|()| "hello")
    }

    fn hello() -> Router {
        Router::new().route("/", axum::routing::get(greet))
    }

    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..count]).into_owned()
    }

    async fn connect_from(address: SocketAddr, from: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::new(from.parse().expect("an address"), 0)).expect("bound");
        socket.connect(address).await.expect("a connection")
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_is_told_to_retry() {
        serving(Bounds { connections_max: 1, ..UNLIMITED }, hello(), async |address| {
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
        })
        .await;
    }

    /// One address could once open all connections, and nobody else could connect.
    #[tokio::test]
    async fn one_address_can_not_open_all_connections() {
        serving(Bounds { connections_max: 8, ..UNLIMITED }, hello(), async |address| {
            let mut open = Vec::new();
            let refusal = loop {
                let mut stream = TcpStream::connect(address).await.expect("a connection");
                match ask(&mut stream).await {
                    answer if answer.starts_with("HTTP/1.1 200 OK") => open.push(stream),
                    refusal => break refusal,
                }
            };
            assert_eq!(open.len(), 4);
            assert!(refusal.starts_with("HTTP/1.1 503 ") && refusal.contains("4 connections from your address are open"), "{refusal}");
            assert!(ask(&mut connect_from(address, "127.0.0.2").await).await.starts_with("HTTP/1.1 200 OK"));
        })
        .await;
    }

    /// Found by an audit: 200 connections that sent nothing, opened again when they were closed, kept out every tenant at the same address.
    #[tokio::test]
    async fn connections_that_send_nothing_keep_nobody_out() {
        serving(Bounds { connections_max: 8, ..UNLIMITED }, hello(), async |address| {
            let mut served = TcpStream::connect(address).await.expect("a connection");
            assert!(ask(&mut served).await.starts_with("HTTP/1.1 200 OK"));
            let mut silent = Vec::new();
            for _ in 0..20 {
                silent.push(TcpStream::connect(address).await.expect("a connection"));
            }
            let mut late = TcpStream::connect(address).await.expect("a connection");
            assert!(ask(&mut late).await.starts_with("HTTP/1.1 200 OK"));
            assert!(ask(&mut served).await.starts_with("HTTP/1.1 200 OK"), "it stays open");
            let closed = timeout(Duration::from_secs(10), silent[0].read(&mut [0])).await.expect("the oldest is closed");
            assert!(matches!(closed, Ok(0) | Err(_)));
        })
        .await;
    }

    /// The size of a response that does not fit into the buffers of the sockets.
    const LARGE: usize = 24 << 20;

    /// A response that reports when the server no longer holds it.
    struct LargeResponse(Vec<u8>, Option<oneshot::Sender<()>>);

    impl AsRef<[u8]> for LargeResponse {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for LargeResponse {
        fn drop(&mut self) {
            let _ = self.1.take().expect("once").send(());
        }
    }

    /// Reads until the end, in small parts with pauses.
    async fn read(address: SocketAddr, part: usize, pause: Duration) -> usize {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(16 << 10).expect("a small buffer");
        let mut stream = socket.connect(address).await.expect("a connection");
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.expect("sent");
        let (mut buffer, mut total) = (vec![0; part], 0);
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            total += count;
            sleep(pause).await;
        }
        total
    }

    /// A reader that takes a few bytes before every timeout once kept its response, and the place that it holds, for ever.
    #[tokio::test]
    async fn a_client_that_reads_slower_than_the_rate_is_disconnected() {
        let read_pace = Pace { stall_max: Duration::from_secs(1), bytes_per_sec_min: 4 << 20 };
        let (released, mut releases) = tokio::sync::mpsc::unbounded_channel();
        let large = Router::new().route(
            "/",
            axum::routing::get(move || async move {
                let (sender, receiver) = oneshot::channel();
                released.send(receiver).expect("the test waits");
                Body::from(bytes::Bytes::from_owner(LargeResponse(vec![b'x'; LARGE], Some(sender))))
            }),
        );
        serving(Bounds { read_pace, ..UNLIMITED }, large, async |address| {
            assert!(timeout(Duration::from_secs(60), read(address, 1 << 20, Duration::ZERO)).await.expect("in time") > LARGE);
            releases.recv().await.expect("a response").await.expect("it was sent");
            // About 100 KiB/s, without a pause as long as the timeout.
            let slow = read(address, 1 << 10, Duration::from_millis(10));
            let is_released = async { releases.recv().await.expect("a response").await.expect("the server drops it") };
            tokio::select! {
                total = slow => assert!(total < LARGE, "it received all of it"),
                released = timeout(Duration::from_secs(60), is_released) => released.expect("in time"),
            }
        })
        .await;
    }
}
