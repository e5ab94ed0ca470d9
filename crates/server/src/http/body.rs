//! Reads the whole request body before the handler runs, with limits on size, duration and total memory. JSON bodies may have
//! `JSON_BYTES_MAX`; heap files have their own limit, in `rest/heap_files.rs`.

use super::Problem;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// 16 MiB of source, with every character as a six-character escape, and 4 MiB for the rest.
pub const JSON_BYTES_MAX: usize = (16 * 6 + 4) << 20;
/// Total size of all bodies in memory. A body that does not fit is refused, and its client is asked to retry.
const ALL_KIB_MAX: usize = 1 << 20;
/// A body must arrive within this time plus its size at a minimum rate, so that a stalled or slow client does not hold a connection.
const BASE_TIMEOUT: Duration = Duration::from_secs(10);
const RATE_BYTES_PER_SEC_MIN: u64 = 16 << 10;

static ALL_KIB: Semaphore = Semaphore::const_new(ALL_KIB_MAX);

/// Middleware that replaces the body with the buffered one.
pub async fn buffered(State(bytes_max): State<usize>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match read(body, announced, bytes_max).await {
        Ok((bytes, share)) => {
            // The share is released when the response has been sent.
            parts.extensions.insert(Arc::new(share));
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn read(body: Body, announced: Option<u64>, bytes_max: usize) -> Result<(Bytes, Share), Problem> {
    let mut share = Share::default();
    if body.is_end_stream() {
        return Ok((Bytes::new(), share));
    }
    if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_long(bytes_max));
    }
    let (began, mut body, mut read) = (Instant::now(), body, Vec::new());
    loop {
        let allowed = BASE_TIMEOUT + Duration::from_secs(read.len() as u64 / RATE_BYTES_PER_SEC_MIN);
        let frame = match timeout_at(began + allowed, body.frame()).await {
            Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body arrives too slowly").closing()),
            Ok(None) => return Ok((read.into(), share)),
            Ok(Some(Err(error))) => return Err(Problem::bad_input(format!("the body can't be read: {error}")).closing()),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > bytes_max {
            return Err(too_long(bytes_max));
        }
        share.grow((read.len() + data.len()).div_ceil(1024))?;
        read.extend_from_slice(&data);
    }
}

fn too_long(bytes_max: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than the limit of {bytes_max} bytes")).closing()
}

/// A request's share of the total memory for bodies.
#[derive(Default)]
struct Share {
    permit: Option<SemaphorePermit<'static>>,
    kib: usize,
}

impl Share {
    fn grow(&mut self, kib: usize) -> Result<(), Problem> {
        let more = u32::try_from(kib.saturating_sub(self.kib)).unwrap_or(u32::MAX);
        let permit = ALL_KIB.try_acquire_many(more);
        let permit = permit.map_err(|_| Problem::busy("the memory for request bodies is used up").closing())?;
        self.kib = kib.max(self.kib);
        match &mut self.permit {
            Some(held) => held.merge(permit),
            none => *none = Some(permit),
        }
        Ok(())
    }
}
