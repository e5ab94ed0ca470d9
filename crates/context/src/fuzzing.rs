//! Entry points for the fuzz targets (`fuzz/` in the repository).

use crate::wrap::envelope;
use crate::{Access, Document, Keyring, SessionId, Timestamp};

/// A document of this session, encrypted with the newest key.
pub fn seal(keys: &Keyring, tenant: &str, session: &SessionId, plain: &[u8]) -> Result<Vec<u8>, &'static str> {
    envelope::seal(keys, access(tenant, session), envelope::Header::first(Timestamp::from_ms(1))?, plain)
}

/// The content of an encrypted document, if it was encrypted for this session and tenant and not changed.
pub fn open(keys: &Keyring, tenant: &str, session: &SessionId, sealed: &[u8]) -> Option<Vec<u8>> {
    let _ = (envelope::header(sealed), envelope::tenant(sealed));
    envelope::open(keys, access(tenant, session), &Document::from_bytes(sealed.to_vec())).ok().map(|opened| opened.plain)
}

fn access<'a>(tenant: &'a str, session: &'a SessionId) -> Access<'a> {
    Access::new(session, "fuzz").of_tenant(tenant)
}
