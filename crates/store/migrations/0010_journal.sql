-- What has to be known to repeat a run exactly. An entry stays as long as its execution, and in an opened session as long as the session.
CREATE TABLE journal (
    execution_id     TEXT PRIMARY KEY,
    principal        TEXT NOT NULL,
    -- The id of the opened session that the run was in.
    session          TEXT,
    input_heap       TEXT,
    -- None if the run failed.
    output_heap      TEXT,
    -- The same state, as another engine has written it when it repeated the run.
    rebuilt_heap     TEXT,
    heap_mb          INTEGER NOT NULL,
    timeout_secs     INTEGER NOT NULL,
    output_bytes_max INTEGER NOT NULL,
    engine           TEXT NOT NULL,
    seed             BLOB NOT NULL,
    output_sha256    BLOB NOT NULL,
    -- Of the result, or of the error if the run failed.
    result_sha256    BLOB NOT NULL,
    -- What the entry counts for in the quota of its owner.
    bytes            INTEGER NOT NULL,
    -- The source that was sent.
    code             TEXT NOT NULL,
    -- Clock readings, at most 1 MiB.
    inputs           BLOB NOT NULL
) STRICT;

CREATE INDEX journal_by_heap ON journal (output_heap) WHERE output_heap IS NOT NULL;
CREATE INDEX journal_by_rebuilt_heap ON journal (rebuilt_heap) WHERE rebuilt_heap IS NOT NULL;
CREATE INDEX journal_by_session ON journal (session) WHERE session IS NOT NULL;

-- By a column of its own, because triggers read the whole columns that they name.
CREATE TRIGGER journal_added AFTER INSERT ON journal BEGIN
    INSERT INTO owners (principal, stored_bytes) VALUES (NEW.principal, NEW.bytes)
    ON CONFLICT (principal) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;

CREATE TRIGGER journal_removed AFTER DELETE ON journal BEGIN
    UPDATE owners SET stored_bytes = stored_bytes - OLD.bytes WHERE principal = OLD.principal;
END;

-- An entry of a session outlives its execution, and goes with the session.
CREATE TRIGGER journal_of_execution AFTER DELETE ON executions BEGIN
    DELETE FROM journal WHERE execution_id = OLD.id
        AND (session IS NULL OR NOT EXISTS (SELECT 1 FROM sessions WHERE sid = journal.session));
END;

CREATE TRIGGER journal_of_session AFTER DELETE ON sessions WHEN OLD.sid IS NOT NULL BEGIN
    DELETE FROM journal WHERE session = OLD.sid AND NOT EXISTS (SELECT 1 FROM executions WHERE id = journal.execution_id);
END;
