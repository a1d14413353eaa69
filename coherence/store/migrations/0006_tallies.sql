-- What each session comes to, kept up as its events are written: all of it can be computed from them again, and no text
-- of an agent is in it. Sessions that began before have no tally, or one that does not hold their first events.

CREATE TABLE tallies (
  session_id INTEGER PRIMARY KEY REFERENCES sessions (id),
  event_id INTEGER NOT NULL CHECK (typeof(event_id) = 'integer'), -- position of the newest event that is counted
  data TEXT NOT NULL CHECK (typeof(data) = 'text' AND json_valid(data))
);

-- Measured ticks without their JSON, several in a row of fixed width each, so that the course of a long session can be
-- drawn; the newest wait in the tally.
CREATE TABLE points (
  session_id INTEGER NOT NULL,
  seq INTEGER NOT NULL, -- of the newest of them
  data BLOB NOT NULL CHECK (typeof(data) = 'blob'),
  PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- The few events that are looked for by their kind.
CREATE TABLE marks (
  session_id INTEGER NOT NULL,
  kind TEXT NOT NULL, -- goal, outcome, compaction, refusal, unblock, feedback or finding
  seq INTEGER NOT NULL,
  name TEXT NOT NULL, -- the rule of a finding that began, the tool of a refused call, else empty
  ts REAL NOT NULL,
  PRIMARY KEY (session_id, kind, seq, name)
) WITHOUT ROWID;
