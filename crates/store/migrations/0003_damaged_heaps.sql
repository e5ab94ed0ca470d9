-- Heaps that were found damaged and have not been found whole since.
CREATE TABLE damaged_heaps (
    key      TEXT PRIMARY KEY,
    found_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
