//! Reads request bodies, with limits on size, rate and memory. JSON bodies are read whole before the handler runs and may have
//! `JSON_BYTES_MAX`; heap files have their own limit, in `rest/heap_files.rs`.

use super::pace::{Pace, SEND_PACE, WaitAllowance};
use super::{Problem, budget_holder};
use crate::edge::Edge;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use heapstead_service::{Budget, Exhausted, Portion};
use http_body_util::BodyExt;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

/// 16 MiB of source, with every character as a six-character escape, and 4 MiB for the rest.
pub const JSON_BYTES_MAX: usize = (16 * 6 + 4) << 20;

/// The limits of the bodies of a route.
#[derive(Clone)]
pub struct BodyLimits {
    bytes_max: usize,
    memory: Arc<Budget>,
    pace: Pace,
}

impl BodyLimits {
    pub fn new(edge: &Edge, bytes_max: usize) -> Self {
        Self { bytes_max, memory: edge.budgets.bodies.clone(), pace: SEND_PACE }
    }
}

/// Middleware that replaces the body with the buffered one.
pub async fn buffered(State(limits): State<BodyLimits>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let read = async {
        let memory = limits.memory.portion(budget_holder(&parts.extensions)?);
        read_whole(IncomingBody::new(body, &parts.headers, limits.bytes_max, limits.pace)?, memory).await
    };
    match read.await {
        Ok((bytes, memory)) => {
            // The memory is released when the request has been handled, or its response has been sent.
            parts.extensions.insert(Arc::new(memory));
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn read_whole(mut body: IncomingBody, mut memory: Portion) -> Result<(Bytes, Portion), Problem> {
    let mut read = Vec::new();
    while let Some(data) = body.next().await? {
        memory.resize((read.len() + data.len()) as u64).map_err(no_memory)?;
        read.extend_from_slice(&data);
    }
    Ok((read.into(), memory))
}

fn no_memory(exhausted: Exhausted) -> Problem {
    Problem::busy(match exhausted {
        Exhausted::ByHolder => "your other requests use as much memory for bodies as is left for other owners: retry when they are done",
        Exhausted::ByAll => "the memory for request bodies is used up",
    })
    .closing()
}

/// A body that must arrive at a minimum rate and may not exceed a size.
pub struct IncomingBody {
    body: Body,
    bytes_left: usize,
    bytes_max: usize,
    allowance: WaitAllowance,
}

impl IncomingBody {
    /// Refuses a body whose announced length is too long.
    pub fn new(body: Body, headers: &HeaderMap, bytes_max: usize, pace: Pace) -> Result<Self, Problem> {
        let announced: Option<u64> = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        match announced {
            Some(bytes) if bytes > bytes_max as u64 && !body.is_end_stream() => Err(too_long(bytes_max)),
            _ => Ok(Self { body, bytes_left: bytes_max, bytes_max, allowance: WaitAllowance::new(pace) }),
        }
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            if self.body.is_end_stream() {
                return Ok(None);
            }
            let began = Instant::now();
            let frame = match timeout(self.allowance.left(), self.body.frame()).await {
                Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, too_slow()).closing()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(Problem::bad_input(format!("the body can't be read: {error}")).closing()),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            self.allowance.waited(began.elapsed(), data.len());
            self.bytes_left = self.bytes_left.checked_sub(data.len()).ok_or_else(|| too_long(self.bytes_max))?;
            return Ok(Some(data));
        }
    }
}

fn too_long(bytes_max: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than the limit of {bytes_max} bytes")).closing()
}

fn too_slow() -> String {
    let Pace { stall_max, bytes_per_sec_min } = SEND_PACE;
    format!(
        "the body arrives too slowly: at least {} KiB/s are required, and no pause may be longer than {} s",
        bytes_per_sec_min >> 10,
        stall_max.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use heapstead_types::BudgetHolder;
    use std::convert::Infallible;
    use std::time::Duration;

    const PACE: Pace = Pace { stall_max: Duration::from_millis(200), bytes_per_sec_min: 1 << 20 };
    const KIB: usize = 1 << 10;

    fn holder(number: u8) -> BudgetHolder {
        BudgetHolder::network([10, 0, 0, number].into())
    }

    /// A body of parts of this size with a pause before each; after the last one it ends, or stalls for ever.
    fn body(part: usize, count: usize, pause: Duration, ends: bool) -> Body {
        Body::from_stream(stream::unfold(0, move |number| async move {
            match number {
                number if number < count => tokio::time::sleep(pause).await,
                _ if ends => return None,
                _ => std::future::pending().await,
            }
            Some((Ok::<_, Infallible>(vec![b'x'; part]), number + 1))
        }))
    }

    async fn read(body: Body, budget: &Arc<Budget>, number: u8) -> Result<(usize, Portion), String> {
        let body = IncomingBody::new(body, &HeaderMap::new(), 8 << 20, PACE).map_err(|problem| format!("{problem:?}"))?;
        let read = tokio::time::timeout(Duration::from_secs(20), read_whole(body, budget.portion(holder(number)))).await.expect("in time");
        read.map(|(bytes, memory)| (bytes.len(), memory)).map_err(|problem| format!("{problem:?}"))
    }

    /// Bytes that came fast once extended the deadline of the rest: after 511 MiB a client could stall for nine hours.
    #[tokio::test]
    async fn a_body_must_arrive_at_the_minimum_rate_to_its_end() {
        let budget = Budget::new(1 << 30);
        let began = Instant::now();
        for (what, body) in [
            ("nothing", body(KIB, 0, Duration::ZERO, false)),
            ("a stall after a fast beginning", body(KIB << 10, 4, Duration::ZERO, false)),
            ("50 KiB/s", body(KIB, 10_000, Duration::from_millis(20), true)),
        ] {
            let refusal = read(body, &budget, 1).await.expect_err(what);
            assert!(refusal.contains("408") && refusal.contains("too slowly"), "{what}: {refusal}");
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert_eq!(budget.taken_by(&holder(1)), 0, "the memory is released");
        let steady = read(body(256 * KIB, 8, Duration::from_millis(20), true), &budget, 1).await;
        assert_eq!(steady.map(|(bytes, _)| bytes), Ok(8 * 256 * KIB));
        let refusal = read(body(KIB << 10, 9, Duration::ZERO, true), &budget, 1).await.expect_err("too long");
        assert!(refusal.contains("413"), "{refusal}");
    }

    /// Two uploads could once take all the memory for bodies, and everybody else got 429.
    #[tokio::test]
    async fn one_owner_can_not_take_all_memory_for_bodies() {
        let budget = Budget::new(4 << 20);
        let (_, held) = read(body(512 * KIB, 4, Duration::ZERO, true), &budget, 1).await.expect("half of it");
        let refusal = read(body(KIB, 1, Duration::ZERO, true), &budget, 1).await.expect_err("more");
        assert!(refusal.contains("429") && refusal.contains("your other requests"), "{refusal}");
        let (_, of_other) = read(body(KIB, 512, Duration::ZERO, true), &budget, 2).await.expect("room for another owner");
        drop(held);
        read(body(KIB, 1, Duration::ZERO, true), &budget, 1).await.expect("released with the request");
        assert_eq!((budget.taken_by(&holder(1)), budget.taken_by(&holder(2))), (0, of_other.amount()));
    }
}
