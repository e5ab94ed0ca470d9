-- 1 for the import of catalog entities into a session, which is no execution: its id is only here. It produced the heap that the session
-- continued from, and goes with the session.
ALTER TABLE journal ADD COLUMN is_import INTEGER NOT NULL DEFAULT 0;
