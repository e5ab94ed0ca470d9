//! The body of a response: it counts as long as it is in memory, and holds the place of its request until it is sent. What counts is
//! attached to the bytes themselves: hyper drops a body as soon as it has taken its last part, and the bytes only when the client has read them.

use super::Problem;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use heapstead_service::{Exhausted, Portion};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// Shorter responses, and shorter parts of a streamed one, are not counted: the place of a request has memory for them.
pub const SHORT_RESPONSE_BYTES: u64 = 32 << 10;

pub struct SentBody {
    body: Body,
    place: Arc<Portion>,
    /// Reserved for what is still to be sent, as far as its length is known. Each part takes its share with it.
    room: Portion,
    part_rooms: PartRooms,
}

/// The rooms of a part that its stream has counted before, while the part waited in a queue. The stream puts them here when it yields the part.
/// Counting it again could fail, because others may have taken what was released in between.
#[derive(Clone, Default)]
pub struct PartRooms(Arc<Mutex<Vec<Portion>>>);

impl PartRooms {
    pub fn put(&self, rooms: Vec<Portion>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rooms;
    }

    fn take(&self) -> Vec<Portion> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A part of a response, until it is sent.
struct SentPart {
    bytes: Bytes,
    _rooms: Vec<Portion>,
    _place: Arc<Portion>,
}

impl AsRef<[u8]> for SentPart {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl SentBody {
    /// The response with a counted body, or 429 if it has no room: its client, or its owner, has not read others.
    pub fn of(response: Response, place: Arc<Portion>, mut room: Portion) -> Response {
        let whole = response.body().size_hint().exact().filter(|bytes| *bytes > SHORT_RESPONSE_BYTES);
        match whole.map_or(Ok(()), |bytes| room.resize(bytes)) {
            Ok(()) => {
                let part_rooms = response.extensions().get::<PartRooms>().cloned().unwrap_or_default();
                response.map(|body| Body::new(Self { body, place, room, part_rooms }))
            }
            Err(exhausted) => Problem::busy(no_room(exhausted)).into_response(),
        }
    }

    /// The part with its room, of which a streamed body has none yet.
    fn counted(&mut self, bytes: Bytes) -> Result<Bytes, Exhausted> {
        let mut rooms = self.part_rooms.take();
        if rooms.is_empty() {
            let long = Some(bytes.len() as u64).filter(|length| *length > SHORT_RESPONSE_BYTES).unwrap_or_default();
            if self.room.amount() < long {
                self.room.resize(long)?;
            }
            rooms.push(self.room.split(long));
        }
        Ok(Bytes::from_owner(SentPart { bytes, _rooms: rooms, _place: self.place.clone() }))
    }
}

/// Why a long response was not sent.
pub fn no_room(exhausted: Exhausted) -> &'static str {
    match exhausted {
        Exhausted::ByHolder => {
            "the request was carried out, but its response is long, and your other responses take as much memory as is left for other owners: read those first, then ask again"
        }
        Exhausted::ByAll => {
            "the request was carried out, but its response is long, and the memory for responses is used up: ask again later"
        }
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| match frame?.into_data() {
            Ok(bytes) => self.counted(bytes).map(Frame::data).map_err(|exhausted| axum::Error::new(no_room(exhausted))),
            Err(frame) => Ok(frame),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};
    use heapstead_service::Budget;
    use heapstead_types::BudgetHolder;
    use http_body_util::BodyExt;
    use std::convert::Infallible;

    const LONG: usize = 100 << 10;

    fn sent(budget: &Arc<Budget>, number: u8, body: Body) -> Response {
        let holder = BudgetHolder::network([10, 0, 0, number].into());
        let place = Arc::new(Budget::new(10).portion(holder.clone()));
        SentBody::of(Response::new(body), place, budget.portion(holder))
    }

    #[tokio::test]
    async fn a_long_response_counts_until_it_is_sent_and_is_refused_if_there_is_no_room() {
        let budget = Budget::new(4 * LONG as u64);
        let long = || Body::from(vec![b'x'; LONG]);
        let held = [sent(&budget, 1, long()), sent(&budget, 1, long())];
        assert!(held.iter().all(|response| response.status() == 200));
        assert_eq!(sent(&budget, 1, long()).status(), 429);
        assert_eq!(sent(&budget, 1, Body::from("short")).status(), 200);
        assert_eq!(sent(&budget, 2, long()).status(), 200, "another owner has room");
        for response in held {
            assert_eq!(read(response).await.expect("the body"), LONG);
        }
        assert_eq!(sent(&budget, 1, long()).status(), 200, "what was sent counts no longer");
    }

    /// Reads a body part by part, each of which is sent before the next one.
    async fn read(response: Response) -> Result<usize, axum::Error> {
        let (mut body, mut total) = (response.into_body(), 0);
        while let Some(frame) = body.frame().await {
            total += frame?.into_data().map_or(0, |data| data.len());
        }
        Ok(total)
    }

    #[tokio::test]
    async fn one_part_of_a_streamed_response_counts_at_a_time() {
        let budget = Budget::new(4 * LONG as u64);
        let streamed = || Body::from_stream(stream::iter((0..50).map(|_| Ok::<_, Infallible>(vec![b'x'; LONG]))));
        assert_eq!(read(sent(&budget, 1, streamed())).await.expect("the body"), 50 * LONG);
        let _held = [sent(&budget, 1, Body::from(vec![b'x'; LONG])), sent(&budget, 1, Body::from(vec![b'x'; LONG]))];
        let broken_off = read(sent(&budget, 1, streamed())).await.expect_err("no room");
        assert!(broken_off.to_string().contains("read those first"), "{broken_off}");
    }

    /// Regression: a message counted while it waited, and again when it was sent. If others took its room in between, the stream broke off.
    #[tokio::test]
    async fn a_part_that_was_counted_in_a_queue_is_not_counted_again() {
        let budget = Budget::new(4 * LONG as u64);
        let holder = BudgetHolder::network([10, 0, 0, 1].into());
        let queued = [budget.take(holder.clone(), LONG as u64), budget.take(holder.clone(), LONG as u64)].map(|room| room.expect("room"));
        let rooms = PartRooms::default();
        let parts = stream::iter(queued).map({
            let rooms = rooms.clone();
            move |room| {
                rooms.put(vec![room]);
                Ok::<_, Infallible>(vec![b'x'; LONG])
            }
        });
        let mut response = Response::new(Body::from_stream(parts));
        response.extensions_mut().insert(rooms);
        let place = Arc::new(Budget::new(10).portion(holder.clone()));
        let mut body = SentBody::of(response, place, budget.portion(holder.clone())).into_body();
        let first = body.frame().await.expect("a part").expect("no error");
        assert_eq!(budget.taken_by(&holder), 2 * LONG as u64, "one is being sent, one is queued");
        drop(first);
        let second = body.frame().await.expect("a part").expect("no error");
        assert_eq!(budget.taken_by(&holder), LONG as u64);
        drop(second);
        assert_eq!(budget.taken_by(&holder), 0);
    }

    /// Regression: what was taken from a body counted no longer, although hyper held it until the client read it. 60 clients that read nothing
    /// took 1.5 GB, of a budget of 256 MB.
    #[tokio::test]
    async fn a_part_counts_until_its_bytes_are_dropped() {
        let budget = Budget::new(4 * LONG as u64);
        let holder = BudgetHolder::network([10, 0, 0, 1].into());
        for body in [Body::from(vec![b'x'; LONG]), Body::from_stream(stream::iter([Ok::<_, Infallible>(vec![b'x'; LONG])]))] {
            let mut body = sent(&budget, 1, body).into_body();
            let data = body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
            drop(body);
            assert_eq!((data.len(), budget.taken_by(&holder)), (LONG, LONG as u64));
            drop(data);
            assert_eq!(budget.taken_by(&holder), 0);
        }
    }
}
