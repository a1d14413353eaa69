-- The calls and decisions of a guard are events of the chain, one session for each agent. This table says which session,
-- keeps the account that follows from its events up to number "kept", so that no start reads them all, and whether
-- something is to be done by a process that can, without a call of the agent ("pending").

CREATE TABLE guard_accounts (
  session_id INTEGER PRIMARY KEY REFERENCES sessions (id),
  agent TEXT NOT NULL UNIQUE CHECK (typeof(agent) = 'text' AND length(agent) > 0),
  kept INTEGER NOT NULL DEFAULT 0 CHECK (typeof(kept) = 'integer' AND kept >= 0),
  pending INTEGER NOT NULL DEFAULT 0 CHECK (typeof(pending) = 'integer' AND pending IN (0, 1)),
  data BLOB CHECK (typeof(data) IN ('blob', 'null'))
);
CREATE INDEX guard_accounts_pending ON guard_accounts (session_id) WHERE pending = 1;
CREATE INDEX guard_events ON events (session_id, seq) WHERE kind = 'guard';
