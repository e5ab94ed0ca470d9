//! Who accesses which context: a session, its tenant, its owner and the calling tool. Every call to a store carries one.

use crate::SessionId;

#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    pub session: &'a SessionId,
    /// Selects the encryption key. Empty without tenants.
    pub tenant: &'a str,
    /// Whom the bytes of the context count for. Empty if owners are not distinguished; then a known owner stays.
    pub owner: &'a str,
    /// How many bytes the contexts of this owner may have together. A change that makes one longer is refused above it.
    pub owner_bytes_max: Option<u64>,
    /// For the audit trail.
    pub tool: &'a str,
}

impl<'a> Access<'a> {
    pub fn new(session: &'a SessionId, tool: &'a str) -> Self {
        Self { session, tenant: "", owner: "", owner_bytes_max: None, tool }
    }

    pub fn of_tenant(self, tenant: &'a str) -> Self {
        Self { tenant, ..self }
    }

    pub fn of_owner(self, owner: &'a str) -> Self {
        Self { owner, ..self }
    }

    pub fn within(self, owner_bytes_max: Option<u64>) -> Self {
        Self { owner_bytes_max, ..self }
    }
}
