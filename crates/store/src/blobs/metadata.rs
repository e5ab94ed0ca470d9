//! What is stored with a blob beside its bytes: a few short texts by key.

use std::collections::BTreeMap;

/// Object stores take 2 KB in all; a value is a line of text.
const VALUE_BYTES_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobMetadata(BTreeMap<String, String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the value of `{key}` is not 1 to {VALUE_BYTES_MAX} printable ASCII characters")]
pub struct InvalidMetadata {
    key: &'static str,
}

impl BlobMetadata {
    /// Adds a value. Keys are lowercase, and values printable ASCII, because they become HTTP headers on S3.
    pub fn with(mut self, key: &'static str, value: String) -> Result<Self, InvalidMetadata> {
        let is_printable = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if value.is_empty() || value.len() > VALUE_BYTES_MAX || !is_printable {
            return Err(InvalidMetadata { key });
        }
        self.0.insert(key.to_owned(), value);
        Ok(self)
    }

    /// Metadata as a store has it, written by any version.
    pub(super) fn stored(fields: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(fields.into_iter().collect())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fields(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_printable_ascii() {
        let longest = "x".repeat(VALUE_BYTES_MAX);
        for good in ["v8-14.6/x86_64", "a b", &longest] {
            let metadata = BlobMetadata::default().with("engine", good.to_owned()).expect("metadata");
            assert_eq!(metadata.get("engine"), Some(good));
        }
        for bad in ["", "a\nb", "\u{7f}", "ü", &"x".repeat(VALUE_BYTES_MAX + 1)] {
            assert!(BlobMetadata::default().with("engine", bad.to_owned()).is_err(), "{bad:?}");
        }
    }
}
