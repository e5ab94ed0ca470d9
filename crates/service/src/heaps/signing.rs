//! Signatures of heaps: who may bring in a heap that this server did not write, and signing what is in the store already.

use super::Heaps;
use crate::error::blocking;
use crate::key_ring::KEY_BYTES;
use crate::{Caller, ServiceError, Stores};
use heapstead_store::{HeapInfo, HeapSigner, HeapStore, HeapStoreError, Unsigned};
use heapstead_types::{HeapKey, Permission, Principal};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How many heaps are looked at to find out whether there are unsigned ones: on S3 each is a request.
const SAMPLE_HEAPS: usize = 100;
/// A store that takes longer is reported elsewhere.
const SAMPLE_TIME_MAX: Duration = Duration::from_secs(5);

/// How heaps of an earlier version are signed.
const SIGN_ALL: &str = "heapstead heaps sign --all";

/// Which heaps to sign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignRequest {
    /// These heaps, whatever their signature is now. If empty, all heaps without a signature, and those that an older key of this database
    /// signed. Heaps with an invalid signature, or one of another database, are left as they are: someone has to look at them.
    pub heaps: Vec<HeapKey>,
    /// Report what would be signed, and sign nothing.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SignedHeaps {
    /// Signed now, unless it was a dry run.
    pub signed: Vec<HeapKey>,
    /// How many had a signature of the newest key.
    pub unchanged: u64,
    pub skipped: Vec<SkippedHeap>,
}

/// A heap that was not signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedHeap {
    pub heap: HeapKey,
    pub why: String,
}

impl Heaps<'_> {
    /// Whether a caller may store heaps that this server did not write. V8 does not check a snapshot, so a crafted heap can read and write
    /// memory outside its objects, in the confined worker that restores it.
    pub fn check_may_import(&self, caller: &Caller) -> Result<(), ServiceError> {
        let is_on = self.0.policy.import_heaps;
        let text = match caller.principal.tenant() {
            // The user who started the process.
            None if caller.principal == Principal::local() => return Ok(()),
            _ if !is_on => {
                "this server does not accept heaps from elsewhere: its operator can allow that with `--allow-heap-import`".to_owned()
            }
            None => return Ok(()),
            Some(_) if caller.permissions.contains(&Permission::ImportHeaps) => return Ok(()),
            Some(_) => format!(
                "importing heaps needs the permission `{}`: the operator can grant it with `heapstead auth add {} --permission {}`, or the issuer of your JWT in its claim `scope`",
                Permission::ImportHeaps,
                caller.principal,
                Permission::ImportHeaps,
            ),
        };
        Err(ServiceError::Forbidden(text))
    }

    pub(crate) async fn signer(&self) -> Result<HeapSigner, ServiceError> {
        Ok(HeapSigner::new(&self.0.heap_keys.keys().await?))
    }

    /// New heaps are signed with a new key from now on. Heaps that older keys signed stay valid.
    pub async fn rotate_key(&self) -> Result<(), ServiceError> {
        Ok(self.0.heap_keys.rotate().await?)
    }

    /// The keys as text, one in each line, for another database: its servers restore the heaps of this one then.
    pub async fn export_keys(&self) -> Result<String, ServiceError> {
        let keys = self.0.heap_keys.keys().await?;
        Ok(keys.iter().map(|key| hex::encode(&key.key) + "\n").collect())
    }

    /// Adds keys that `export_keys` returned; the last of them signs from now on. Returns how many were new.
    pub async fn import_keys(&self, text: &str) -> Result<usize, ServiceError> {
        let key = |line: &str| hex::decode(line).ok().filter(|key| key.len() == KEY_BYTES);
        let keys: Option<Vec<_>> = text.lines().map(key).collect();
        let keys = keys.filter(|keys| !keys.is_empty());
        let keys = keys.ok_or_else(|| ServiceError::BadInput("`file` has no keys: expected lines of 64 hex digits, as exported".into()))?;
        Ok(self.0.heap_keys.add(keys).await?)
    }

    /// Signs heaps of any owner. Only for the operator: whoever signs a heap vouches for where it came from.
    pub async fn sign(&self, request: SignRequest) -> Result<SignedHeaps, ServiceError> {
        let (signer, mut done) = (self.signer().await?, SignedHeaps::default());
        let is_all = request.heaps.is_empty();
        let keys = if is_all { self.list_all().await?.into_iter().map(|heap| heap.key).collect() } else { request.heaps };
        for key in keys {
            let (store, signer, dry_run) = (self.0.heaps.clone(), signer.clone(), request.dry_run);
            match blocking(move || Ok(sign_one(&store, &signer, key, is_all, dry_run))).await? {
                Ok(true) => done.signed.push(key),
                Ok(false) => done.unchanged += 1,
                // It was collected meanwhile.
                Err(HeapStoreError::NotFound { .. }) if is_all => {}
                Err(error @ HeapStoreError::Blobs(_)) => return Err(error.into()),
                Err(error) => done.skipped.push(SkippedHeap { heap: key, why: error.to_string() }),
            }
        }
        Ok(done)
    }

    /// How many of some heaps in the store have no signature: stored by a version that did not sign, or by someone else.
    pub async fn count_unsigned(&self) -> Result<usize, ServiceError> {
        let store = self.0.heaps.until(Instant::now() + SAMPLE_TIME_MAX);
        blocking(move || {
            let mut sample = Vec::new();
            store.list(&mut |heap| {
                sample.push(heap.key);
                if sample.len() < SAMPLE_HEAPS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            let is_unsigned = |key: &HeapKey| store.describe(key).is_ok_and(|heap| heap.label.mac.is_none());
            Ok(sample.iter().filter(|key| is_unsigned(key)).count())
        })
        .await
    }
}

/// Says in the log, once, whether heaps of an earlier version have to be signed. The server does not wait for it.
pub(crate) fn warn_of_unsigned(stores: &Stores) {
    let stores = stores.clone();
    tokio::spawn(async move {
        match stores.heaps().count_unsigned().await {
            Ok(0) => {}
            Ok(_) => tracing::warn!("some heaps have no signature, and are not restored: if you trust them all, run `{SIGN_ALL}`"),
            // Health reports the store.
            Err(error) => tracing::debug!(%error, "the signatures of heaps can't be looked at"),
        }
    });
}

/// Returns whether the heap had to be signed. `careful`: only if that does not hide a signature that should be looked at.
fn sign_one(store: &HeapStore, signer: &HeapSigner, key: HeapKey, careful: bool, dry_run: bool) -> Result<bool, HeapStoreError> {
    let HeapInfo { label, .. } = store.describe(&key)?;
    if signer.is_current(&key, &label) {
        return Ok(false);
    }
    match signer.check(&key, &label) {
        Err(why @ (Unsigned::UnknownKey { .. } | Unsigned::Invalid)) if careful => return Err(HeapStoreError::Unsigned { key, why }),
        _ => {}
    }
    // Read whole: a damaged heap is not signed.
    let heap = store.get(&key)?;
    if !dry_run {
        store.put(&key, heap.payload(), &signer.label(&key, heap.engine().cloned()))?;
    }
    Ok(true)
}
