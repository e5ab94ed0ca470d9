//! Removes the files of heaps that nothing in the database names any more. A removal is recorded before its file goes, so that no server stores
//! the heap meanwhile, and one that was interrupted is tried again.

use crate::error::blocking;
use crate::{ServiceError, Stores, crash_point};
use heapstead_store::HeapStoreError;
use heapstead_store::records::Removal;
use heapstead_types::{HeapKey, Principal};
use jiff::{SignedDuration, Timestamp};

/// Runs work that may remove files: one at a time in this process, and to its end even if the caller leaves.
pub async fn alone<T: Send + 'static>(
    stores: &Stores,
    work: impl Future<Output = Result<T, ServiceError>> + Send + 'static,
) -> Result<T, ServiceError> {
    let removing = stores.removing.clone();
    let done = tokio::spawn(async move {
        let _alone = removing.lock_owned().await;
        work.await
    });
    done.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
}

/// Removes the file. If that fails, the removal is tried again by a later sweep.
pub async fn carry_out(stores: &Stores, removal: Removal) -> Result<(), ServiceError> {
    crash_point::pass("removal-recorded");
    let removed = remove(stores, &removal).await;
    crash_point::pass("heap-removed");
    match removed {
        Ok(true) => Ok(stores.records.end_removal(&removal).await?),
        Ok(false) => Ok(stores.records.give_up_removal(&removal).await?),
        Err(error) => {
            stores.records.give_up_removal(&removal).await?;
            Err(error)
        }
    }
}

/// False if the file stays for now.
async fn remove(stores: &Stores, removal: &Removal) -> Result<bool, ServiceError> {
    if removal.only_old && stored_at(stores, removal.key).await?.is_some_and(|stored_at| stored_at >= since(stores)) {
        return Ok(false);
    }
    let (store, key) = (stores.heaps.clone(), removal.key);
    blocking(move || Ok(store.remove(&key)?)).await?;
    Ok(true)
}

/// Carries out the removals that a request of an owner caused. Other owners may share the files of a tenant's heaps, and a request that waited
/// would take longer if none of them does, so it is answered before. Only owners without a tenant wait, such as the operator on the command line.
pub async fn after_response(stores: &Stores, owner: &Principal, removals: Vec<Removal>) -> Result<(), ServiceError> {
    let owned = stores.clone();
    let removed = tokio::spawn(async move {
        let mut result = Ok(());
        for removal in removals {
            let removed = take_over(&owned, removal).await;
            log_error(&removed);
            result = result.and(removed);
        }
        result
    });
    match owner.tenant() {
        Some(_) => Ok(()),
        None => removed.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string()))),
    }
}

/// Tries removals again that failed, or whose server died.
pub async fn retry_all(stores: &Stores) -> Result<(), ServiceError> {
    for removal in stores.records.removals().await? {
        // One of this server is over once this is alone.
        if removal.server.as_ref().is_some_and(|server| server != stores.peers.server() && stores.peers.is_alive(server)) {
            continue;
        }
        retry(stores, removal).await;
    }
    Ok(())
}

/// Takes over a removal that no server is carrying out. If it fails, a later sweep tries it again.
pub async fn retry(stores: &Stores, removal: Removal) {
    log_error(&take_over(stores, removal).await);
}

/// Carries out a removal that was recorded before, unless the heap was stored again meanwhile.
async fn take_over(stores: &Stores, removal: Removal) -> Result<(), ServiceError> {
    let owned = stores.clone();
    alone(stores, async move {
        match owned.records.take_over_removal(&removal).await? {
            Some(removal) => carry_out(&owned, removal).await,
            None => Ok(()),
        }
    })
    .await
}

fn log_error(removed: &Result<(), ServiceError>) {
    if let Err(error) = removed {
        tracing::warn!(%error, "the file of a heap can't be removed");
    }
}

/// Heaps that were stored or used since then stay.
pub fn since(stores: &Stores) -> Timestamp {
    let retained = SignedDuration::try_from(stores.policy.retain_heaps).unwrap_or(SignedDuration::MAX);
    Timestamp::now().checked_sub(retained).unwrap_or(Timestamp::MIN)
}

/// When the file of a heap was written. None if there is none.
pub async fn stored_at(stores: &Stores, key: HeapKey) -> Result<Option<Timestamp>, ServiceError> {
    let store = stores.heaps.clone();
    blocking(move || match store.describe(&key) {
        Ok(info) => Ok(Some(Timestamp::try_from(info.stored_at).unwrap_or(Timestamp::MAX))),
        Err(HeapStoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    })
    .await
}
