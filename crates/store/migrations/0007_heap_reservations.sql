-- What an owner knows about each of its heaps, and heaps that are being stored or removed.

-- When this owner stored it last.
ALTER TABLE heaps ADD COLUMN stored_at INTEGER NOT NULL DEFAULT 0;
UPDATE heaps SET stored_at = last_used_at;
-- The engine that this owner's run or import named; null if none was named. Empty if a run of an earlier version stored it: then its file has it.
ALTER TABLE heaps ADD COLUMN engine TEXT;
UPDATE heaps SET engine = '' WHERE (principal, key) IN (
    SELECT principal, heap FROM executions WHERE heap IS NOT NULL
    UNION ALL SELECT sessions.principal, log.output_heap FROM log JOIN sessions ON sessions.id = log.session);

-- A heap that is being stored. It is written before the heap gets its name in the store, and the record of the heap takes its place.
CREATE TABLE heap_reservations (
    -- 32 hex digits.
    id         TEXT PRIMARY KEY,
    principal  TEXT NOT NULL,
    -- Null until it is known.
    key        TEXT,
    bytes      INTEGER NOT NULL,
    -- Whether the file has to be removed if nothing else names it: 1 if it was not there before, 0 if it was, null if that is not known.
    ours       INTEGER,
    -- The server process that stores it. Null if it was given up and it is not known yet whether there is a file to remove.
    process    TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX heap_reservations_by_key ON heap_reservations (key) WHERE key IS NOT NULL;

-- A heap whose file is being removed: no record and no reservation names it.
CREATE TABLE heap_removals (
    -- Never used again, so that it names one attempt.
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    key     TEXT NOT NULL UNIQUE,
    -- 1 if a file that was stored within the retention of heaps stays: another database may have it.
    only_old INTEGER NOT NULL,
    -- The server process that is removing it. Null if it has to be tried again.
    process TEXT
) STRICT;

ALTER TABLE owners ADD COLUMN reserved_bytes INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER owner_reserves AFTER INSERT ON heap_reservations BEGIN
    INSERT INTO owners (principal, reserved_bytes) VALUES (NEW.principal, NEW.bytes)
    ON CONFLICT (principal) DO UPDATE SET reserved_bytes = reserved_bytes + NEW.bytes;
END;
CREATE TRIGGER owner_changes_reservation AFTER UPDATE OF bytes ON heap_reservations BEGIN
    UPDATE owners SET reserved_bytes = reserved_bytes + NEW.bytes - OLD.bytes WHERE principal = NEW.principal;
END;
CREATE TRIGGER owner_ends_reservation AFTER DELETE ON heap_reservations BEGIN
    UPDATE owners SET reserved_bytes = reserved_bytes - OLD.bytes WHERE principal = OLD.principal;
END;
