-- Nothing follows the removals and changes of lessons one by one any more.

DROP TRIGGER lessons_changed;
DROP TRIGGER lessons_removed;
CREATE TRIGGER lessons_removed AFTER DELETE ON lessons BEGIN
  UPDATE lesson_state SET count = count - 1;
END;
DROP TABLE lesson_changes;
DROP TABLE lesson_removals;
