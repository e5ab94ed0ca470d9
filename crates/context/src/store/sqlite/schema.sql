-- Contexts. The time comes before the record, so that it is read without the pages that a long record spills to.
CREATE TABLE context_records (
    session_id BLOB NOT NULL PRIMARY KEY,
    used_at    INTEGER NOT NULL,
    record     BLOB NOT NULL
);
CREATE INDEX context_records_by_use ON context_records (used_at);

-- What could not be read, for somebody to look at.
CREATE TABLE context_quarantine (
    id         INTEGER PRIMARY KEY,
    session_id BLOB NOT NULL,
    at         INTEGER NOT NULL,
    why        TEXT NOT NULL,
    record     BLOB NOT NULL
);

-- The version of these tables, and how the last process that flushed here ended.
CREATE TABLE context_state (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO context_state (name, value) VALUES ('schema_version', 1);
