-- Lessons: errors that were fixed once. Whatever finds them quickly (the vector index beside this file) can be made from
-- these tables. Signatures and slots are 64-bit digests; `used` is a clock of its own, so that no wall clock decides what
-- has not been used for longest; `token` tells an index file of these lessons from one of others; `form` numbers the normal form that a shape is in.

CREATE TABLE lessons (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  identity BLOB NOT NULL UNIQUE CHECK (typeof(identity) = 'blob' AND length(identity) = 16),
  signature INTEGER NOT NULL CHECK (typeof(signature) = 'integer'),
  slots INTEGER NOT NULL CHECK (typeof(slots) = 'integer'),
  names BLOB NOT NULL CHECK (typeof(names) = 'blob'),
  pattern TEXT NOT NULL CHECK (typeof(pattern) = 'text'),
  tool TEXT NOT NULL CHECK (typeof(tool) = 'text'),
  error_text TEXT NOT NULL CHECK (typeof(error_text) = 'text' AND length(error_text) > 0),
  fix_text TEXT NOT NULL CHECK (typeof(fix_text) = 'text' AND length(fix_text) > 0),
  shape TEXT NOT NULL CHECK (typeof(shape) = 'text' AND json_valid(shape)),
  form INTEGER NOT NULL CHECK (typeof(form) = 'integer'),
  count INTEGER NOT NULL DEFAULT 1 CHECK (typeof(count) = 'integer' AND count > 0),
  helped INTEGER NOT NULL DEFAULT 0 CHECK (typeof(helped) = 'integer' AND helped >= 0),
  failed INTEGER NOT NULL DEFAULT 0 CHECK (typeof(failed) = 'integer' AND failed >= 0),
  retired INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
  created REAL NOT NULL CHECK (typeof(created) = 'real' AND created > -1e18 AND created < 1e18),
  seen REAL NOT NULL CHECK (typeof(seen) = 'real' AND seen > -1e18 AND seen < 1e18),
  used INTEGER NOT NULL CHECK (typeof(used) = 'integer')
);
CREATE INDEX lessons_by_signature ON lessons (signature, slots);
CREATE INDEX lessons_by_use ON lessons (used);
CREATE INDEX lessons_by_form ON lessons (form);

CREATE TABLE lesson_slots (
  signature INTEGER NOT NULL,
  value INTEGER NOT NULL,
  lesson_id INTEGER NOT NULL REFERENCES lessons (id) ON DELETE CASCADE,
  PRIMARY KEY (value, signature, lesson_id)
) WITHOUT ROWID;
CREATE INDEX lesson_slots_by_lesson ON lesson_slots (lesson_id);

CREATE TABLE lesson_vectors (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  lesson_id INTEGER NOT NULL UNIQUE REFERENCES lessons (id) ON DELETE CASCADE,
  vector BLOB NOT NULL CHECK (typeof(vector) = 'blob' AND length(vector) > 0)
);

CREATE TABLE lesson_origins (
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  lesson_id INTEGER NOT NULL REFERENCES lessons (id) ON DELETE CASCADE,
  seqs TEXT NOT NULL CHECK (typeof(seqs) = 'text' AND json_valid(seqs)),
  UNIQUE (agent, session, seq, lesson_id)
);
CREATE INDEX lesson_origins_by_lesson ON lesson_origins (lesson_id);

CREATE TABLE lesson_outcomes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lesson_id INTEGER NOT NULL REFERENCES lessons (id) ON DELETE CASCADE,
  helped INTEGER NOT NULL CHECK (helped IN (0, 1)),
  ts REAL NOT NULL CHECK (typeof(ts) = 'real' AND ts > -1e18 AND ts < 1e18),
  origin TEXT UNIQUE CHECK (origin IS NULL OR typeof(origin) = 'text')
);
CREATE INDEX lesson_outcomes_by_lesson ON lesson_outcomes (lesson_id);

CREATE TABLE lesson_removals (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  lesson_id INTEGER NOT NULL
);

-- Events whose lesson somebody removed: folded again, they must not bring it back.
CREATE TABLE lesson_rejected (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  error INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  UNIQUE (agent, session, seq, error)
);

-- Which lessons were changed, so that what a process remembers of them is read again; the newest few.
CREATE TABLE lesson_changes (
  number INTEGER PRIMARY KEY,
  lesson_id INTEGER NOT NULL
);

CREATE TABLE lesson_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  count INTEGER NOT NULL DEFAULT 0,
  clock INTEGER NOT NULL DEFAULT 0,
  token TEXT NOT NULL DEFAULT (lower(hex(randomblob(8)))),
  fingerprint TEXT,
  dimensions INTEGER
);
INSERT INTO lesson_state (id) VALUES (1);

CREATE TRIGGER lessons_added AFTER INSERT ON lessons BEGIN
  UPDATE lesson_state SET count = count + 1;
END;
CREATE TRIGGER lessons_changed AFTER UPDATE OF identity, signature, slots, names, pattern, tool, error_text, fix_text,
  shape, count, helped, failed, retired, created, seen ON lessons BEGIN
  INSERT INTO lesson_changes (lesson_id) VALUES (OLD.id);
  DELETE FROM lesson_changes WHERE number <= (SELECT max(number) FROM lesson_changes) - 1000;
END;
CREATE TRIGGER lessons_removed AFTER DELETE ON lessons BEGIN
  UPDATE lesson_state SET count = count - 1;
  INSERT INTO lesson_removals (lesson_id) VALUES (OLD.id);
END;
