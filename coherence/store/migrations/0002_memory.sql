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
