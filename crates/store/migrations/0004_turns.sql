-- Turns of opened sessions, and stable codes of errors.

-- Who may work in a session, in order of acceptance, across all server processes. A run has its turn from its acceptance to its end.
CREATE TABLE turns (
    seq     INTEGER PRIMARY KEY,
    -- 32 hex digits. The turn of a run has the id of its execution.
    id      TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    -- The server process that has the turn. When that process is gone, so is the turn.
    process TEXT NOT NULL,
    -- 1 if an execution has it, 0 if a logical session is being prepared.
    runs    INTEGER NOT NULL
) STRICT;

CREATE INDEX turns_in_order ON turns (session, seq);

-- Rows that were only there to hold a turn.
DELETE FROM executions WHERE internal = 1;
ALTER TABLE executions DROP COLUMN internal;

INSERT INTO turns (id, session, process, runs)
SELECT executions.id, executions.session, executions.process, 1 FROM executions
JOIN sessions ON sessions.sid = executions.session AND sessions.principal = executions.principal AND sessions.opened = 1
WHERE executions.status = 'running' ORDER BY executions.seq;

ALTER TABLE executions ADD COLUMN error_code TEXT;
