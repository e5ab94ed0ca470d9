//! Tags in SQLite.

use super::columns::{heap_key, principal};
use super::{Durability, Sqlite};
use crate::records::{RecordsError, TagQuery, TagRecords, TaggedHeap, Tags};
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal};
use jiff::Timestamp;
use rusqlite::{Connection, params};

#[async_trait]
impl TagRecords for Sqlite {
    async fn tags(&self, principal: &Principal, heap: HeapKey) -> Result<Tags, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| of_heap(db, principal.as_str(), &heap.to_string())).await
    }

    async fn set_tags(&self, principal: &Principal, heap: HeapKey, tags: Tags) -> Result<(), RecordsError> {
        let principal = principal.clone();
        let at = Timestamp::now();
        // Deleting is always possible.
        if tags.is_empty() {
            return self.write(Durability::Power, move |db| replace(db, principal.as_str(), &heap, &tags, at)).await;
        }
        self.write_within_quota(Durability::Power, principal.clone(), move |db| replace(db, principal.as_str(), &heap, &tags, at)).await
    }

    async fn stray_tags(&self, set_before: Timestamp) -> Result<Vec<(Principal, HeapKey)>, RecordsError> {
        self.read(move |db| {
            let sql = format!("SELECT DISTINCT principal, heap FROM tags WHERE {STRAY} LIMIT 500");
            let mut statement = db.prepare_cached(&sql)?;
            let found = statement.query_map([set_before.as_microsecond()], |row| Ok((principal(row, 0)?, heap_key(row, 1)?)))?;
            found.filter_map(|found| found.map(|(owner, heap)| heap.map(|heap| (owner, heap))).transpose()).collect()
        })
        .await
    }

    async fn delete_stray_tags(&self, found: Vec<(Principal, HeapKey)>, set_before: Timestamp) -> Result<(), RecordsError> {
        self.write(Durability::Process, move |db| {
            let mut delete = db.prepare_cached(&format!("DELETE FROM tags WHERE {STRAY} AND principal = ?2 AND heap = ?3"))?;
            let before = set_before.as_microsecond();
            found.iter().try_for_each(|(owner, heap)| delete.execute(params![before, owner.as_str(), heap.to_string()]).map(drop))
        })
        .await
    }

    async fn remove_tags(&self, principal: &Principal, heap: HeapKey, keys: Vec<String>) -> Result<(), RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| {
            let mut statement = db.prepare_cached("DELETE FROM tags WHERE principal = ? AND heap = ? AND key = ?")?;
            keys.iter().try_for_each(|key| statement.execute(params![principal.as_str(), heap.to_string(), key]).map(drop))
        })
        .await
    }

    async fn heaps_by_tags(&self, principal: &Principal, query: TagQuery) -> Result<(Vec<TaggedHeap>, bool), RecordsError> {
        let principal = principal.clone();
        self.read(move |db| find(db, principal.as_str(), &query)).await
    }
}

/// Pairs are counted up to this number to find the rarest one.
const COUNTED_MAX: i64 = 1000;

/// Tags that were set before a time, on a heap that their owner does not have.
const STRAY: &str = "set_at < ?1 AND NOT EXISTS (SELECT 1 FROM heaps WHERE heaps.principal = tags.principal AND heaps.key = tags.heap)";

pub fn replace(db: &Connection, principal: &str, heap: &HeapKey, tags: &Tags, at: Timestamp) -> rusqlite::Result<()> {
    let heap = heap.to_string();
    db.prepare_cached("DELETE FROM tags WHERE principal = ? AND heap = ?")?.execute(params![principal, heap])?;
    let mut insert = db.prepare_cached("INSERT INTO tags (principal, heap, key, value, set_at) VALUES (?, ?, ?, ?, ?)")?;
    tags.iter().try_for_each(|(key, value)| insert.execute(params![principal, heap, key, value, at.as_microsecond()]).map(drop))
}

fn of_heap(db: &Connection, principal: &str, heap: &str) -> rusqlite::Result<Tags> {
    db.prepare_cached("SELECT key, value FROM tags WHERE principal = ? AND heap = ?")?
        .query_map(params![principal, heap], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn find(db: &Connection, principal: &str, query: &TagQuery) -> rusqlite::Result<(Vec<TaggedHeap>, bool)> {
    let after = query.after.map(|key| key.to_string()).unwrap_or_default();
    let mut rarest: Option<(i64, &String, &String)> = None;
    for (key, value) in &query.pairs {
        let count: i64 = db
            .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM tags WHERE principal = ? AND key = ? AND value = ? LIMIT ?)")?
            .query_row(params![principal, key, value, COUNTED_MAX], |row| row.get(0))?;
        if rarest.is_none_or(|(least, ..)| count < least) {
            rarest = Some((count, key, value));
        }
    }
    // The rarest pair is looked up in the index; the others are checked on the heaps that it finds.
    let mut statement = match rarest {
        Some(_) => {
            db.prepare_cached("SELECT heap FROM tags WHERE principal = ?1 AND key = ?3 AND value = ?4 AND heap > ?2 ORDER BY heap")?
        }
        None => db.prepare_cached("SELECT DISTINCT heap FROM tags WHERE principal = ?1 AND heap > ?2 ORDER BY heap")?,
    };
    let mut rows = match rarest {
        Some((_, key, value)) => statement.query(params![principal, after, key, value])?,
        None => statement.query(params![principal, after])?,
    };
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let tags = of_heap(db, principal, row.get_ref(0)?.as_str()?)?;
        if !query.pairs.iter().all(|(key, value)| tags.get(key) == Some(value)) {
            continue;
        }
        if query.limit.is_some_and(|limit| found.len() >= limit as usize) {
            return Ok((found, true));
        }
        if let Some(heap) = heap_key(row, 0)? {
            found.push(TaggedHeap { heap, tags });
        }
    }
    Ok((found, false))
}
