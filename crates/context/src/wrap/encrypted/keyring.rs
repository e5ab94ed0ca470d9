//! The key file: one master key per line, `ID 64-HEX-DIGITS`. The first encrypts, all decrypt. Lines that begin with `#` are comments.
//!
//! To rotate: add the new key as the last line on every server, move it to the top on every server, and remove the old key after the TTL.
//! Servers reload a changed file (see `keys.rs`).

use heapstead_aead::AeadKey;
use ring::digest::{Digest, SHA256, digest};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use std::fmt;
use std::path::{Path, PathBuf};

const SALT: &[u8] = b"mcp conversation context v1";
pub const KEY_ID_BYTES_MAX: usize = 64;
/// A key file has a few lines.
const FILE_BYTES_MAX: u64 = 64 * 1024;

pub struct Keyring {
    keys: Vec<(String, Prk)>,
    file: Option<KeyFile>,
}

/// The path of a key file and a digest of the text that was read. Times are not enough: a file can be replaced by one with the same length and
/// modification time, and the clock of a file system is coarse.
struct KeyFile {
    path: PathBuf,
    digest: Digest,
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidKeyFile {
    #[error("the key file {} can't be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the key file {} is readable by all users: remove that permission (chmod o-rwx)", path.display())]
    Public { path: PathBuf },
    #[error("line {line} of the key file: {why}")]
    Line { line: usize, why: &'static str },
    #[error("the key file has no key: each line is an id and 64 hex digits, the first line encrypts")]
    Empty,
}

impl Keyring {
    pub fn from_file(path: &Path) -> Result<Self, InvalidKeyFile> {
        Self::from_text_of(path, &read(path)?)
    }

    fn from_text_of(path: &Path, text: &str) -> Result<Self, InvalidKeyFile> {
        let file = KeyFile { path: path.to_owned(), digest: digest(&SHA256, text.as_bytes()) };
        Ok(Self { file: Some(file), ..Self::parse(text)? })
    }

    pub fn parse(text: &str) -> Result<Self, InvalidKeyFile> {
        let mut keys: Vec<(String, Prk)> = Vec::new();
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        for (index, line) in lines {
            let wrong = |why| InvalidKeyFile::Line { line: index + 1, why };
            let (id, digits) = line.split_once(char::is_whitespace).ok_or_else(|| wrong("it needs an id and 64 hex digits"))?;
            let id_fits = id.len() <= KEY_ID_BYTES_MAX && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            if !id_fits {
                return Err(wrong("an id has at most 64 letters, digits, dots, dashes and underscores"));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(wrong("its id is already taken"));
            }
            let mut master = [0; 32];
            hex::decode_to_slice(digits.trim(), &mut master).map_err(|_| wrong("the key is not 64 hex digits"))?;
            keys.push((id.to_owned(), Salt::new(HKDF_SHA256, SALT).extract(&master)));
        }
        if keys.is_empty() { Err(InvalidKeyFile::Empty) } else { Ok(Self { keys, file: None }) }
    }

    /// The current keys of the file. `None` if there is no file or it has not changed.
    pub fn read_again(&self) -> Option<Result<Self, InvalidKeyFile>> {
        let file = self.file.as_ref()?;
        match read(&file.path) {
            Ok(text) if digest(&SHA256, text.as_bytes()).as_ref() == file.digest.as_ref() => None,
            text => Some(text.and_then(|text| Self::from_text_of(&file.path, &text))),
        }
    }

    /// The id of the key that encrypts.
    pub fn newest(&self) -> &str {
        self.keys.first().map_or("", |(id, _)| id)
    }

    /// Whether documents may be encrypted under an older key.
    pub fn has_older(&self) -> bool {
        self.keys.len() > 1
    }

    /// The key of one tenant, derived from this master key.
    pub fn of_tenant(&self, id: &str, tenant: &str) -> Option<AeadKey> {
        let (_, master) = self.keys.iter().find(|(known, _)| known == id)?;
        let info = [b"tenant:".as_slice(), tenant.as_bytes()];
        AeadKey::derive(master, &info).ok()
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

/// The text of a key file, if it is private and not too long.
fn read(path: &Path) -> Result<String, InvalidKeyFile> {
    let unreadable = |error| InvalidKeyFile::Unreadable { path: path.to_owned(), error };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if is_public(&about) {
        return Err(InvalidKeyFile::Public { path: path.to_owned() });
    }
    if about.len() > FILE_BYTES_MAX {
        return Err(unreadable(std::io::ErrorKind::FileTooLarge.into()));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

#[cfg(unix)]
fn is_public(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    about.permissions().mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_public(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_encrypts_and_comments_are_skipped() {
        let text = format!("# keys\n\n2026-11 {}\n2026-10\t {}\n", "ab".repeat(32), "CD".repeat(32));
        let keys = Keyring::parse(&text).expect("keys");
        assert_eq!(keys.newest(), "2026-11");
        assert!(keys.of_tenant("2026-10", "acme").is_some() && keys.of_tenant("2026-09", "acme").is_none());
        assert_eq!(format!("{keys:?}"), r#"["2026-11", "2026-10"]"#, "no key in a log");
    }

    /// Story: a file was taken for unchanged if it had the same length and modification time, which a restored or copied file has.
    #[cfg(unix)]
    #[test]
    fn a_file_with_the_same_length_and_time_is_noticed() {
        use std::os::unix::fs::OpenOptionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        let write = |digits: &str| {
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&path).expect("opened");
            std::io::Write::write_all(&mut file, format!("k1 {}\n", digits.repeat(32)).as_bytes()).expect("written");
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("dated");
        };
        write("ab");
        let keys = Keyring::from_file(&path).expect("keys");
        assert!(keys.read_again().is_none(), "nothing changed");
        write("cd");
        let changed = keys.read_again().expect("noticed").expect("keys");
        assert!(changed.read_again().is_none());
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(changed.read_again(), Some(Err(InvalidKeyFile::Unreadable { .. }))));
    }

    #[test]
    fn an_invalid_key_file_is_reported_by_line_without_its_keys() {
        let key = "ab".repeat(32);
        for (text, expected) in [
            (String::new(), "no key"),
            ("# only\n".into(), "no key"),
            ("a".into(), "line 1"),
            (format!("a {key}\nb {}", &key[2..]), "line 2 of the key file: the key is not 64 hex digits"),
            (format!("a {key}\na {key}"), "already taken"),
            (format!("a/b {key}"), "an id has"),
        ] {
            let error = Keyring::parse(&text).expect_err(&text).to_string();
            assert!(error.contains(expected) && !error.contains("abab"), "{error}");
        }
    }
}
