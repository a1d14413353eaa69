-- A session goes on in a new file when the one it was in is gone: its numbers go on, although the events before are not here.
-- What a user wants purged is wiped where it stands; the rows of its events stay, so that the chain can still be checked.

DROP TRIGGER heads_update;
CREATE TRIGGER heads_update BEFORE UPDATE ON heads WHEN OLD.last_seq > 0 OR NOT EXISTS (SELECT 1 FROM maintenance) BEGIN
  SELECT RAISE(ABORT, 'the last seq of a session only grows by one')
  WHERE NEW.session_id <> OLD.session_id OR NEW.last_seq <> OLD.last_seq + 1;
END;

DROP TRIGGER sessions_update;
CREATE TRIGGER sessions_update BEFORE UPDATE ON sessions BEGIN
  SELECT RAISE(ABORT, 'a session is never changed, except that it is purged')
  WHERE NOT EXISTS (SELECT 1 FROM maintenance) OR NEW.config <> '{"purged":true}'
    OR NEW.id <> OLD.id OR NEW.session <> OLD.session OR NEW.agent <> OLD.agent OR NEW.parent IS NOT OLD.parent
    OR NEW.source <> OLD.source OR NEW.started <> OLD.started;
END;

DROP TRIGGER events_update;
CREATE TRIGGER events_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'an event is never changed, except that it is purged')
  WHERE NOT EXISTS (SELECT 1 FROM maintenance) OR NEW.kind <> 'purged' OR NEW.data <> '{"kind":"purged"}'
    OR NEW.id <> OLD.id OR NEW.session_id <> OLD.session_id OR NEW.agent <> OLD.agent OR NEW.seq <> OLD.seq
    OR NEW.ts <> OLD.ts OR NEW.source <> OLD.source OR NEW.prev_hash <> OLD.prev_hash OR NEW.hash <> OLD.hash;
END;

DROP TRIGGER firings_update;
CREATE TRIGGER firings_update BEFORE UPDATE ON firings
WHEN NEW.text <> '' OR NEW.delivered <> OLD.delivered OR NOT EXISTS (SELECT 1 FROM maintenance) BEGIN
  SELECT RAISE(ABORT, 'a firing is never changed, except that its delivery is confirmed once')
  WHERE OLD.delivered <> 0 OR NEW.delivered <> 1
    OR NEW.firing_id IS NOT OLD.firing_id OR NEW.session_id IS NOT OLD.session_id OR NEW.seq IS NOT OLD.seq
    OR NEW.event_id IS NOT OLD.event_id OR NEW.agent IS NOT OLD.agent OR NEW.pattern IS NOT OLD.pattern
    OR NEW.pair IS NOT OLD.pair OR NEW.arm IS NOT OLD.arm OR NEW.text IS NOT OLD.text OR NEW.ts IS NOT OLD.ts
    OR NEW.source IS NOT OLD.source;
  SELECT RAISE(ABORT, 'a delivery is confirmed by an event after the firing')
  WHERE NOT EXISTS (SELECT 1 FROM events WHERE id = NEW.delivered_id AND id > OLD.event_id);
END;
