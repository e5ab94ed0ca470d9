//! Long answers that are sent while they are read: a list page by page, a long text part by part. A slow reader costs one page or part of
//! memory, however long the answer is.

use crate::{Caller, ServiceError, Stores};
use heapstead_store::outputs::PageRequest;
use heapstead_store::records::TextPart;
use heapstead_types::{ExecutionId, SessionName};
use serde::Serialize;
use std::time::Duration;

/// How much of a long text is read at once.
pub const TEXT_PART_BYTES: usize = 256 << 10;
/// A list that is longer ends after the page that exceeds this, with a cursor for the rest.
pub const LIST_BYTES_MAX: usize = 32 << 20;

/// The rest of a text of which an answer holds the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRest {
    pub text: LongText,
    /// Where the rest begins, in bytes.
    pub offset: u64,
    pub end: u64,
}

/// A text that may be megabytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LongText {
    Result(ExecutionId),
    Output(ExecutionId),
    Code { session: SessionName, index: u64 },
}

impl LongText {
    /// The member of an answer that holds it.
    pub fn member(&self) -> &'static str {
        match self {
            Self::Result(_) => "result",
            Self::Output(_) => "data",
            Self::Code { .. } => "code",
        }
    }
}

/// An answer, or an item of one, that may hold only the beginning of a long text.
pub trait LongAnswer: Serialize {
    /// What is left to read; none if it is whole.
    fn rest(&self) -> Option<&TextRest> {
        None
    }
}

/// One page of a list.
pub trait ListPage: Serialize {
    /// The member that holds the items.
    const MEMBER: &'static str;
    type Item: LongAnswer + Send + 'static;

    fn into_items(self) -> (Vec<Self::Item>, Option<String>);
}

impl Stores {
    /// The next part of a text; the rest then begins after it. Fails if the text was deleted meanwhile.
    pub async fn next_part(&self, caller: &Caller, rest: &mut TextRest) -> Result<String, ServiceError> {
        let left = usize::try_from(rest.end.saturating_sub(rest.offset)).unwrap_or(usize::MAX);
        let part = TextPart { offset: rest.offset, bytes_max: left.min(TEXT_PART_BYTES) };
        let read = match &rest.text {
            LongText::Result(id) => self.records.result_part(&caller.principal, id, part).await?,
            LongText::Code { session, index } => self.records.logged_code(&caller.principal, session, *index, part).await?,
            LongText::Output(id) => {
                let page = PageRequest::Bytes { offset: part.offset, limit: part.bytes_max as u64 };
                let all = Caller { principal: caller.principal.clone(), ..Caller::default() };
                Some(self.executions().output(&all, id.as_str(), page, Duration::ZERO).await?.data)
            }
        };
        match read {
            Some(text) if !text.is_empty() => {
                rest.offset += text.len() as u64;
                Ok(text)
            }
            _ => Err(ServiceError::Unavailable("the text was deleted while it was read".into())),
        }
    }
}
