//! The source text of a run: one copy, shared by everything that needs it, and counted as long as it exists.

use crate::scheduler::SourceCharge;
use std::ops::Deref;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct SourceText(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    text: Box<str>,
    /// None for code of the server itself.
    _charge: Option<SourceCharge>,
}

impl SourceText {
    pub(crate) fn counted(text: String, charge: SourceCharge) -> Self {
        // A text that was unescaped from JSON may have up to twice the capacity that it needs.
        Self(Arc::new(Counted { text: text.into_boxed_str(), _charge: Some(charge) }))
    }
}

impl From<String> for SourceText {
    fn from(text: String) -> Self {
        Self(Arc::new(Counted { text: text.into_boxed_str(), _charge: None }))
    }
}

impl From<&str> for SourceText {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl AsRef<str> for SourceText {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Deref for SourceText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}
