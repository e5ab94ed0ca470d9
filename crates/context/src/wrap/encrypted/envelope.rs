//! The stored form of an encrypted document.
//!
//! ```text
//! "MCTX" 1 │ u8 key id │ u16 tenant │ u64 born │ 8 birth │ u64 sequence │ the record, sealed (see `heapstead-aead`)
//! └───────────────── associated data, with the session id after it ───┘
//! ```
//! Lengths precede the texts; numbers are big-endian. The tenant's name is not encrypted, so that a database can be loaded.

use super::keyring::{KEY_ID_BYTES_MAX, Keyring};
use crate::{Access, Document, SessionId, StoreError, Timestamp};
use ring::rand::{SecureRandom, SystemRandom};

const MAGIC: &[u8] = b"MCTX\x01";
const NO_RANDOMNESS: &str = "the operating system gave no random bytes";

/// The version of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub born_at_ms: u64,
    /// Random: a context that was cleared and created again has a different one.
    pub birth: [u8; 8],
    pub sequence: u64,
}

pub struct Opened {
    pub header: Header,
    /// Whether it was encrypted under the current key.
    pub is_under_newest: bool,
    pub plain: Vec<u8>,
}

struct Parsed<'a> {
    key_id: &'a str,
    tenant: &'a str,
    header: Header,
    associated: &'a [u8],
    sealed: &'a [u8],
}

impl Header {
    pub fn first(now: Timestamp) -> Result<Self, &'static str> {
        let mut birth = [0; 8];
        SystemRandom::new().fill(&mut birth).map_err(|_| NO_RANDOMNESS)?;
        Ok(Self { born_at_ms: now.ms() as u64, birth, sequence: 1 })
    }

    pub fn next(self) -> Self {
        Self { sequence: self.sequence.saturating_add(1), ..self }
    }
}

pub fn seal(keys: &Keyring, access: Access<'_>, header: Header, plain: &[u8]) -> Result<Vec<u8>, &'static str> {
    let key_id = keys.newest();
    let key = keys.of_tenant(key_id, access.tenant).ok_or("there is no key to encrypt with")?;
    let tenant_bytes = u16::try_from(access.tenant.len()).map_err(|_| "the tenant's name is longer than 65535 bytes")?;
    let mut envelope = Vec::with_capacity(MAGIC.len() + KEY_ID_BYTES_MAX + access.tenant.len() + 64 + plain.len());
    envelope.extend(MAGIC);
    envelope.push(key_id.len() as u8);
    envelope.extend(key_id.as_bytes());
    envelope.extend(tenant_bytes.to_be_bytes());
    envelope.extend(access.tenant.as_bytes());
    envelope.extend(header.born_at_ms.to_be_bytes());
    envelope.extend(header.birth);
    envelope.extend(header.sequence.to_be_bytes());
    let associated = associated(&envelope, access.session);
    key.seal(&associated, plain, &mut envelope).map_err(|_| NO_RANDOMNESS)?;
    Ok(envelope)
}

pub fn open(keys: &Keyring, access: Access<'_>, found: &Document) -> Result<Opened, StoreError> {
    let tampered = |why| StoreError::Tampered { why, found: found.clone() };
    let parsed = parse(found.bytes()).ok_or_else(|| tampered("it is not encrypted, or cut short"))?;
    if parsed.tenant != access.tenant {
        return Err(StoreError::ForeignTenant);
    }
    let key = keys.of_tenant(parsed.key_id, parsed.tenant).ok_or_else(|| StoreError::UnknownKey { key_id: parsed.key_id.to_owned() })?;
    let associated = associated(parsed.associated, access.session);
    let plain = key.open(&associated, parsed.sealed).map_err(|_| tampered("it was changed, or encrypted for another session"))?;
    Ok(Opened { header: parsed.header, is_under_newest: parsed.key_id == keys.newest(), plain })
}

/// Do not trust it before the document has been authenticated.
pub fn header(envelope: &[u8]) -> Option<Header> {
    parse(envelope).map(|parsed| parsed.header)
}

pub fn tenant(envelope: &[u8]) -> Option<&str> {
    parse(envelope).map(|parsed| parsed.tenant)
}

fn associated(head: &[u8], session: &SessionId) -> Vec<u8> {
    [head, session.as_bytes()].concat()
}

fn parse(envelope: &[u8]) -> Option<Parsed<'_>> {
    let mut rest = envelope.strip_prefix(MAGIC)?;
    let key_id_bytes = usize::from(take::<1>(&mut rest)?[0]);
    let key_id = take_text(&mut rest, key_id_bytes)?;
    let tenant_bytes = usize::from(u16::from_be_bytes(take(&mut rest)?));
    let tenant = take_text(&mut rest, tenant_bytes)?;
    let header = Header {
        born_at_ms: u64::from_be_bytes(take(&mut rest)?),
        birth: take(&mut rest)?,
        sequence: u64::from_be_bytes(take(&mut rest)?),
    };
    let associated = &envelope[..envelope.len() - rest.len()];
    Some(Parsed { key_id, tenant, header, associated, sealed: rest })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

fn take_text<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a str> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    std::str::from_utf8(taken).ok()
}
