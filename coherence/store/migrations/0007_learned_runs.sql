-- What was learned from runs that are still here, so that it need not be learned again at each opening, and which of them
-- have had their label changed. Whatever changes what one of these runs teaches, by whichever program, takes away what was
-- learned from it.

ALTER TABLE runs ADD COLUMN mixed INTEGER NOT NULL DEFAULT 0 CHECK (mixed IN (0, 1)); -- told by several at once: teaches nothing

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
