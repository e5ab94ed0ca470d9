//! Turns in SQLite.

use super::columns::{heap_key, server_id, unreadable};
use super::{Durability, Sqlite};
use crate::records::{NewTurn, RecordsError, Turn, TurnId, TurnRecords};
use async_trait::async_trait;
use heapstead_types::{ServerId, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// What has a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Execution,
    /// The preparation of a logical session.
    Preparation,
}

#[async_trait]
impl TurnRecords for Sqlite {
    async fn take_turn(&self, new: NewTurn) -> Result<bool, RecordsError> {
        let server = self.server().clone();
        self.write(Durability::Process, move |db| {
            let is_open = db
                .prepare_cached("SELECT 1 FROM sessions WHERE sid = ? AND opened = 1 AND ended_at IS NULL")?
                .exists([new.session.to_string()])?;
            if is_open {
                insert(db, &new, &server, Holder::Preparation)?;
            }
            Ok(is_open)
        })
        .await
    }

    async fn turn(&self, session: SessionId, id: &TurnId) -> Result<Option<Turn>, RecordsError> {
        let id = id.clone();
        self.read(move |db| {
            let session = session.to_string();
            let head = db
                .prepare_cached("SELECT head FROM sessions WHERE sid = ? AND opened = 1 AND ended_at IS NULL")?
                .query_row([&session], |row| heap_key(row, 0))
                .optional()?;
            let Some(head) = head else { return Ok(None) };
            let ahead = db
                .prepare_cached(
                    "SELECT id, process FROM turns WHERE session = ?1 AND seq < (SELECT seq FROM turns WHERE id = ?2)
                     ORDER BY seq DESC LIMIT 1",
                )?
                .query_row(params![session, id.as_str()], |row| Ok((turn_id(row, 0)?, server_id(row, 1)?)))
                .optional()?;
            Ok(Some(Turn { head, ahead }))
        })
        .await
    }

    async fn release_turn(&self, id: &TurnId) -> Result<(), RecordsError> {
        let id = id.clone();
        self.write(Durability::Process, move |db| delete(db, &id)).await
    }

    async fn turns_without_execution(&self) -> Result<Vec<(TurnId, ServerId)>, RecordsError> {
        self.read(|db| {
            db.prepare_cached("SELECT id, process FROM turns WHERE runs = 0")?
                .query_map([], |row| Ok((turn_id(row, 0)?, server_id(row, 1)?)))?
                .collect()
        })
        .await
    }
}

pub fn insert(db: &Connection, new: &NewTurn, server: &ServerId, holder: Holder) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO turns (id, session, process, runs) VALUES (?, ?, ?, ?)")?
        .execute(params![new.id.as_str(), new.session.to_string(), server.as_str(), holder == Holder::Execution])
        .map(drop)
}

pub fn delete(db: &Connection, id: &TurnId) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM turns WHERE id = ?")?.execute([id.as_str()]).map(drop)
}

/// Whether other turns of the session are unfinished.
pub fn has_others(db: &Connection, session: SessionId, id: &TurnId) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM turns WHERE session = ? AND id <> ?")?.exists(params![session.to_string(), id.as_str()])
}

fn turn_id(row: &Row<'_>, index: usize) -> rusqlite::Result<TurnId> {
    row.get_ref(index)?.as_str()?.parse().map_err(|error| unreadable(index, error))
}
