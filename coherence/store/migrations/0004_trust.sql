-- Who relies on whom among the agents of this store, as far as outcomes have taught it; one row, the newest state.

CREATE TABLE trust (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  ts REAL NOT NULL CHECK (typeof(ts) = 'real' AND ts > -1e18 AND ts < 1e18),
  data TEXT NOT NULL CHECK (typeof(data) = 'text' AND json_valid(data))
);
