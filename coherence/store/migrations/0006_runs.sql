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
