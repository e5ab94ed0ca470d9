-- The state after a turn of an opened session that was acknowledged before its heap was stored: the journal holds what leads to it. It has an id
-- of its own, of the form of a heap key, which the log, the journal and the head of the session name instead of one.
CREATE TABLE turn_states (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    principal    TEXT NOT NULL,
    -- The id of the opened session.
    session      TEXT NOT NULL,
    execution_id TEXT NOT NULL UNIQUE,
    -- The heap, once it is stored.
    heap         TEXT,
    -- 1 if the heap of a later turn was stored instead.
    skipped      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX turn_states_by_heap ON turn_states (heap) WHERE heap IS NOT NULL;
CREATE INDEX turn_states_pending ON turn_states (session, seq) WHERE heap IS NULL AND skipped = 0;

CREATE TRIGGER turn_states_of_session AFTER DELETE ON sessions WHEN OLD.sid IS NOT NULL BEGIN
    DELETE FROM turn_states WHERE session = OLD.sid;
END;
CREATE INDEX turn_states_by_session ON turn_states (session);

-- The newest heap of the session that was stored behind a turn: what the session is resumed from.
ALTER TABLE sessions ADD COLUMN checkpoint TEXT;
CREATE INDEX sessions_by_checkpoint ON sessions (checkpoint) WHERE checkpoint IS NOT NULL AND ended_at IS NULL;
