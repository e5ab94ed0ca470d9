-- Indexes by heap leave out the states of turns, which begin with "heapstead: state" in hex: they are found by `turn_states.id`. A turn of a live
-- session then changes fewer pages.
DROP INDEX sessions_by_head;
CREATE INDEX sessions_by_head ON sessions (head) WHERE head NOT GLOB '6865617073746561643a207374617465*' AND ended_at IS NULL;
DROP INDEX log_by_output;
CREATE INDEX log_by_output ON log (output_heap, timestamp) WHERE output_heap NOT GLOB '6865617073746561643a207374617465*';
DROP INDEX log_by_input;
CREATE INDEX log_by_input ON log (input_heap, timestamp) WHERE input_heap NOT GLOB '6865617073746561643a207374617465*';
DROP INDEX journal_by_heap;
CREATE INDEX journal_by_heap ON journal (output_heap) WHERE output_heap NOT GLOB '6865617073746561643a207374617465*';

CREATE INDEX log_undone ON log (session, output_heap) WHERE undone = 1;
