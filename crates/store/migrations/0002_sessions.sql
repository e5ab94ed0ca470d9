-- Sessions that have a head, owners' quotas, and the tasks that hosts name by intent.

-- What every session is known by: 64 hex digits. One that was opened has no other name, so it is its name too.
ALTER TABLE sessions ADD COLUMN sid TEXT;
UPDATE sessions SET sid = lower(hex(randomblob(32)));
CREATE UNIQUE INDEX sessions_by_sid ON sessions (sid);

ALTER TABLE sessions ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
-- The connection that an anonymous caller opened it on.
ALTER TABLE sessions ADD COLUMN connection TEXT;
-- The heap that its next run goes on from.
ALTER TABLE sessions ADD COLUMN head TEXT;
ALTER TABLE sessions ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
-- Null for those that last as long as something refers to them.
ALTER TABLE sessions ADD COLUMN expires_at INTEGER;
ALTER TABLE sessions ADD COLUMN ended_at INTEGER;

CREATE INDEX sessions_opened ON sessions (principal, id) WHERE opened = 1 AND ended_at IS NULL;
CREATE INDEX sessions_expiring ON sessions (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_by_head ON sessions (head) WHERE head IS NOT NULL AND ended_at IS NULL;
CREATE INDEX executions_running_in ON executions (session, seq) WHERE status = 'running' AND session IS NOT NULL;

-- Set for runs that prepare a session and that nobody asked for: they are there while they run, for the order of turns, and gone when they end.
ALTER TABLE executions ADD COLUMN internal INTEGER NOT NULL DEFAULT 0;
-- What the run found out about the continuity of its session, as JSON.
ALTER TABLE executions ADD COLUMN continuity TEXT;

-- What each owner has, kept up by triggers so that a quota costs one look.
CREATE TABLE owners (
    principal  TEXT PRIMARY KEY,
    sessions   INTEGER NOT NULL DEFAULT 0,
    heap_bytes INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

INSERT INTO owners (principal, heap_bytes) SELECT principal, sum(bytes) FROM heaps GROUP BY principal;

CREATE TRIGGER owner_gets_heap AFTER INSERT ON heaps BEGIN
    INSERT INTO owners (principal, heap_bytes) VALUES (NEW.principal, NEW.bytes)
    ON CONFLICT (principal) DO UPDATE SET heap_bytes = heap_bytes + NEW.bytes;
END;
CREATE TRIGGER owner_loses_heap AFTER DELETE ON heaps BEGIN
    UPDATE owners SET heap_bytes = heap_bytes - OLD.bytes WHERE principal = OLD.principal;
END;
CREATE TRIGGER owner_opens_session AFTER INSERT ON sessions WHEN NEW.opened = 1 BEGIN
    INSERT INTO owners (principal, sessions) VALUES (NEW.principal, 1)
    ON CONFLICT (principal) DO UPDATE SET sessions = sessions + 1;
END;
CREATE TRIGGER owner_ends_session AFTER UPDATE OF ended_at ON sessions
WHEN NEW.opened = 1 AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
    UPDATE owners SET sessions = sessions - 1 WHERE principal = NEW.principal;
END;

-- A task that a host names by its intent. It outlives what it is bound to.
CREATE TABLE logical_sessions (
    -- A UUID.
    id        TEXT PRIMARY KEY,
    session   INTEGER NOT NULL UNIQUE REFERENCES sessions (id),
    principal TEXT NOT NULL,
    -- Empty, or the connection of an anonymous caller: intents of different scopes are different tasks.
    scope     TEXT NOT NULL,
    intent    TEXT NOT NULL,
    -- The execute session it is bound to.
    execute   TEXT,
    -- The process that used it last: another one brings its state back from the snapshot.
    process   TEXT NOT NULL,
    -- What broke its continuity and has not been told yet, as JSON.
    untold    TEXT,
    UNIQUE (principal, scope, intent)
) STRICT, WITHOUT ROWID;

-- A symbol space and the heap it lives in.
CREATE TABLE execute_sessions (
    -- 32 hex digits.
    id          TEXT PRIMARY KEY,
    logical     TEXT NOT NULL REFERENCES logical_sessions (id),
    -- An open may take this one up again only where this is the same.
    reuse_key   TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
    -- Symbols, and the catalogs they were taken from, as JSON.
    symbols     TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    -- The head of its session when another took its place.
    head        TEXT,
    expires_at  INTEGER NOT NULL,
    -- Why it is gone, once it is.
    gone        TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX execute_sessions_to_reuse ON execute_sessions (reuse_key) WHERE gone IS NULL;
CREATE INDEX execute_sessions_expiring ON execute_sessions (expires_at) WHERE gone IS NULL;
CREATE INDEX execute_sessions_of ON execute_sessions (logical);
CREATE INDEX execute_sessions_by_head ON execute_sessions (head) WHERE head IS NOT NULL AND gone IS NULL;

-- Short names of logical sessions where there is no connection to keep them: s0, s1 … of each owner.
CREATE TABLE session_refs (
    principal TEXT NOT NULL,
    number    INTEGER NOT NULL,
    logical   TEXT NOT NULL REFERENCES logical_sessions (id),
    PRIMARY KEY (principal, number),
    UNIQUE (principal, logical)
) STRICT, WITHOUT ROWID;

-- Keys that seal what clients carry. The newest seals, all open.
CREATE TABLE state_keys (
    id         INTEGER PRIMARY KEY,
    key        BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
