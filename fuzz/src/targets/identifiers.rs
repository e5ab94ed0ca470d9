//! Ids, keys, names and owners: a text that is accepted is written the same way.

use heapstead_service::EntryField;
use heapstead_store::blobs::{BlobFolder, BlobName};
use heapstead_types::{EngineId, ExecutionId, HeapKey, Principal, ServerId, SessionId, SessionName};
use std::fmt::Display;
use std::str::FromStr;

pub fn run(text: &str) {
    check::<HeapKey>(text);
    check::<ExecutionId>(text);
    check::<SessionId>(text);
    check::<ServerId>(text);
    check::<Principal>(text);
    check::<BlobName>(text);
    // Digits may have been written in several ways, but mean one engine.
    if let Ok(engine) = text.parse::<EngineId>() {
        assert_eq!(engine.to_string().parse(), Ok(engine));
    }
    if let Ok(name) = text.parse::<SessionName>() {
        assert_eq!(name.as_str(), text);
        assert!(!text.chars().any(char::is_control));
    }
    if let Ok(name) = text.parse::<BlobName>() {
        assert!(!name.as_str().split('/').any(|part| part.starts_with('.') || part.is_empty()), "no way out of the folder: {text}");
    }
    check::<heapstead_context::SessionId>(text);
    // A time may have been written in several ways, but is one.
    if let Ok(time) = text.parse::<heapstead_context::Timestamp>() {
        assert_eq!(time.to_string().parse(), Ok(time));
    }
    let _ = text.parse::<BlobFolder>();
    assert!(EntryField::parse_list(text).map_or(0, |fields| fields.len()) <= 6, "each field is shown once");
}

fn check<T: FromStr + Display>(text: &str) {
    if let Ok(parsed) = text.parse::<T>() {
        assert_eq!(parsed.to_string(), text);
    }
}
