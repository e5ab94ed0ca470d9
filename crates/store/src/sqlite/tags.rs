//! Tags in SQLite.

use super::columns::heap_key;
use super::{Durability, Sqlite};
use crate::records::{RecordsError, TagQuery, TagRecords, TaggedHeap, Tags};
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal};
use rusqlite::{Connection, params};

#[async_trait]
impl TagRecords for Sqlite {
    async fn tags(&self, principal: &Principal, heap: HeapKey) -> Result<Tags, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| of_heap(db, principal.as_str(), &heap.to_string())).await
    }

    async fn set_tags(&self, principal: &Principal, heap: HeapKey, tags: Tags) -> Result<(), RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| replace(db, principal.as_str(), &heap, &tags)).await
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

pub fn replace(db: &Connection, principal: &str, heap: &HeapKey, tags: &Tags) -> rusqlite::Result<()> {
    let heap = heap.to_string();
    db.prepare_cached("DELETE FROM tags WHERE principal = ? AND heap = ?")?.execute(params![principal, heap])?;
    let mut insert = db.prepare_cached("INSERT INTO tags (principal, heap, key, value) VALUES (?, ?, ?, ?)")?;
    tags.iter().try_for_each(|(key, value)| insert.execute(params![principal, heap, key, value]).map(drop))
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
