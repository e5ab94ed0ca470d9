//! Notices about a lost execute session: stored until a caller receives them.

use super::continuity::SessionNotice;
use crate::executions::ExecutionRecord;
use crate::sessions::Sessions;
use crate::{Service, ServiceError};
use uuid::Uuid;

impl Service {
    /// Marks the notice in this record as received by a caller.
    pub async fn deliver_notice(&self, record: &ExecutionRecord) {
        let Some(notice) = &record.notice else { return };
        let sessions = self.sessions();
        let delivered = async {
            match sessions.0.records.logical_session_of_execution(&record.execution_id).await? {
                Some(logical) => sessions.notice_received(logical, notice).await,
                None => Ok(()),
            }
        };
        let delivered: Result<(), ServiceError> = delivered.await;
        if let Err(error) = delivered {
            tracing::warn!(%error, "a notice about a session will be delivered once more");
        }
    }
}

impl Sessions<'_> {
    /// Removes a pending notice. If something else happened to the session meanwhile, its notice stays.
    pub(super) async fn notice_received(&self, logical: Uuid, notice: &SessionNotice) -> Result<(), ServiceError> {
        let Some(json) = self.0.records.pending_notice(logical).await? else { return Ok(()) };
        let pending = serde_json::from_str::<SessionNotice>(&json).ok();
        // The table may have grown since; what the client has to know is the same.
        let is_same = |pending: SessionNotice| pending.continuity == notice.continuity && pending.execute_binding == notice.execute_binding;
        if pending.is_some_and(is_same) {
            self.0.records.clear_notice(logical, json).await?;
        }
        Ok(())
    }
}
