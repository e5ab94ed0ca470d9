-- Lookups by owner and id: with these indexes, an id of another owner costs the same as an id that does not exist.

CREATE INDEX sessions_of_owner ON sessions (principal, sid);
CREATE INDEX logical_sessions_of_owner ON logical_sessions (principal, id);
CREATE INDEX executions_of_owner ON executions (principal, id);
