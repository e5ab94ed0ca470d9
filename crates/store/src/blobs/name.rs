//! Names of blobs: `name` or `folder/name`, checked once. They mean the same in a path and in an object key, and reach nothing else.

use std::fmt;
use std::str::FromStr;

/// A file name has at most 255 bytes, and a sidecar's is longer than its blob's by `.json`.
const SEGMENT_BYTES_MAX: usize = 200;
const DIGEST_BYTES: usize = 32;

/// One or two segments of letters, digits, `.`, `_` and `-`. No segment begins with a dot: such names are used for our own files. A store
/// is not given the same segment as a blob and as a folder: a bucket could hold both, a folder can't.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName(String);

/// The folder that a name is in: the root, or one segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobFolder(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not the name of a blob: one or two segments of 1 to {SEGMENT_BYTES_MAX} letters, digits, `.`, `_` or `-`, not beginning with a dot", .0.escape_default())]
pub struct InvalidName(String);

impl BlobName {
    /// The name of a blob that is stored under the SHA-256 of its content.
    pub fn of_content(sha256: &[u8; DIGEST_BYTES]) -> Self {
        Self(hex::encode(sha256))
    }

    /// Whether the name has the form of a SHA-256. The content of such a blob never changes.
    pub fn is_content_hash(&self) -> bool {
        heapstead_types::is_lowercase_hex(&self.0, DIGEST_BYTES)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl BlobFolder {
    pub const ROOT: Self = Self(String::new());

    /// `name/`, or nothing for the root.
    pub(super) fn prefix(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| format!("{}/", self.0))
    }

    /// The name of a blob in this folder, if `segment` can be one.
    pub fn name(&self, segment: &str) -> Result<BlobName, InvalidName> {
        match is_segment(segment) {
            true => Ok(BlobName(format!("{}{segment}", self.prefix().unwrap_or_default()))),
            false => Err(InvalidName(segment.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BlobName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (folder, name) = text.split_once('/').map_or((None, text), |(folder, name)| (Some(folder), name));
        match folder.is_none_or(is_segment) && is_segment(name) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidName(text.to_owned())),
        }
    }
}

impl FromStr for BlobFolder {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if is_segment(text) { Ok(Self(text.to_owned())) } else { Err(InvalidName(text.to_owned())) }
    }
}

fn is_segment(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=SEGMENT_BYTES_MAX).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_allowed)
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_or_two_plain_segments() {
        let longest = "x".repeat(SEGMENT_BYTES_MAX);
        for good in ["a", "a/b", "ab/ab12.out", "A-b_c.d", "a..b", &longest, &format!("{longest}/{longest}")] {
            assert_eq!(good.parse::<BlobName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        let too_long = "x".repeat(SEGMENT_BYTES_MAX + 1);
        for bad in [
            "", ".", "..", ".meta", "a/.b", "../a", "a/..", "/a", "a/", "a//b", "a/b/c", "a b", "a\0", "a\n", "ä", "a\\b", "a%2f",
            &too_long,
        ] {
            assert!(bad.parse::<BlobName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_makes_names_that_parse() {
        let folder: BlobFolder = "ab".parse().expect("a folder");
        assert_eq!(folder.name("c.out"), "ab/c.out".parse());
        assert_eq!(BlobFolder::ROOT.name("c.out"), "c.out".parse());
        assert!(folder.name("c/d").is_err() && folder.name("..").is_err());
        for bad in ["", "a/b", ".meta", ".."] {
            assert!(bad.parse::<BlobFolder>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn content_hashes_are_64_lowercase_hex_digits() {
        let name = BlobName::of_content(&[0xab; 32]);
        assert_eq!(name.as_str(), "ab".repeat(32));
        assert!(name.is_content_hash());
        for other in ["a", &"AB".repeat(32), &"ab".repeat(31), &"ag".repeat(32)] {
            assert!(!other.parse::<BlobName>().expect("a name").is_content_hash(), "{other}");
        }
    }
}
