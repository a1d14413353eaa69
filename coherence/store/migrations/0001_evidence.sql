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
