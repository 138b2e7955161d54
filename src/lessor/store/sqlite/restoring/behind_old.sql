-- The replaced store is attached as `old`: go on behind everything that it handed out.
UPDATE task SET epoch = max(epoch, coalesce((SELECT o.epoch FROM old.task AS o WHERE o.id = task.id), 0))
WHERE status NOT IN ('succeeded', 'failed', 'cancelled');
UPDATE repository
SET term = max(term, coalesce((SELECT o.term FROM old.repository AS o WHERE o.id = repository.id), 0)),
  last_number = max(last_number, coalesce((SELECT o.last_number FROM old.repository AS o WHERE o.id = repository.id), 0));
UPDATE counter
SET fence = max(fence, coalesce((SELECT o.fence FROM old.counter AS o WHERE o.repository_id = counter.repository_id), 0));
UPDATE main.sqlite_sequence
SET seq = max(seq, coalesce((SELECT o.seq FROM old.sqlite_sequence AS o WHERE o.name = main.sqlite_sequence.name), 0));
INSERT INTO main.sqlite_sequence (name, seq)
SELECT o.name, o.seq FROM old.sqlite_sequence AS o
WHERE o.name NOT IN (SELECT s.name FROM main.sqlite_sequence AS s);
