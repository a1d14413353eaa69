-- What runs that are still here teach is learned again at each opening, and kept nowhere; of them only a changed label is
-- noted.

DROP TRIGGER runs_left;
DROP TRIGGER maxima_added;
DROP TRIGGER maxima_risen;
DROP TRIGGER runs_relabelled;
CREATE TRIGGER runs_relabelled AFTER UPDATE OF outcome, label, mixed ON runs
WHEN OLD.known IS NOT NULL
  AND (NEW.mixed <> OLD.mixed OR coalesce(NEW.label, NEW.outcome) IS NOT coalesce(OLD.label, OLD.outcome))
BEGIN
  DELETE FROM relabels WHERE run_id = OLD.id;
  INSERT INTO relabels (run_id) VALUES (OLD.id);
END;
DROP TABLE calibration_caches;
