//! Who accesses which context: a session, its tenant and the calling tool. Every call to a store carries one.

use crate::SessionId;

#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    pub session: &'a SessionId,
    /// Selects the encryption key. Empty without tenants.
    pub tenant: &'a str,
    /// For the audit trail.
    pub tool: &'a str,
}

impl<'a> Access<'a> {
    pub fn new(session: &'a SessionId, tool: &'a str) -> Self {
        Self { session, tenant: "", tool }
    }

    pub fn of_tenant(self, tenant: &'a str) -> Self {
        Self { tenant, ..self }
    }
}
