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
