//! Owners in SQLite.

use super::Sqlite;
use super::columns::principal;
use crate::records::{OwnerRecords, RecordsError, Totals};
use async_trait::async_trait;
use heapstead_types::Principal;

#[async_trait]
impl OwnerRecords for Sqlite {
    async fn totals(&self) -> Result<Totals, RecordsError> {
        self.read(|db| {
            db.prepare_cached("SELECT coalesce(sum(sessions), 0), coalesce(sum(heap_bytes), 0) FROM owners")?.query_row([], |row| {
                Ok(Totals { sessions: row.get::<_, i64>(0)?.max(0) as u64, heap_bytes: row.get::<_, i64>(1)?.max(0) as u64 })
            })
        })
        .await
    }

    async fn owners(&self) -> Result<Vec<Principal>, RecordsError> {
        self.read(|db| {
            // One index lookup per owner, however many rows each has.
            db.prepare_cached(
                "WITH RECURSIVE
                 runs (who) AS (SELECT min(principal) FROM executions UNION ALL
                   SELECT (SELECT min(principal) FROM executions WHERE principal > who) FROM runs WHERE who IS NOT NULL),
                 kept (who) AS (SELECT min(principal) FROM heaps UNION ALL
                   SELECT (SELECT min(principal) FROM heaps WHERE principal > who) FROM kept WHERE who IS NOT NULL),
                 tagged (who) AS (SELECT min(principal) FROM tags UNION ALL
                   SELECT (SELECT min(principal) FROM tags WHERE principal > who) FROM tagged WHERE who IS NOT NULL),
                 told (who) AS (SELECT min(principal) FROM sessions UNION ALL
                   SELECT (SELECT min(principal) FROM sessions WHERE principal > who) FROM told WHERE who IS NOT NULL)
                 SELECT who FROM runs WHERE who IS NOT NULL UNION SELECT who FROM kept WHERE who IS NOT NULL
                 UNION SELECT who FROM tagged WHERE who IS NOT NULL UNION SELECT who FROM told WHERE who IS NOT NULL ORDER BY who",
            )?
            .query_map([], |row| principal(row, 0))?
            .collect()
        })
        .await
    }
}
