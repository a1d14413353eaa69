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
