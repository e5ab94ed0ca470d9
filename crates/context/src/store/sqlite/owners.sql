-- Version 2: who a context is counted for, and how many bytes each owner has: its records, and 512 for each. Contexts of version 1 have no
-- owner and count for nobody until they are written again.
ALTER TABLE context_records ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE TABLE context_owners (owner TEXT NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;

CREATE TRIGGER context_owner_gets AFTER INSERT ON context_records WHEN NEW.owner <> '' BEGIN
    INSERT INTO context_owners (owner, bytes) VALUES (NEW.owner, 512 + octet_length(NEW.record))
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER context_owner_changes AFTER UPDATE OF record, owner ON context_records BEGIN
    UPDATE context_owners SET bytes = bytes - 512 - octet_length(OLD.record) WHERE owner = OLD.owner;
    INSERT INTO context_owners (owner, bytes) SELECT NEW.owner, 512 + octet_length(NEW.record) WHERE NEW.owner <> ''
    ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
    DELETE FROM context_owners WHERE owner = OLD.owner AND bytes <= 0;
END;
CREATE TRIGGER context_owner_loses AFTER DELETE ON context_records BEGIN
    UPDATE context_owners SET bytes = bytes - 512 - octet_length(OLD.record) WHERE owner = OLD.owner;
    DELETE FROM context_owners WHERE owner = OLD.owner AND bytes <= 0;
END;

UPDATE context_state SET value = 2 WHERE name = 'schema_version';
