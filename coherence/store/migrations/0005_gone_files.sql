-- A session goes on in a new file when the one it was in is gone: its numbers go on, although the events before are not here.

DROP TRIGGER heads_update;
CREATE TRIGGER heads_update BEFORE UPDATE ON heads WHEN OLD.last_seq > 0 OR NOT EXISTS (SELECT 1 FROM maintenance) BEGIN
  SELECT RAISE(ABORT, 'the last seq of a session only grows by one')
  WHERE NEW.session_id <> OLD.session_id OR NEW.last_seq <> OLD.last_seq + 1;
END;
