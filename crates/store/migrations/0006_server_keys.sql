-- Keys have a purpose: those that encrypt session state, and those that sign heaps. Numbers stay, because sealed states contain them.
ALTER TABLE state_keys RENAME TO server_keys;
ALTER TABLE server_keys ADD COLUMN purpose TEXT NOT NULL DEFAULT 'session_state';
