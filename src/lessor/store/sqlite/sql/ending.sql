-- name: complete_leases
-- `now` was read when the file was locked: nothing waits here, so judging row by row is right.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, asked)
SELECT l.id, l.task_id, l.epoch, x.value
FROM json_each(:rows) AS x
JOIN lease AS l ON l.task_id = x.value ->> 'task_id' AND l.epoch = x.value ->> 'epoch' AND l.kind = 'lease'
WHERE l.worker_id = x.value ->> 'worker_id' AND l.token_hash = x.value ->> 'token_hash'
  AND l.version = x.value ->> 'version' AND l.ended_ms IS NULL AND :now < l.expires_ms;
UPDATE lease SET ended_ms = :now, end_reason = 'completed', end_digest = p.asked ->> 'digest',
  result = p.asked ->> 'result', drained = CASE WHEN repository_id = 0 THEN 1 ELSE 0 END
FROM picked AS p WHERE lease.id = p.lease_id;
UPDATE task SET status = :status, stage = p.asked ->> 'stage', finished_ms = :now, events = task.events + 1
FROM picked AS p WHERE task.id = p.task_id;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :now, 'completed', p.epoch, p.asked ->> 'facts'
FROM picked AS p JOIN task AS t ON t.id = p.task_id;
UPDATE task SET needs_left = needs_left - x.met
FROM (
  SELECT d.task_id, count(*) AS met FROM picked AS p JOIN dependency AS d ON d.needs_id = p.task_id GROUP BY d.task_id
) AS x
WHERE task.id = x.task_id;
SELECT x.value ->> 'ord' AS ord, p.lease_id IS NOT NULL AS done, l.id AS lease_id,
  coalesce(l.worker_id = x.value ->> 'worker_id' AND l.token_hash = x.value ->> 'token_hash', 0) AS mine,
  l.ended_ms, l.end_reason, l.end_digest, l.expires_ms, :now AS now,
  EXISTS (SELECT 1 FROM dependency AS d WHERE d.needs_id = p.task_id)
    OR EXISTS (SELECT 1 FROM task AS w WHERE w.waiting_on = l.id) AS wakes
FROM json_each(:rows) AS x
JOIN lease AS l ON l.task_id = x.value ->> 'task_id' AND l.epoch = x.value ->> 'epoch' AND l.kind = 'lease'
LEFT JOIN picked AS p ON p.lease_id = l.id
ORDER BY x.key;

-- name: complete_one
-- complete_leases for one lease, without a list: whom it frees first, as after the lease's end nothing tells that it
-- was done; what follows goes by whether the statement before it changed a row.
UPDATE task SET needs_left = needs_left - 1
WHERE id IN (SELECT d.task_id FROM dependency AS d WHERE d.needs_id = :task_id) AND EXISTS (
  SELECT 1 FROM lease AS l
  WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease' AND l.worker_id = :worker_id AND l.token_hash = :token_hash
    AND l.version = :version AND l.ended_ms IS NULL AND :now < l.expires_ms);
UPDATE lease AS l SET ended_ms = :now, end_reason = 'completed', end_digest = :digest, result = :result,
  drained = CASE WHEN repository_id = 0 THEN 1 ELSE 0 END
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease' AND l.worker_id = :worker_id AND l.token_hash = :token_hash
  AND l.version = :version AND l.ended_ms IS NULL AND :now < l.expires_ms;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events + 1, :now, 'completed', :epoch, :facts FROM task AS t WHERE t.id = :task_id AND changes() = 1;
UPDATE task SET status = :status, stage = :stage, finished_ms = :now, events = events + 1
WHERE id = :task_id AND changes() = 1;
SELECT :ord AS ord, changes() AS done, l.id AS lease_id,
  coalesce(l.worker_id = :worker_id AND l.token_hash = :token_hash, 0) AS mine,
  l.ended_ms, l.end_reason, l.end_digest, l.expires_ms, :now AS now,
  changes() AND EXISTS (SELECT 1 FROM dependency AS d WHERE d.needs_id = :task_id)
    OR EXISTS (SELECT 1 FROM task AS w WHERE w.waiting_on = l.id) AS wakes
FROM lease AS l
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease';

-- name: renew_leases
DELETE FROM picked;
INSERT INTO picked (lease_id, asked)
SELECT l.id, x.value ->> 'request'
FROM json_each(:rows) AS x
JOIN lease AS l ON l.task_id = x.value ->> 'task_id' AND l.epoch = x.value ->> 'epoch' AND l.kind = 'lease'
WHERE l.worker_id = x.value ->> 'worker_id' AND l.token_hash = x.value ->> 'token_hash'
  AND l.ended_ms IS NULL AND :now < l.expires_ms AND l.version = x.value ->> 'version';
UPDATE lease SET version = version + 1, renewed_ms = :now, renew_request = p.asked,
  expires_ms = min(max(:now + ttl_ms, expires_ms), max_until_ms)
FROM picked AS p WHERE lease.id = p.lease_id;
SELECT x.value ->> 'ord' AS ord, p.lease_id IS NOT NULL AS done, l.id AS lease_id,
  coalesce(l.worker_id = x.value ->> 'worker_id' AND l.token_hash = x.value ->> 'token_hash', 0) AS mine,
  l.ended_ms, l.end_reason, l.renew_request, l.version, l.ttl_ms, l.expires_ms, l.max_until_ms, :now AS now
FROM json_each(:rows) AS x
LEFT JOIN lease AS l ON l.task_id = x.value ->> 'task_id' AND l.epoch = x.value ->> 'epoch' AND l.kind = 'lease'
LEFT JOIN picked AS p ON p.lease_id = l.id
ORDER BY x.key;

-- name: lock_leases
SELECT x.value ->> 'ord' AS ord, l.id AS lease_id, x.value ->> 'task_id' AS task_id, x.value ->> 'epoch' AS epoch,
  coalesce(l.worker_id = x.value ->> 'worker_id' AND l.token_hash = x.value ->> 'token_hash', 0) AS mine,
  l.repository_id, l.fence, l.ended_ms, l.end_reason, l.end_digest, l.expires_ms, t.status, t.effects, t.charged,
  t.max_attempts, t.same_errors, t.error_print, s.idempotency_key IS NOT NULL AS keyed, t.queue, EXISTS (
    SELECT 1 FROM intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) AS unsettled, l.worker_id, l.version, :now AS now
FROM json_each(:rows) AS x
LEFT JOIN lease AS l ON l.task_id = x.value ->> 'task_id' AND l.epoch = x.value ->> 'epoch' AND l.kind = 'lease'
LEFT JOIN task AS t ON t.id = x.value ->> 'task_id'
LEFT JOIN submission AS s ON s.task_id = t.id
ORDER BY x.key

-- name: lock_live_leases
SELECT x.key + 1 AS ord, l.id AS lease_id, x.value AS task_id, coalesce(l.epoch, t.epoch) AS epoch, 1 AS mine,
  t.repository_id, l.fence, l.ended_ms, l.end_reason, l.end_digest, l.expires_ms, t.status, t.effects, t.charged,
  t.max_attempts, t.same_errors, t.error_print, s.idempotency_key IS NOT NULL AS keyed, t.queue, EXISTS (
    SELECT 1 FROM intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) AS unsettled, l.worker_id, l.version, :now AS now
FROM json_each(:tasks) AS x
LEFT JOIN lease AS l ON l.task_id = x.value AND l.kind = 'lease' AND l.ended_ms IS NULL
LEFT JOIN task AS t ON t.id = x.value
LEFT JOIN submission AS s ON s.task_id = t.id
ORDER BY x.key

-- name: end_leases
-- An end that isn't a failure leaves the last failure's fingerprint as it is.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, asked)
SELECT l.id, l.task_id, l.epoch, x.value
FROM json_each(:rows) AS x JOIN lease AS l ON l.id = x.value ->> 'lease_id'
WHERE l.ended_ms IS NULL;
UPDATE lease SET ended_ms = :at_ms, end_reason = p.asked ->> 'reason', end_digest = p.asked ->> 'digest',
  result = p.asked ->> 'result', proof = CASE WHEN p.asked ->> 'reason' = 'rewound' THEN NULL ELSE coalesce(p.asked ->> 'proof', lease.proof) END,
  drained = CASE WHEN repository_id = 0 THEN 1 ELSE 0 END
FROM picked AS p WHERE lease.id = p.lease_id;
UPDATE task SET status = p.asked ->> 'status', charged = task.charged + (p.asked ->> 'charge'),
  due = coalesce(p.asked ->> 'due', task.due), run_at_ms = coalesce(p.asked ->> 'run_at_ms', task.run_at_ms),
  queued_ms = coalesce(p.asked ->> 'queued_ms', task.queued_ms), finished_ms = p.asked ->> 'finished_ms',
  error_print = coalesce(p.asked ->> 'error_print', task.error_print),
  same_errors = coalesce(p.asked ->> 'same_errors', task.same_errors), events = task.events + 1
FROM picked AS p WHERE task.id = p.task_id AND p.asked ->> 'moves' = 1;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :at_ms, p.asked ->> 'kind', p.epoch, p.asked ->> 'facts'
FROM picked AS p JOIN task AS t ON t.id = p.task_id
WHERE p.asked ->> 'moves' = 1;
SELECT count(*) AS ended, coalesce(sum(p.asked ->> 'moves'), 0) AS moved FROM picked AS p;

-- name: tell_freed
-- The ends of holds, reserved turns and shadows, each as an event of its task.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, ord, asked)
SELECT x.value ->> 'lease_id', x.value ->> 'task_id', x.value ->> 'epoch',
  row_number() OVER (PARTITION BY x.value ->> 'task_id' ORDER BY x.value ->> 'lease_id'), x.value ->> 'facts'
FROM json_each(:rows) AS x;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events + p.ord, :at_ms, 'freed', p.epoch, p.asked
FROM picked AS p JOIN task AS t ON t.id = p.task_id;
UPDATE task SET events = task.events + x.many
FROM (SELECT task_id, count(*) AS many FROM picked GROUP BY task_id) AS x WHERE task.id = x.task_id;
SELECT ord AS n FROM picked;

-- name: lock_repository_of
SELECT r.id FROM task AS t JOIN repository AS r ON r.id = t.repository_id
WHERE t.id = :task_id AND r.id > 0

-- name: put_hold
-- The scope of a lease that ended goes over to a hold: the rows stay, under another lease. Under the
-- repository's lock, as whatever changes scope rows.
INSERT INTO lease (
  kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms, queue, agent, label)
SELECT 'hold', o.repository_id, o.task_id, o.epoch, o.fence, o.term, :ttl_ms, :at_ms, :at_ms, :at_ms + :ttl_ms,
  :at_ms + :ttl_ms, o.queue, o.agent, o.label
FROM lease AS o WHERE o.id = :lease_id;
UPDATE scope SET lease_id = (SELECT seq FROM sqlite_sequence WHERE name = 'lease') WHERE lease_id = :lease_id;

-- name: count_late
-- The row is the lock: of two at once, the second sees what the first has kept. None without such a lease.
INSERT INTO late_result AS r (task_id, epoch, counted)
SELECT l.task_id, l.epoch, 1 FROM lease AS l
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease'
ON CONFLICT (task_id, epoch) DO UPDATE SET counted = r.counted + 1
RETURNING counted

-- name: late_results
-- What was kept of the results that came for this lease too late; of those for epochs that never were, all.
SELECT e.facts FROM event AS e
WHERE e.task_id = :task_id AND e.kind = 'late' AND (e.epoch = :epoch OR NOT EXISTS (
    SELECT 1 FROM lease AS l WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease'
  ) AND NOT EXISTS (
    SELECT 1 FROM lease AS l WHERE l.task_id = :task_id AND l.epoch = e.epoch AND l.kind = 'lease'))
ORDER BY e.n

-- name: acknowledge
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, at_ms)
SELECT l.id, l.task_id, l.acknowledged_ms FROM lease AS l
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease' AND l.worker_id = :worker_id
  AND l.token_hash = :token_hash AND l.ended_ms IS NOT NULL;
UPDATE lease SET acknowledged_ms = :now WHERE id IN (SELECT lease_id FROM picked WHERE at_ms IS NULL);
UPDATE task SET events = events + 1 WHERE id IN (SELECT task_id FROM picked WHERE at_ms IS NULL);
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :now, 'acknowledged', :epoch, :facts
FROM picked AS p JOIN task AS t ON t.id = p.task_id WHERE p.at_ms IS NULL;
SELECT l.id, l.end_reason FROM picked AS p JOIN lease AS l ON l.id = p.lease_id;

-- name: refusal
-- The facts of the other side: who holds the task now.
SELECT t.id AS task_id, s.number, t.status, t.epoch, l.id AS lease_id, l.agent, l.worker_id, l.expires_ms, l.end_reason, l.kind, :now AS now
FROM task AS t
JOIN submission AS s ON s.task_id = t.id
LEFT JOIN lease AS l ON l.task_id = t.id AND l.kind = 'lease' AND l.ended_ms IS NULL
WHERE t.id = :task_id
