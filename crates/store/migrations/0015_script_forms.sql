-- How `code`, which is the JavaScript that ran, was made from the source. Null: `code` is that source, as of a run that did not compile, and of
-- all runs of earlier versions.
ALTER TABLE journal ADD COLUMN form BLOB;
