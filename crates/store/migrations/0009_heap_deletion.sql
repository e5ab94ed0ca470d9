-- Whether the file of a heap goes when its last owner deletes it: 1 if this database stored it first, 0 if it was there before, null if that is
-- not known, as for heaps of earlier versions and in object stores.
ALTER TABLE heaps ADD COLUMN ours INTEGER;
