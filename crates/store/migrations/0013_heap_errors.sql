-- Why the heap of a turn is still pending: the last attempt to store it, or that of a later turn, has failed.
ALTER TABLE turn_states ADD COLUMN heap_error TEXT;
