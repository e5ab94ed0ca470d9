//! The bearer token file: TOML with one table per token, which holds the digest instead of the token.
//!
//! ```toml
//! [[tokens]]
//! id = "5f0c9a1b2d3e"
//! owner = "acme/ann"
//! name = "laptop"                          # optional
//! sha256 = "9f86d081…"
//! created_at = "2026-11-16T02:21:37Z"
//! expires_at = "2026-12-16T02:21:37Z"      # optional
//! permissions = ["heaps:import"]           # optional
//! ```
//! The file is replaced atomically by a rename, so that a reader sees the old or the new version. Writers hold a lock file next to it.

use super::token::TokenDigest;
use heapstead_types::{Permissions, Principal};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// About ten thousand tokens.
const FILE_BYTES_MAX: u64 = 4 << 20;
const NAME_CHARS_MAX: usize = 100;
const HEAD: &str = "# Bearer tokens of this server, managed by `heapstead auth add|ls|revoke`. Comments are not preserved.\n\n";
const WRITABLE_BY_OTHERS: u32 = 0o022;
const ACCESSIBLE_BY_OTHERS: u32 = 0o007;

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("the token file (`--auth-tokens`) is `{}`, which can't be {what}: {error}", path.display())]
    Io { path: PathBuf, what: &'static str, error: io::Error },
    #[error("there is no token file (`--auth-tokens`) at `{path}`: `heapstead auth add OWNER --auth-tokens {path}` creates it", path = path.display())]
    Missing { path: PathBuf },
    #[error("{}: {why}", path.display())]
    Malformed { path: PathBuf, why: String },
    #[error("{path} is writable by other users (mode {mode:03o}), who could add tokens: run `chmod 600 {path}`", path = path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("there is no token `{id}`")]
    Unknown { id: String },
}

/// The stored part of a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: String,
    #[serde(with = "as_text")]
    pub owner: Principal,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(with = "hex::serde")]
    pub sha256: TokenDigest,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Permissions::is_empty", with = "as_texts")]
    pub permissions: Permissions,
}

impl Entry {
    pub fn has_expired(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= Timestamp::now())
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    tokens: Vec<Entry>,
}

pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    pub fn new(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// Reads all entries. Refuses a file that other users could have written.
    pub fn read(&self) -> Result<Vec<Entry>, TokenFileError> {
        let file = File::open(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TokenFileError::Missing { path: self.path.clone() },
            _ => self.io("read", error),
        })?;
        let mode = file.metadata().map_err(|error| self.io("read", error))?.mode() & 0o777;
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(TokenFileError::Writable { path: self.path.clone(), mode });
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| self.io("read", error))?;
        let malformed = |why: String| TokenFileError::Malformed { path: self.path.clone(), why };
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(malformed(format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        parse(&text).map_err(malformed)
    }

    /// The file mode, if it allows access to other users.
    pub fn too_open(&self) -> io::Result<Option<u32>> {
        let mode = std::fs::metadata(&self.path)?.mode() & 0o777;
        Ok((mode & ACCESSIBLE_BY_OTHERS != 0).then_some(mode))
    }

    /// Adds a token. Creates the file if it is missing.
    pub fn add(&self, entry: Entry) -> Result<(), TokenFileError> {
        check(&entry).map_err(|why| TokenFileError::Malformed { path: self.path.clone(), why })?;
        self.change(|entries| {
            entries.push(entry);
            Ok(())
        })
    }

    /// Removes a token and returns its entry.
    pub fn revoke(&self, id: &str) -> Result<Entry, TokenFileError> {
        self.change(|entries| {
            let found = entries.iter().position(|entry| entry.id == id);
            found.map(|at| entries.remove(at)).ok_or_else(|| TokenFileError::Unknown { id: id.to_owned() })
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Entry>) -> Result<T, TokenFileError>) -> Result<T, TokenFileError> {
        let unlocked = |error| self.io("locked", error);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.beside(".lock")).map_err(unlocked)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| unlocked(error.into()))?;
        let mut entries = match self.read() {
            Err(TokenFileError::Missing { .. }) => Vec::new(),
            read => read?,
        };
        let changed = change(&mut entries)?;
        let text = render(entries).map_err(|why| TokenFileError::Malformed { path: self.path.clone(), why })?;
        self.replace(&text).map_err(|error| self.io("written", error))?;
        Ok(changed)
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Created with mode 0600.
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&self.path)?;
        File::open(folder)?.sync_all()
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(ending);
        name.into()
    }

    fn io(&self, what: &'static str, error: io::Error) -> TokenFileError {
        TokenFileError::Io { path: self.path.clone(), what, error }
    }
}

/// The entries in the text of a token file.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let contents: Contents = toml::from_str(text).map_err(|error| error.to_string())?;
    contents.tokens.iter().try_for_each(check)?;
    Ok(contents.tokens)
}

/// The text of a token file with these entries.
pub fn render(tokens: Vec<Entry>) -> Result<String, String> {
    Ok(format!("{HEAD}{}", toml::to_string(&Contents { tokens }).map_err(|error| error.to_string())?))
}

fn check(entry: &Entry) -> Result<(), String> {
    // A token cannot have one of the two owners without authentication.
    if entry.owner.tenant().is_none() {
        return Err(format!("the owner of token `{}` is `{}`: expected TENANT/SUBJECT", entry.id, entry.owner));
    }
    match &entry.name {
        Some(name) if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) => {
            Err(format!("the name of token `{}` has more than {NAME_CHARS_MAX} characters, or control characters", entry.id))
        }
        _ => Ok(()),
    }
}

mod as_texts {
    //! Serialises permissions by name.

    use heapstead_types::Permissions;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(permissions: &Permissions, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(permissions.iter().map(|permission| permission.as_str()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Permissions, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().map(|name| name.parse().map_err(|error| de::Error::custom(format!("permission `{name}`: {error}")))).collect()
    }
}

mod as_text {
    //! Serialises an owner in its text form.

    use heapstead_types::Principal;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(owner: &Principal, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(owner)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Principal, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
