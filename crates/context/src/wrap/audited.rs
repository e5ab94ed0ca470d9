//! Audit trail of context reads: a DEBUG log line with session and tool for every read.

use crate::store::{ContextStore, Pending, Stats};
use crate::{Access, Document};

pub struct Audited<S>(S);

impl<S: ContextStore> Audited<S> {
    pub fn new(store: S) -> Self {
        Self(store)
    }
}

impl<S: ContextStore> ContextStore for Audited<S> {
    fn backend(&self) -> &'static str {
        self.0.backend()
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        tracing::debug!(session_id = %access.session, tool = access.tool, "context read");
        self.0.read(access)
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        self.0.replace(access, expected, new)
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        self.0.remove(access)
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        self.0.quarantine(access, found, why)
    }

    fn sweep(&self) -> Pending<'_, ()> {
        self.0.sweep()
    }

    fn stats(&self) -> Pending<'_, Stats> {
        self.0.stats()
    }

    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        self.0.owner_bytes(owner)
    }

    fn check(&self) -> Pending<'_, ()> {
        self.0.check()
    }
}
