-- Sessions, their events, what was read and decided at each tick, and the chain of hashes over all events.
-- Every rule that can be held by the database itself is held here, so that no other program can break it unnoticed.

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  session TEXT NOT NULL CHECK (typeof(session) = 'text' AND length(session) > 0),
  agent TEXT NOT NULL CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  parent TEXT CHECK (parent IS NULL OR typeof(parent) = 'text'),
  source TEXT NOT NULL CHECK (source IN ('hook', 'wrap', 'replay', 'test', 'api')),
  started REAL NOT NULL CHECK (typeof(started) = 'real' AND started > -1e18 AND started < 1e18),
  config TEXT NOT NULL CHECK (typeof(config) = 'text' AND json_valid(config)),
  UNIQUE (agent, session)
);

-- The last number given out in each session. It outlives the events that retention removes, so numbers never repeat.
CREATE TABLE heads (
  session_id INTEGER PRIMARY KEY REFERENCES sessions (id),
  last_seq INTEGER NOT NULL CHECK (typeof(last_seq) = 'integer' AND last_seq >= 0)
);

CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  agent TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
  ts REAL NOT NULL CHECK (typeof(ts) = 'real' AND ts > -1e18 AND ts < 1e18),
  kind TEXT NOT NULL CHECK (typeof(kind) = 'text' AND length(kind) > 0),
  source TEXT NOT NULL CHECK (source IN ('hook', 'wrap', 'replay', 'test', 'api')),
  data TEXT NOT NULL CHECK (typeof(data) = 'text' AND json_valid(data)),
  prev_hash BLOB NOT NULL CHECK (typeof(prev_hash) = 'blob' AND length(prev_hash) = 32),
  hash BLOB NOT NULL CHECK (typeof(hash) = 'blob' AND length(hash) = 32),
  UNIQUE (session_id, seq)
);

CREATE TABLE readings (
  session_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  ts REAL NOT NULL,
  source TEXT NOT NULL,
  coherence_index REAL CHECK (coherence_index IS NULL OR (typeof(coherence_index) = 'real' AND coherence_index BETWEEN 0 AND 1)),
  band TEXT CHECK (band IS NULL OR typeof(band) = 'text'),
  pressure REAL CHECK (pressure IS NULL OR (typeof(pressure) = 'real' AND pressure > -1e308 AND pressure < 1e308)),
  mode TEXT CHECK (mode IS NULL OR typeof(mode) = 'text'),
  data TEXT NOT NULL CHECK (typeof(data) = 'text' AND json_valid(data)),
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id, seq) REFERENCES events (session_id, seq)
);

CREATE TABLE decisions (
  session_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  ts REAL NOT NULL,
  source TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('continue', 'guide', 'warn', 'block')),
  data TEXT NOT NULL CHECK (typeof(data) = 'text' AND json_valid(data)),
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id, seq) REFERENCES events (session_id, seq)
);

-- How many events there are, the newest hash, and where the kept chain begins: retention removes the oldest events.
CREATE TABLE chain (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  count INTEGER NOT NULL CHECK (typeof(count) = 'integer' AND count >= 0),
  head BLOB NOT NULL CHECK (typeof(head) = 'blob' AND length(head) = 32),
  first_id INTEGER NOT NULL CHECK (typeof(first_id) = 'integer' AND first_id >= 1),
  first_prev BLOB NOT NULL CHECK (typeof(first_prev) = 'blob' AND length(first_prev) = 32)
);
INSERT INTO chain VALUES (1, 0, zeroblob(32), 1, zeroblob(32));

-- A row in here while retention runs; it never outlives the transaction that put it there.
CREATE TABLE maintenance (id INTEGER PRIMARY KEY CHECK (id = 1));

CREATE TRIGGER sessions_begin AFTER INSERT ON sessions BEGIN
  INSERT INTO heads VALUES (NEW.id, 0);
END;
CREATE TRIGGER sessions_replace BEFORE INSERT ON sessions BEGIN
  SELECT RAISE(ABORT, 'a session is never replaced') WHERE EXISTS (
    SELECT 1 FROM sessions WHERE id = NEW.id OR (agent = NEW.agent AND session = NEW.session));
END;
CREATE TRIGGER sessions_update BEFORE UPDATE ON sessions BEGIN
  SELECT RAISE(ABORT, 'a session is never changed');
END;
CREATE TRIGGER sessions_delete BEFORE DELETE ON sessions BEGIN
  SELECT RAISE(ABORT, 'a session is never deleted');
END;

CREATE TRIGGER heads_replace BEFORE INSERT ON heads BEGIN
  SELECT RAISE(ABORT, 'the last seq of a session is never replaced')
  WHERE NEW.last_seq <> 0 OR EXISTS (SELECT 1 FROM heads WHERE session_id = NEW.session_id);
END;
CREATE TRIGGER heads_update BEFORE UPDATE ON heads BEGIN
  SELECT RAISE(ABORT, 'the last seq of a session only grows by one')
  WHERE NEW.session_id <> OLD.session_id OR NEW.last_seq <> OLD.last_seq + 1;
END;
CREATE TRIGGER heads_delete BEFORE DELETE ON heads BEGIN
  SELECT RAISE(ABORT, 'the last seq of a session is never deleted');
END;

CREATE TRIGGER events_insert BEFORE INSERT ON events BEGIN
  SELECT RAISE(ABORT, 'seq must be the last seq of its session plus one')
  WHERE NOT EXISTS (SELECT 1 FROM heads WHERE session_id = NEW.session_id AND last_seq = NEW.seq - 1);
  SELECT RAISE(ABORT, 'agent and source of an event must be those of its session')
  WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = NEW.session_id AND agent = NEW.agent AND source = NEW.source);
  SELECT RAISE(ABORT, 'an event is never replaced') WHERE EXISTS (SELECT 1 FROM events WHERE id = NEW.id);
END;
CREATE TRIGGER events_inserted AFTER INSERT ON events BEGIN
  UPDATE heads SET last_seq = NEW.seq WHERE session_id = NEW.session_id;
END;
CREATE TRIGGER events_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'an event is never changed');
END;
CREATE TRIGGER events_delete BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM maintenance) BEGIN
  SELECT RAISE(ABORT, 'events are deleted by retention only');
END;

CREATE TRIGGER readings_insert BEFORE INSERT ON readings BEGIN
  SELECT RAISE(ABORT, 'ts and source of a reading must be those of its event')
  WHERE NOT EXISTS (SELECT 1 FROM events AS e
    WHERE e.session_id = NEW.session_id AND e.seq = NEW.seq AND e.ts = NEW.ts AND e.source = NEW.source);
  SELECT RAISE(ABORT, 'a reading is never replaced')
  WHERE EXISTS (SELECT 1 FROM readings WHERE session_id = NEW.session_id AND seq = NEW.seq);
END;
CREATE TRIGGER readings_update BEFORE UPDATE ON readings BEGIN
  SELECT RAISE(ABORT, 'a reading is never changed');
END;
CREATE TRIGGER readings_delete BEFORE DELETE ON readings WHEN NOT EXISTS (SELECT 1 FROM maintenance) BEGIN
  SELECT RAISE(ABORT, 'readings are deleted by retention only');
END;

CREATE TRIGGER decisions_insert BEFORE INSERT ON decisions BEGIN
  SELECT RAISE(ABORT, 'ts and source of a decision must be those of its event')
  WHERE NOT EXISTS (SELECT 1 FROM events AS e
    WHERE e.session_id = NEW.session_id AND e.seq = NEW.seq AND e.ts = NEW.ts AND e.source = NEW.source);
  SELECT RAISE(ABORT, 'a decision is never replaced')
  WHERE EXISTS (SELECT 1 FROM decisions WHERE session_id = NEW.session_id AND seq = NEW.seq);
END;
CREATE TRIGGER decisions_update BEFORE UPDATE ON decisions BEGIN
  SELECT RAISE(ABORT, 'a decision is never changed');
END;
CREATE TRIGGER decisions_delete BEFORE DELETE ON decisions WHEN NOT EXISTS (SELECT 1 FROM maintenance) BEGIN
  SELECT RAISE(ABORT, 'decisions are deleted by retention only');
END;

CREATE TRIGGER chain_delete BEFORE DELETE ON chain BEGIN
  SELECT RAISE(ABORT, 'the head of the chain is never deleted');
END;
CREATE TRIGGER chain_replace BEFORE INSERT ON chain BEGIN
  SELECT RAISE(ABORT, 'the head of the chain is never replaced') WHERE EXISTS (SELECT 1 FROM chain);
END;

-- What statistics may count: the package's own tests and a user's are left out.
CREATE VIEW statistics_events AS SELECT * FROM events WHERE source <> 'test';
CREATE VIEW statistics_readings AS SELECT * FROM readings WHERE source <> 'test';
CREATE VIEW statistics_decisions AS SELECT * FROM decisions WHERE source <> 'test';

-- For people: one line an event, oldest first.
CREATE VIEW log AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%fZ', e.ts, 'unixepoch') AS time,
  e.agent AS agent,
  s.session AS session,
  e.seq AS seq,
  e.kind AS kind,
  json_extract(e.data, '$."gen_ai.tool.name"') AS tool,
  r.coherence_index AS "index",
  r.band AS band,
  r.pressure AS pressure,
  r.mode AS mode,
  d.kind AS decision
FROM events AS e
JOIN sessions AS s ON s.id = e.session_id
LEFT JOIN readings AS r ON r.session_id = e.session_id AND r.seq = e.seq
LEFT JOIN decisions AS d ON d.session_id = e.session_id AND d.seq = e.seq
ORDER BY e.id;

-- What can be computed again from the events, kept so that nobody has to: states, vectors, an agent's own normal.

CREATE TABLE snapshots (
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 0),
  data BLOB NOT NULL CHECK (typeof(data) = 'blob'),
  PRIMARY KEY (session_id, seq)
);

CREATE TABLE vectors (
  fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text' AND length(fingerprint) > 0),
  hash BLOB NOT NULL CHECK (typeof(hash) = 'blob'),
  vector BLOB NOT NULL CHECK (typeof(vector) = 'blob'),
  PRIMARY KEY (fingerprint, hash)
) WITHOUT ROWID;

CREATE TABLE baselines (
  agent TEXT NOT NULL PRIMARY KEY CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  ts REAL NOT NULL CHECK (typeof(ts) = 'real' AND ts > -1e18 AND ts < 1e18),
  data BLOB NOT NULL CHECK (typeof(data) = 'blob')
);

-- Randomised firings of patterns and what came of them: the record of an experiment, kept when its events have left.
-- Positions (event_id, delivered_id) are those of events in the store; they order the record and never repeat.

CREATE TABLE firings (
  firing_id TEXT NOT NULL PRIMARY KEY CHECK (typeof(firing_id) = 'text' AND length(firing_id) > 0),
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  event_id INTEGER NOT NULL,
  agent TEXT NOT NULL,
  pattern TEXT NOT NULL CHECK (typeof(pattern) = 'text' AND length(pattern) > 0),
  pair INTEGER CHECK (pair IS NULL OR (typeof(pair) = 'integer' AND pair >= 0)),
  arm TEXT NOT NULL CHECK (arm IN ('treatment', 'control')),
  delivered INTEGER NOT NULL DEFAULT 0 CHECK (typeof(delivered) = 'integer' AND delivered IN (0, 1)),
  delivered_id INTEGER CHECK (delivered_id IS NULL OR typeof(delivered_id) = 'integer'),
  text TEXT NOT NULL CHECK (typeof(text) = 'text'),
  ts REAL NOT NULL,
  source TEXT NOT NULL,
  UNIQUE (session_id, seq),
  CHECK (delivered = (delivered_id IS NOT NULL)),
  CHECK (delivered = 0 OR arm = 'treatment')
) WITHOUT ROWID;

CREATE TABLE firing_outcomes (
  firing_id TEXT NOT NULL REFERENCES firings (firing_id),
  horizon INTEGER NOT NULL CHECK (typeof(horizon) = 'integer' AND horizon IN (0, 1, 5, 10)),
  event_id INTEGER NOT NULL,
  pressure_change REAL CHECK (pressure_change IS NULL OR (typeof(pressure_change) = 'real' AND pressure_change BETWEEN -1 AND 1)),
  error_resolved INTEGER CHECK (error_resolved IS NULL OR (typeof(error_resolved) = 'integer' AND error_resolved IN (0, 1))),
  tool_switched INTEGER CHECK (tool_switched IS NULL OR (typeof(tool_switched) = 'integer' AND tool_switched IN (0, 1))),
  task_success INTEGER CHECK (task_success IS NULL OR (typeof(task_success) = 'integer' AND task_success IN (0, 1))),
  PRIMARY KEY (firing_id, horizon)
) WITHOUT ROWID;

CREATE INDEX firings_by_pattern ON firings (pattern, agent, pair);

CREATE TRIGGER firings_insert BEFORE INSERT ON firings BEGIN
  SELECT RAISE(ABORT, 'agent, ts, source and position of a firing must be those of its event')
  WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.session_id = NEW.session_id AND e.seq = NEW.seq
    AND e.id = NEW.event_id AND e.agent = NEW.agent AND e.ts = NEW.ts AND e.source = NEW.source);
  SELECT RAISE(ABORT, 'a firing begins undelivered') WHERE NEW.delivered <> 0;
  SELECT RAISE(ABORT, 'a firing is never replaced, nor its id used again') WHERE EXISTS (
    SELECT 1 FROM firings WHERE firing_id = NEW.firing_id OR (session_id = NEW.session_id AND seq = NEW.seq));
END;
CREATE TRIGGER firings_update BEFORE UPDATE ON firings BEGIN
  SELECT RAISE(ABORT, 'a firing is never changed, except that its delivery is confirmed once')
  WHERE OLD.delivered <> 0 OR NEW.delivered <> 1
    OR NEW.firing_id IS NOT OLD.firing_id OR NEW.session_id IS NOT OLD.session_id OR NEW.seq IS NOT OLD.seq
    OR NEW.event_id IS NOT OLD.event_id OR NEW.agent IS NOT OLD.agent OR NEW.pattern IS NOT OLD.pattern
    OR NEW.pair IS NOT OLD.pair OR NEW.arm IS NOT OLD.arm OR NEW.text IS NOT OLD.text OR NEW.ts IS NOT OLD.ts
    OR NEW.source IS NOT OLD.source;
  SELECT RAISE(ABORT, 'a delivery is confirmed by an event after the firing')
  WHERE NOT EXISTS (SELECT 1 FROM events WHERE id = NEW.delivered_id AND id > OLD.event_id);
END;
CREATE TRIGGER firings_delete BEFORE DELETE ON firings BEGIN
  SELECT RAISE(ABORT, 'a firing is never deleted');
END;

CREATE TRIGGER firing_outcomes_insert BEFORE INSERT ON firing_outcomes BEGIN
  SELECT RAISE(ABORT, 'an outcome is known by an event after its firing')
  WHERE NOT EXISTS (SELECT 1 FROM firings AS f JOIN events AS e ON e.id = NEW.event_id
    WHERE f.firing_id = NEW.firing_id AND e.id > f.event_id);
  SELECT RAISE(ABORT, 'an outcome is never replaced') WHERE EXISTS (
    SELECT 1 FROM firing_outcomes WHERE firing_id = NEW.firing_id AND horizon = NEW.horizon);
END;
CREATE TRIGGER firing_outcomes_update BEFORE UPDATE ON firing_outcomes BEGIN
  SELECT RAISE(ABORT, 'an outcome is never changed');
END;
CREATE TRIGGER firing_outcomes_delete BEFORE DELETE ON firing_outcomes BEGIN
  SELECT RAISE(ABORT, 'an outcome is never deleted');
END;

-- What statistics may count: the package's own tests and a user's are left out.
CREATE VIEW statistics_firings AS SELECT * FROM firings WHERE source <> 'test';
CREATE VIEW statistics_firing_outcomes AS
SELECT o.* FROM firing_outcomes AS o JOIN firings AS f ON f.firing_id = o.firing_id WHERE f.source <> 'test';

-- Who relies on whom among the agents of this store, as far as outcomes have taught it; one row, the newest state.

CREATE TABLE trust (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  ts REAL NOT NULL CHECK (typeof(ts) = 'real' AND ts > -1e18 AND ts < 1e18),
  data TEXT NOT NULL CHECK (typeof(data) = 'text' AND json_valid(data))
);

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

-- How an agent's runs went and how far each metric rose within them: what thresholds and weights are learned from.
-- Written beside the events, kept when they have left. A run is a task: a session holds one, and one more after each outcome.

CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  session TEXT NOT NULL CHECK (typeof(session) = 'text' AND length(session) > 0),
  run INTEGER NOT NULL CHECK (typeof(run) = 'integer' AND run >= 1),
  outcome INTEGER CHECK (outcome IS NULL OR (typeof(outcome) = 'integer' AND outcome IN (0, 1))),
  label INTEGER CHECK (label IS NULL OR (typeof(label) = 'integer' AND label IN (0, 1))),
  known INTEGER CHECK (known IS NULL OR (typeof(known) = 'integer' AND known >= 1)),
  mixed INTEGER NOT NULL DEFAULT 0 CHECK (mixed IN (0, 1)), -- told by several at once: teaches nothing
  UNIQUE (agent, session, run)
);
CREATE INDEX runs_by_known ON runs (agent, known);

CREATE TABLE run_maxima (
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  metric TEXT NOT NULL CHECK (typeof(metric) = 'text' AND length(metric) > 0),
  version TEXT NOT NULL CHECK (typeof(version) = 'text'),
  risk REAL NOT NULL CHECK (typeof(risk) = 'real' AND risk BETWEEN 0 AND 1),
  PRIMARY KEY (run_id, metric, version)
) WITHOUT ROWID;

-- What was learned from runs that have left, up to and including the one that became known as number "through".
CREATE TABLE calibrations (
  agent TEXT NOT NULL PRIMARY KEY CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  through INTEGER NOT NULL CHECK (typeof(through) = 'integer' AND through >= 0),
  data BLOB NOT NULL CHECK (typeof(data) = 'blob')
);

-- What was learned from runs that are still here, so that it need not be learned again at each opening, and which of them
-- have had their label changed. Whatever changes what one of these runs teaches, by whichever program, takes away what was
-- learned from it.

-- "key" says with which settings; "through" is the place of the newest run in it.
CREATE TABLE calibration_caches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  key TEXT NOT NULL CHECK (typeof(key) = 'text'),
  through INTEGER NOT NULL CHECK (typeof(through) = 'integer' AND through >= 1),
  data BLOB NOT NULL CHECK (typeof(data) = 'blob'),
  UNIQUE (agent, key)
);

CREATE TABLE relabels (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL UNIQUE REFERENCES runs (id) ON DELETE CASCADE
);

CREATE TRIGGER runs_relabelled AFTER UPDATE OF outcome, label, mixed ON runs
WHEN OLD.known IS NOT NULL
  AND (NEW.mixed <> OLD.mixed OR coalesce(NEW.label, NEW.outcome) IS NOT coalesce(OLD.label, OLD.outcome))
BEGIN
  DELETE FROM calibration_caches WHERE agent = OLD.agent AND through >= OLD.known;
  DELETE FROM relabels WHERE run_id = OLD.id;
  INSERT INTO relabels (run_id) VALUES (OLD.id);
END;

CREATE TRIGGER runs_left AFTER DELETE ON runs WHEN OLD.known IS NOT NULL
BEGIN
  DELETE FROM calibration_caches WHERE agent = OLD.agent AND through >= OLD.known;
END;

CREATE TRIGGER maxima_added AFTER INSERT ON run_maxima
BEGIN
  DELETE FROM calibration_caches WHERE agent = (SELECT agent FROM runs WHERE id = NEW.run_id)
    AND through >= (SELECT known FROM runs WHERE id = NEW.run_id);
END;

CREATE TRIGGER maxima_risen AFTER UPDATE OF risk ON run_maxima WHEN NEW.risk <> OLD.risk
BEGIN
  DELETE FROM calibration_caches WHERE agent = (SELECT agent FROM runs WHERE id = NEW.run_id)
    AND through >= (SELECT known FROM runs WHERE id = NEW.run_id);
END;

-- What a guard knows of agents: every call and every decision on a patch, numbered without gaps for each agent, and from time
-- to time the account that follows from them ("data", up to and including number "kept"), so that no start reads them all.
-- "seq" is the newest number: whoever writes compares it first, so that several processes have one order and one patch.
-- "pending" = something is to be done by a process that can, without a call of the agent.

CREATE TABLE guard_agents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL UNIQUE CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  seq INTEGER NOT NULL DEFAULT 0 CHECK (typeof(seq) = 'integer' AND seq >= kept),
  kept INTEGER NOT NULL DEFAULT 0 CHECK (typeof(kept) = 'integer' AND kept >= 0),
  pending INTEGER NOT NULL DEFAULT 0 CHECK (typeof(pending) = 'integer' AND pending IN (0, 1)),
  data BLOB CHECK (typeof(data) IN ('blob', 'null'))
);
CREATE INDEX guard_pending ON guard_agents (id) WHERE pending = 1;

-- "at" is what the wall clock of the writer showed, for reading; order is "seq" alone. "data" is JSON: of a call its
-- arguments, of a decision all of it.
CREATE TABLE guard_trail (
  agent_id INTEGER NOT NULL REFERENCES guard_agents (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
  at REAL NOT NULL CHECK (typeof(at) = 'real'),
  kind TEXT NOT NULL CHECK (typeof(kind) = 'text' AND length(kind) > 0),
  success INTEGER CHECK (success IS NULL OR (typeof(success) = 'integer' AND success IN (0, 1))),
  duration_s REAL CHECK (duration_s IS NULL OR (typeof(duration_s) = 'real' AND duration_s BETWEEN 0 AND 1e12)),
  cost REAL CHECK (cost IS NULL OR (typeof(cost) = 'real' AND cost BETWEEN 0 AND 1e12)),
  coherence_index REAL CHECK (coherence_index IS NULL OR (typeof(coherence_index) = 'real' AND coherence_index BETWEEN 0 AND 1)),
  band TEXT,
  epoch INTEGER CHECK (epoch IS NULL OR (typeof(epoch) = 'integer' AND epoch >= -1)),
  patched INTEGER CHECK (patched IS NULL OR (typeof(patched) = 'integer' AND patched IN (0, 1))),
  task TEXT,
  error TEXT,
  data TEXT CHECK (data IS NULL OR typeof(data) = 'text'),
  CHECK ((kind = 'call') = (success IS NOT NULL)),
  PRIMARY KEY (agent_id, seq)
) WITHOUT ROWID;
CREATE INDEX guard_decisions ON guard_trail (agent_id, seq) WHERE kind <> 'call';

-- How far plain files hold copies of the trails: "file" is where they are, "seq" the newest number that was written there.
CREATE TABLE guard_copies (
  file TEXT NOT NULL CHECK (typeof(file) = 'text' AND length(file) > 0),
  agent_id INTEGER NOT NULL REFERENCES guard_agents (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
  PRIMARY KEY (file, agent_id)
) WITHOUT ROWID;
