-- 1 for a turn that was undone: the head of its session was moved back to before it.
ALTER TABLE log ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;
-- The head of the session before a run that started from another heap; empty for a fresh one. Null for other runs: they start from the head.
ALTER TABLE log ADD COLUMN instead_of TEXT;
