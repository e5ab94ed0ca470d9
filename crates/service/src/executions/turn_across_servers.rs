//! A turn in a session across servers: waiting for the turns ahead, and the turn of a preparation.

use super::orphans;
use super::turn_queue::{QueuedTurn, RegisteredTurn, TurnGuard};
use crate::sessions::session_not_found;
use crate::{ServiceError, Stores};
use heapstead_store::peers::Question;
use heapstead_store::records::{NewTurn, TurnId};
use heapstead_types::{HeapKey, ServerId, SessionId};
use std::time::Duration;

/// Pause before another attempt to store something that the database refused, or to ask a server that can't be reached.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Pause before a peer is asked again that says a turn is over while its record is still there.
const STILL_THERE_PAUSE: Duration = Duration::from_millis(20);

/// Waits until all earlier turns of the session are over, here and on other servers. Returns the head that they left.
pub async fn wait_for_turn(
    stores: &Stores,
    id: &TurnId,
    session: SessionId,
    in_line: QueuedTurn,
) -> Result<(TurnGuard, Option<HeapKey>), ServiceError> {
    let turn = in_line.my_turn().await;
    let mut asked: Option<TurnId> = None;
    loop {
        let now = stores.records.turn(session, id).await?;
        let now = now.ok_or_else(|| session_not_found(&session.to_string()))?;
        let Some((ahead, server)) = now.ahead else { return Ok((turn, now.head)) };
        if asked.as_ref() == Some(&ahead) {
            tokio::time::sleep(STILL_THERE_PAUSE).await;
        }
        wait_for(stores, &ahead, &server).await;
        asked = Some(ahead);
    }
}

/// Waits until a turn of another server is over, or removes it if that server has died.
async fn wait_for(stores: &Stores, turn: &TurnId, server: &ServerId) {
    if stores.peers.is_alive(server) {
        if stores.peers.ask(server, &Question::TurnOver(turn.clone())).await.is_err() {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    } else if let Err(error) = orphans::remove_turn(stores, turn).await {
        tracing::warn!(%error, "the turn of a server that died can't be removed");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// The turn of a call that changes the head of a session and runs nothing of its caller's. Released when dropped, also if the caller left.
pub struct PreparationTurn {
    stores: Stores,
    id: TurnId,
    session: SessionId,
    turn: Option<TurnGuard>,
    held: Option<RegisteredTurn>,
    is_recorded: bool,
}

impl PreparationTurn {
    pub fn new(stores: &Stores, session: SessionId) -> Self {
        let id = TurnId::new();
        let held = Some(stores.turns.hold(&id));
        Self { stores: stores.clone(), id, session, turn: None, held, is_recorded: false }
    }

    /// The turn to record together with something else; the caller is first in line.
    pub fn record(&mut self, turn: TurnGuard) -> NewTurn {
        self.turn = Some(turn);
        self.is_recorded = true;
        NewTurn { id: self.id.clone(), session: self.session }
    }

    /// Takes its place behind everything accepted before. False if the session has ended.
    pub async fn take(&mut self) -> Result<Option<QueuedTurn>, ServiceError> {
        let accepting = self.stores.turns.accept(self.session).await;
        // Recorded or not: if the answer of the database is lost, the turn is released all the same.
        self.is_recorded = true;
        let new = NewTurn { id: self.id.clone(), session: self.session };
        Ok(self.stores.records.take_turn(new).await?.then(|| accepting.line_up()))
    }

    /// Waits for its turn. Returns the head of the session at that time.
    pub async fn wait(&mut self, in_line: QueuedTurn) -> Result<Option<HeapKey>, ServiceError> {
        let (turn, head) = wait_for_turn(&self.stores, &self.id, self.session, in_line).await?;
        self.turn = Some(turn);
        Ok(head)
    }
}

impl Drop for PreparationTurn {
    fn drop(&mut self) {
        let (stores, id, turn, held) = (self.stores.clone(), self.id.clone(), self.turn.take(), self.held.take());
        // Without a runtime the process is ending, and the lease with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.is_recorded {
            return;
        }
        runtime.spawn(async move {
            while let Err(error) = stores.records.release_turn(&id).await {
                tracing::warn!(%error, "a turn can't be released");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            drop((turn, held));
        });
    }
}
