-- Retention of everything, and what each owner has stored.

-- When the tags of a heap were set, so that tags on a heap that their owner does not have end.
ALTER TABLE tags ADD COLUMN set_at INTEGER NOT NULL DEFAULT 0;
UPDATE tags SET set_at = unixepoch() * 1000000;
CREATE INDEX tags_by_age ON tags (set_at);

-- When a named session was used last: until now only its log told.
UPDATE sessions SET used_at = max(created_at, coalesce((SELECT max(timestamp) FROM log WHERE session = sessions.id), 0)) WHERE opened = 0;
UPDATE sessions SET used_at = unixepoch() * 1000000 WHERE opened = 0 AND used_at = 0;
CREATE INDEX sessions_named_by_use ON sessions (used_at) WHERE opened = 0 AND ended_at IS NULL;
CREATE INDEX sessions_logical_by_use ON sessions (used_at) WHERE opened = 1 AND expires_at IS NULL AND ended_at IS NULL;
CREATE INDEX execute_sessions_gone ON execute_sessions (expires_at) WHERE gone IS NOT NULL;

-- Refs are never given to another session: the next number is remembered when the newest ref is deleted.
ALTER TABLE owners ADD COLUMN next_ref INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER owner_loses_ref AFTER DELETE ON session_refs BEGIN
    INSERT INTO owners (principal, next_ref) VALUES (OLD.principal, OLD.number + 1)
    ON CONFLICT (principal) DO UPDATE SET next_ref = max(next_ref, excluded.next_ref);
END;

-- Bytes of everything but heaps: what a row holds that may be long, and 512 for each row. Executions and log entries are counted where they
-- are written (`src/sqlite/owners.rs`), because a trigger would read their long columns; the rest is counted by triggers. A tag of more than
-- 600 bytes takes two pages of its own, in the table and in its index.
ALTER TABLE owners ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;

INSERT INTO owners (principal, stored_bytes)
SELECT principal, sum(bytes) FROM (
    SELECT principal, 512 + output_bytes + coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0)
        + coalesce(octet_length(warnings), 0) + coalesce(octet_length(continuity), 0) AS bytes FROM executions
    UNION ALL SELECT principal, 512 + octet_length(code) FROM log JOIN sessions ON sessions.id = log.session
    UNION ALL SELECT principal, 512 + octet_length(name) FROM sessions
    UNION ALL SELECT principal, 512 + octet_length(key) + octet_length(value) + 8192 * (octet_length(key) + octet_length(value) > 600) FROM tags
    UNION ALL SELECT principal, 512 + octet_length(intent) FROM logical_sessions
    UNION ALL SELECT principal, 512 + octet_length(symbols) FROM execute_sessions JOIN logical_sessions ON logical_sessions.id = logical
) WHERE true GROUP BY principal
ON CONFLICT (principal) DO UPDATE SET stored_bytes = excluded.stored_bytes;

CREATE TRIGGER owner_names_session AFTER INSERT ON sessions BEGIN
    INSERT INTO owners (principal, stored_bytes) VALUES (NEW.principal, 512 + octet_length(NEW.name))
    ON CONFLICT (principal) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER owner_renames_session AFTER UPDATE OF name ON sessions BEGIN
    UPDATE owners SET stored_bytes = stored_bytes + octet_length(NEW.name) - octet_length(OLD.name) WHERE principal = NEW.principal;
END;
CREATE TRIGGER owner_deletes_session AFTER DELETE ON sessions BEGIN
    UPDATE owners SET stored_bytes = stored_bytes - 512 - octet_length(OLD.name) WHERE principal = OLD.principal;
END;
CREATE TRIGGER owner_sets_tag AFTER INSERT ON tags BEGIN
    INSERT INTO owners (principal, stored_bytes) VALUES (NEW.principal, 512 + octet_length(NEW.key) + octet_length(NEW.value) + 8192 * (octet_length(NEW.key) + octet_length(NEW.value) > 600))
    ON CONFLICT (principal) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER owner_deletes_tag AFTER DELETE ON tags BEGIN
    UPDATE owners SET stored_bytes = stored_bytes - 512 - octet_length(OLD.key) - octet_length(OLD.value)
        - 8192 * (octet_length(OLD.key) + octet_length(OLD.value) > 600) WHERE principal = OLD.principal;
END;
CREATE TRIGGER owner_gets_logical_session AFTER INSERT ON logical_sessions BEGIN
    INSERT INTO owners (principal, stored_bytes) VALUES (NEW.principal, 512 + octet_length(NEW.intent))
    ON CONFLICT (principal) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER owner_loses_logical_session AFTER DELETE ON logical_sessions BEGIN
    UPDATE owners SET stored_bytes = stored_bytes - 512 - octet_length(OLD.intent) WHERE principal = OLD.principal;
END;
CREATE TRIGGER owner_gets_symbols AFTER INSERT ON execute_sessions BEGIN
    UPDATE owners SET stored_bytes = stored_bytes + 512 + octet_length(NEW.symbols)
    WHERE principal = (SELECT principal FROM logical_sessions WHERE id = NEW.logical);
END;
CREATE TRIGGER owner_changes_symbols AFTER UPDATE OF symbols ON execute_sessions BEGIN
    UPDATE owners SET stored_bytes = stored_bytes + octet_length(NEW.symbols) - octet_length(OLD.symbols)
    WHERE principal = (SELECT principal FROM logical_sessions WHERE id = NEW.logical);
END;
CREATE TRIGGER owner_loses_symbols AFTER DELETE ON execute_sessions BEGIN
    UPDATE owners SET stored_bytes = stored_bytes - 512 - octet_length(OLD.symbols)
    WHERE principal = (SELECT principal FROM logical_sessions WHERE id = OLD.logical);
END;
