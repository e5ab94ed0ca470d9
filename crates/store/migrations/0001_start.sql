-- Executions, tags, and the log of each session. Times are microseconds since 1970, UTC; keys and ids are their hex text.

CREATE TABLE executions (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    principal    TEXT NOT NULL,
    -- The server process that runs it. When that process is gone, a run that is still `running` is lost.
    process      TEXT NOT NULL,
    session      TEXT,
    status       TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    completed_at INTEGER,
    input_heap   TEXT,
    heap         TEXT,
    error        TEXT,
    -- JSON array, or null when there are none.
    warnings     TEXT,
    output_bytes INTEGER NOT NULL DEFAULT 0,
    output_lines INTEGER NOT NULL DEFAULT 0,
    -- Last, because it may be megabytes: reading what stands before it does not touch it.
    result       TEXT
) STRICT;

CREATE INDEX executions_newest ON executions (principal, seq);
CREATE INDEX executions_ended ON executions (completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX executions_by_status ON executions (principal, status, seq);
CREATE INDEX executions_by_session ON executions (principal, session, seq) WHERE session IS NOT NULL;
CREATE INDEX executions_running ON executions (process, input_heap) WHERE status = 'running';

CREATE TABLE tags (
    principal TEXT NOT NULL,
    heap      TEXT NOT NULL,
    key       TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (principal, heap, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_pair ON tags (principal, key, value, heap);
CREATE INDEX tags_by_heap ON tags (heap);

CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY,
    principal  TEXT NOT NULL,
    name       TEXT NOT NULL,
    -- The index of its next entry.
    next_index INTEGER NOT NULL,
    UNIQUE (principal, name)
) STRICT;

CREATE TABLE log (
    session      INTEGER NOT NULL REFERENCES sessions (id),
    idx          INTEGER NOT NULL,
    input_heap   TEXT,
    output_heap  TEXT NOT NULL,
    timestamp    INTEGER NOT NULL,
    execution_id TEXT NOT NULL,
    code         TEXT NOT NULL,
    UNIQUE (session, idx)
) STRICT;

CREATE INDEX log_by_output ON log (output_heap, timestamp);
CREATE INDEX log_by_input ON log (input_heap, timestamp) WHERE input_heap IS NOT NULL;

CREATE TABLE heaps (
    principal    TEXT NOT NULL,
    key          TEXT NOT NULL,
    bytes        INTEGER NOT NULL,
    -- When a run last made it or began from it.
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX heaps_by_key ON heaps (key, last_used_at);

-- One row, written again and again to find out whether writing works.
CREATE TABLE probe (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;
