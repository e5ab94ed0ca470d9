//! Answers that are sent while they are read: lists page by page, long texts part by part (`heapstead_service::LongAnswer`). Only REST has
//! them; a message over MCP is bounded.

use super::operation::{Success, to_json};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use heapstead_service::{Caller, LIST_BYTES_MAX, ListPage, LongAnswer, PageRoom, Service, ServiceError, TextRest};
use serde_json::Value;
use tokio::sync::mpsc;

/// What is collected before it is sent.
const CHUNK_BYTES: usize = 64 << 10;

/// The text of an answer, in chunks. An error in it means that the rest can't be read; the client sees an incomplete body.
#[derive(Debug)]
pub struct AnswerStream(mpsc::Receiver<Result<Bytes, ServiceError>>);

/// Parameters of an operation that returns a list.
pub trait Paged: Clone {
    fn limit(&self) -> Option<u32>;
    fn set_page(&mut self, cursor: String, limit: Option<u32>);
}

/// Why writing an answer stops early.
enum Stop {
    ClientLeft,
    Failed(ServiceError),
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

impl AnswerStream {
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, ServiceError>> + Send + 'static {
        stream::unfold(self.0, async |mut chunks| chunks.recv().await.map(|chunk| (chunk, chunks)))
    }

    /// `write` runs as long as the answer is read.
    fn new<F>(write: impl FnOnce(Writer) -> F) -> Self
    where
        F: Future<Output = Result<(), Stop>> + Send + 'static,
    {
        // With room for one chunk, at most that and the one that is being sent are in memory.
        let (sender, chunks) = mpsc::channel(1);
        let failed = sender.clone();
        let writing = write(Writer { sender, pending: String::new(), sent_bytes: 0 });
        tokio::spawn(async move {
            if let Err(Stop::Failed(error)) = writing.await {
                tracing::warn!(%error, "an answer can't be completed");
                let _ = failed.send(Err(error)).await;
            }
        });
        Self(chunks)
    }
}

/// An answer with a long text. It is returned at once if the text is whole.
pub fn long_answer(service: &Service, caller: Caller, answer: &impl LongAnswer) -> Success {
    let body = to_json(answer);
    let Some(rest) = answer.rest().cloned() else { return Success::whole(body) };
    let (service, item) = (service.clone(), body.clone());
    let stream = AnswerStream::new(|mut writer| async move {
        writer.long_item(&service, &caller, item, rest).await?;
        writer.flush().await
    });
    Success { stream: Some(stream), ..Success::whole(body) }
}

/// A list from its first page on. It is returned at once if the first page is all of it.
pub async fn list<P, A, F>(
    service: Service,
    caller: Caller,
    mut parameters: P,
    read: impl Fn(Service, Caller, P) -> F + Send + 'static,
) -> Result<Success, ServiceError>
where
    P: Paged + Send + 'static,
    A: ListPage + Send + 'static,
    F: Future<Output = Result<A, ServiceError>> + Send + 'static,
{
    let caller = Caller { room: Some(PageRoom::streamed()), ..caller };
    let first = read(service.clone(), caller.clone(), parameters.clone()).await?;
    let body = to_json(&first);
    let (mut items, mut cursor) = first.into_items();
    let mut left = parameters.limit().map(|limit| limit as usize);
    let is_last = |items: &[A::Item], left: Option<usize>| left.is_some_and(|left| left <= items.len());
    if (cursor.is_none() || is_last(&items, left)) && items.iter().all(|item| item.rest().is_none()) {
        return Ok(Success::whole(body));
    }
    let stream = AnswerStream::new(|mut writer| async move {
        writer.text(&format!("{{\"{}\":[", A::MEMBER)).await?;
        let mut is_first = true;
        loop {
            let was_last = is_last(&items, left);
            left = left.map(|left| left.saturating_sub(items.len()));
            for item in items {
                if !std::mem::take(&mut is_first) {
                    writer.text(",").await?;
                }
                match item.rest().cloned() {
                    None => writer.text(&serde_json::to_string(&item).unwrap_or_default()).await?,
                    Some(rest) => writer.long_item(&service, &caller, to_json(&item), rest).await?,
                }
            }
            match cursor.clone().filter(|_| !was_last && writer.sent_bytes < LIST_BYTES_MAX) {
                None => break,
                Some(next) => parameters.set_page(next, left.map(|left| u32::try_from(left).unwrap_or(u32::MAX))),
            }
            (items, cursor) = read(service.clone(), caller.clone(), parameters.clone()).await?.into_items();
        }
        let end = cursor.map(|cursor| format!(",\"next_cursor\":{}", Value::from(cursor))).unwrap_or_default();
        writer.text(&format!("]{end}}}")).await?;
        writer.flush().await
    });
    Ok(Success { stream: Some(stream), ..Success::whole(body) })
}

/// Sends the text of an answer.
struct Writer {
    sender: mpsc::Sender<Result<Bytes, ServiceError>>,
    pending: String,
    sent_bytes: usize,
}

impl Writer {
    async fn text(&mut self, text: &str) -> Result<(), Stop> {
        self.pending.push_str(text);
        if self.pending.len() < CHUNK_BYTES { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        let chunk = std::mem::take(&mut self.pending);
        self.sent_bytes += chunk.len();
        self.sender.send(Ok(chunk.into())).await.map_err(|_| Stop::ClientLeft)
    }

    /// An object of which one member is long: that member comes last.
    async fn long_item(&mut self, service: &Service, caller: &Caller, mut item: Value, mut rest: TextRest) -> Result<(), Stop> {
        let member = rest.text.member();
        let begin = item.as_object_mut().and_then(|members| members.remove(member)).unwrap_or_default();
        let others = item.to_string();
        let others = others.strip_suffix('}').unwrap_or("{");
        let comma = if others == "{" { "" } else { "," };
        self.text(&format!("{others}{comma}\"{member}\":\"{}", escaped(begin.as_str().unwrap_or_default()))).await?;
        while rest.offset < rest.end {
            let part = service.stores().next_part(caller, &mut rest).await?;
            self.text(&escaped(&part)).await?;
        }
        self.text("\"}").await
    }
}

/// A text as it is between the quotation marks of JSON.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
