-- name: complete_leases
-- All rows are locked by id in l, and only then, with l read to its end, is the clock read: judged row
-- by row, a list's first item could run out while the second's lock was awaited. A submit or an
-- amendment that committed while this waited for a task's row isn't in this statement's snapshot:
-- `needed` has moved, and the statement begins again.
-- A holder of no lease gets no row. Rows are looked up by subqueries, never by a join that the planner
-- could turn around: joined while the table was small, every later call read all leases (0.7 ms instead
-- of 0.2). What an item needs travels with its row: lists joined again take the square of their length.
WITH found AS MATERIALIZED (
  SELECT x.*, (
    SELECT l.id FROM lessor.lease AS l WHERE l.task_id = x.task_id AND l.epoch = x.epoch AND l.kind = 'lease'
  ) AS id
  FROM json_to_recordset(:rows::json) AS x(
    ord bigint, task_id bigint, epoch bigint, worker_id bigint, token_hash text, version bigint, digest text, result text, stage text, facts text)
  ORDER BY id
), l AS MATERIALIZED (
  SELECT l.id, f.task_id, f.epoch, l.expires_ms, l.ended_ms, l.end_reason, l.end_digest, l.repository_id,
    f.ord, f.digest, f.result, f.stage, f.facts, l.version = f.version AS current, (l.worker_id = f.worker_id AND l.token_hash = f.token_hash) AS mine
  FROM found AS f CROSS JOIN LATERAL (SELECT l.* FROM lessor.lease AS l WHERE l.id = f.id FOR UPDATE) AS l
), n AS MATERIALIZED (
  SELECT lessor.ms() AS now, count(*) AS locked FROM l
), judged AS MATERIALIZED (
  SELECT l.*, n.now, l.mine AND l.current AND l.ended_ms IS NULL AND n.now < l.expires_ms AS done,
    (SELECT t.needed FROM lessor.task AS t WHERE t.id = l.task_id) AS needed
  FROM l CROSS JOIN n
), ended AS (
  UPDATE lessor.lease AS e
  SET ended_ms = j.now, end_reason = 'completed', end_digest = j.digest, result = j.result,
    drained = CASE WHEN j.repository_id = 0 THEN 1 ELSE 0 END
  FROM judged AS j WHERE e.id = j.id AND j.done
), moved AS (
  UPDATE lessor.task AS t
  SET status = :status, stage = j.stage, finished_ms = j.now, events = t.events + 1
  FROM judged AS j WHERE t.id = j.task_id AND j.done
  RETURNING t.id, t.events, j.epoch, j.now, j.facts, t.needed = j.needed AS settled
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT id, events, now, 'completed', epoch, facts FROM moved
), dependents AS MATERIALIZED (
  SELECT t.id, d.met FROM (
    SELECT d.task_id, count(*) AS met
    FROM judged AS j CROSS JOIN LATERAL (
      SELECT d.task_id FROM lessor.dependency AS d WHERE d.needs_id = j.task_id OFFSET 0
    ) AS d
    WHERE j.done GROUP BY d.task_id
  ) AS d JOIN lessor.task AS t ON t.id = d.task_id
  ORDER BY t.id
  FOR UPDATE OF t
), freed AS (
  UPDATE lessor.task AS t SET needs_left = t.needs_left - d.met FROM dependents AS d WHERE t.id = d.id
  RETURNING t.id
)
SELECT j.ord, CASE WHEN j.done THEN 1 ELSE 0 END AS done, j.id AS lease_id,
  CASE WHEN j.mine THEN 1 ELSE 0 END AS mine, j.ended_ms, j.end_reason, j.end_digest, j.expires_ms, j.now,
  CASE WHEN (SELECT f.id FROM freed AS f LIMIT 1) IS NOT NULL
      OR (SELECT w.id FROM lessor.task AS w WHERE w.status = 'queued' AND w.waiting_on = j.id LIMIT 1) IS NOT NULL
    THEN 1 ELSE 0 END AS wakes
FROM (SELECT lessor.expect(count(*) FILTER (WHERE m.settled), count(*)) AS moved FROM moved AS m) AS checked
CROSS JOIN judged AS j
WHERE checked.moved >= 0
ORDER BY j.ord

-- name: complete_one
-- complete_leases for one lease whose task nobody needs; else the transaction is given back, and that decides.
-- What it keeps: the lease's row is locked first, only then the clock is read. `needed` moves with each need of
-- this task that comes: one that committed while this waited for the task's row isn't in its snapshot.
WITH l AS MATERIALIZED (
  SELECT l.id, l.expires_ms, l.ended_ms, l.end_reason, l.end_digest, l.repository_id, l.version = :version AS current,
    (l.worker_id = :worker_id AND l.token_hash = :token_hash) AS mine
  FROM lessor.lease AS l
  WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease'
  FOR UPDATE
), n AS MATERIALIZED (
  SELECT l.*, lessor.ms() AS now FROM l
), j AS MATERIALIZED (
  SELECT l.*, l.mine AND l.current AND l.ended_ms IS NULL AND l.now < l.expires_ms AS done FROM n AS l
), ended AS (
  UPDATE lessor.lease AS e
  SET ended_ms = (SELECT j.now FROM j), end_reason = 'completed', end_digest = :digest, result = :result,
    drained = CASE WHEN e.repository_id = 0 THEN 1 ELSE 0 END
  WHERE e.id = (SELECT j.id FROM j WHERE j.done)
), moved AS (
  UPDATE lessor.task AS t
  SET status = :status, stage = :stage, finished_ms = (SELECT j.now FROM j), events = t.events + 1
  WHERE t.id = (SELECT :task_id::bigint FROM j WHERE j.done)
  RETURNING t.events, t.needed = (SELECT k.needed FROM lessor.task AS k WHERE k.id = :task_id) AS settled
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT :task_id, m.events, (SELECT j.now FROM j), 'completed', :epoch, :facts FROM moved AS m
)
SELECT :ord::bigint AS ord, CASE WHEN j.done THEN 1 ELSE 0 END AS done, j.id AS lease_id,
  CASE WHEN j.mine THEN 1 ELSE 0 END AS mine, j.ended_ms, j.end_reason, j.end_digest, j.expires_ms, j.now,
  CASE
    WHEN j.done AND NOT EXISTS (SELECT 1 FROM moved AS m WHERE m.settled) THEN lessor.expect(0, 1)
    WHEN j.done AND EXISTS (SELECT 1 FROM lessor.dependency AS d WHERE d.needs_id = :task_id) THEN lessor.require(0)
    WHEN EXISTS (SELECT 1 FROM lessor.task AS w WHERE w.status = 'queued' AND w.waiting_on = j.id) THEN 1
    ELSE 0
  END AS wakes
FROM j

-- name: renew_leases
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(
    ord bigint, task_id bigint, epoch bigint, worker_id bigint, token_hash text, version bigint, request text)
), l AS MATERIALIZED (
  SELECT l.id, l.version, l.expires_ms, l.max_until_ms, l.ttl_ms, l.ended_ms, l.end_reason, l.renew_request,
    x.ord, x.version AS known, x.request, (l.worker_id = x.worker_id AND l.token_hash = x.token_hash) AS mine
  FROM x JOIN lessor.lease AS l ON l.task_id = x.task_id AND l.epoch = x.epoch AND l.kind = 'lease'
  ORDER BY l.id
  FOR UPDATE OF l
), locked AS MATERIALIZED (
  SELECT count(*) FROM l
), n AS MATERIALIZED (
  SELECT lessor.ms() AS now FROM locked
), renewed AS (
  UPDATE lessor.lease AS r
  SET version = r.version + 1, renewed_ms = n.now, renew_request = l.request,
    expires_ms = least(greatest(n.now + r.ttl_ms, r.expires_ms), r.max_until_ms)
  FROM l, n
  WHERE r.id = l.id AND l.mine AND l.ended_ms IS NULL AND n.now < l.expires_ms AND l.version = l.known
  RETURNING r.id, r.version, r.expires_ms
)
SELECT x.ord, CASE WHEN r.id IS NULL THEN 0 ELSE 1 END AS done, l.id AS lease_id,
  CASE WHEN l.mine THEN 1 ELSE 0 END AS mine, l.ended_ms, l.end_reason, l.renew_request,
  coalesce(r.version, l.version) AS version, l.ttl_ms, coalesce(r.expires_ms, l.expires_ms) AS expires_ms, l.max_until_ms, n.now
FROM x CROSS JOIN n LEFT JOIN l ON l.ord = x.ord LEFT JOIN renewed AS r ON r.id = l.id
ORDER BY x.ord

-- name: lock_leases
-- The leases that holders name, locked, with the facts that decide what follows their end.
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(
    ord bigint, task_id bigint, epoch bigint, worker_id bigint, token_hash text)
), l AS MATERIALIZED (
  SELECT l.*, x.ord, (l.worker_id = x.worker_id AND l.token_hash = x.token_hash) AS mine
  FROM x JOIN lessor.lease AS l ON l.task_id = x.task_id AND l.epoch = x.epoch AND l.kind = 'lease'
  ORDER BY l.id
  FOR UPDATE OF l
), locked AS MATERIALIZED (
  SELECT count(*) FROM l
), n AS MATERIALIZED (
  SELECT lessor.ms() AS now FROM locked
)
SELECT x.ord, l.id AS lease_id, x.task_id, x.epoch, CASE WHEN l.mine THEN 1 ELSE 0 END AS mine, l.repository_id,
  l.fence, l.ended_ms, l.end_reason, l.end_digest, l.expires_ms, t.status, t.effects, t.charged, t.max_attempts,
  t.same_errors, t.error_print, CASE WHEN s.idempotency_key IS NULL THEN 0 ELSE 1 END AS keyed, t.queue,
  CASE WHEN EXISTS (
    SELECT 1 FROM lessor.intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) THEN 1 ELSE 0 END AS unsettled, l.worker_id, l.version, n.now
FROM x CROSS JOIN n
LEFT JOIN l ON l.ord = x.ord
LEFT JOIN lessor.task AS t ON t.id = x.task_id
LEFT JOIN lessor.submission AS s ON s.task_id = x.task_id
ORDER BY x.ord

-- name: lock_live_leases
-- The live leases of tasks, locked by id, for a person's or a witness's decision about them.
WITH x AS MATERIALIZED (
  SELECT value::bigint AS task_id, ordinality AS ord FROM json_array_elements_text(:tasks::json) WITH ORDINALITY
), l AS MATERIALIZED (
  SELECT l.* FROM x JOIN lessor.lease AS l ON l.task_id = x.task_id
  WHERE l.kind = 'lease' AND l.ended_ms IS NULL
  ORDER BY l.id
  FOR UPDATE OF l
), locked AS MATERIALIZED (
  SELECT count(*) FROM l
), n AS MATERIALIZED (
  SELECT lessor.ms() AS now FROM locked
)
SELECT x.ord, l.id AS lease_id, x.task_id, coalesce(l.epoch, t.epoch) AS epoch, 1 AS mine, t.repository_id,
  l.fence, l.ended_ms, l.end_reason, l.end_digest, l.expires_ms, t.status, t.effects, t.charged, t.max_attempts,
  t.same_errors, t.error_print, CASE WHEN s.idempotency_key IS NULL THEN 0 ELSE 1 END AS keyed, t.queue,
  CASE WHEN EXISTS (
    SELECT 1 FROM lessor.intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) THEN 1 ELSE 0 END AS unsettled, l.worker_id, l.version, n.now
FROM x CROSS JOIN n
LEFT JOIN l ON l.task_id = x.task_id
LEFT JOIN lessor.task AS t ON t.id = x.task_id
LEFT JOIN lessor.submission AS s ON s.task_id = x.task_id
ORDER BY x.ord

-- name: end_leases
-- Leases that this transaction has locked end, and their tasks move as decided. An end that isn't a
-- failure leaves the last failure's fingerprint as it is.
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(
    lease_id bigint, task_id bigint, reason text, digest text, result text, proof text, moves bigint, status text,
    charge bigint, due bigint, run_at_ms bigint, queued_ms bigint, finished_ms bigint, error_print text,
    same_errors bigint, kind text, facts text)
), ended AS (
  UPDATE lessor.lease AS l
  SET ended_ms = :at_ms, end_reason = x.reason, end_digest = x.digest, result = x.result,
    proof = CASE WHEN x.reason = 'rewound' THEN NULL ELSE coalesce(x.proof, l.proof) END, drained = CASE WHEN l.repository_id = 0 THEN 1 ELSE 0 END
  FROM x WHERE l.id = x.lease_id AND l.ended_ms IS NULL
  RETURNING l.id, l.epoch
), moved AS (
  UPDATE lessor.task AS t
  SET status = x.status, charged = t.charged + x.charge, due = coalesce(x.due, t.due),
    run_at_ms = coalesce(x.run_at_ms, t.run_at_ms), queued_ms = coalesce(x.queued_ms, t.queued_ms),
    finished_ms = x.finished_ms, error_print = coalesce(x.error_print, t.error_print),
    same_errors = coalesce(x.same_errors, t.same_errors), events = t.events + 1
  FROM x JOIN ended AS e ON e.id = x.lease_id
  WHERE t.id = x.task_id AND x.moves = 1
  RETURNING t.id, t.events, e.epoch, x.kind, x.facts
), ev AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT id, events, :at_ms, kind, epoch, facts FROM moved
)
SELECT count(*) AS ended, (SELECT count(*) FROM moved) AS moved FROM ended

-- name: tell_freed
-- The ends of holds, reserved turns and shadows, each as an event of its task; the tasks are locked by id.
WITH x AS MATERIALIZED (
  SELECT x.task_id, x.epoch, x.facts, row_number() OVER (PARTITION BY x.task_id ORDER BY x.lease_id) AS nth,
    count(*) OVER (PARTITION BY x.task_id) AS many
  FROM json_to_recordset(:rows::json) AS x(lease_id bigint, task_id bigint, epoch bigint, facts text)
), l AS MATERIALIZED (
  SELECT t.id FROM lessor.task AS t WHERE t.id IN (SELECT x.task_id FROM x) ORDER BY t.id FOR UPDATE OF t
), u AS (
  UPDATE lessor.task AS t SET events = t.events + x.many
  FROM (SELECT DISTINCT x.task_id, x.many FROM x) AS x JOIN l ON l.id = x.task_id WHERE t.id = l.id
  RETURNING t.id, t.events, x.many
)
INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
SELECT u.id, u.events - u.many + x.nth, :at_ms, 'freed', x.epoch, x.facts FROM u JOIN x ON x.task_id = u.id
RETURNING n

-- name: lock_repository_of
SELECT r.id FROM lessor.task AS t JOIN lessor.repository AS r ON r.id = t.repository_id
WHERE t.id = :task_id AND r.id > 0 FOR UPDATE OF r

-- name: put_hold
-- The scope of a lease that ended goes over to a hold: the rows stay, under another lease. Under the
-- repository's lock, as whatever changes scope rows.
WITH l AS (
  INSERT INTO lessor.lease AS l (
    kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms, queue, agent, label)
  SELECT 'hold', o.repository_id, o.task_id, o.epoch, o.fence, o.term, :ttl_ms, :at_ms, :at_ms, :at_ms + :ttl_ms,
    :at_ms + :ttl_ms, o.queue, o.agent, o.label
  FROM lessor.lease AS o WHERE o.id = :lease_id
  RETURNING l.id
)
UPDATE lessor.scope AS s SET lease_id = l.id FROM l WHERE s.lease_id = :lease_id

-- name: count_late
-- The row is the lock: of two at once, the second sees what the first has kept. None without such a lease.
INSERT INTO lessor.late_result AS r (task_id, epoch, counted)
SELECT l.task_id, l.epoch, 1 FROM lessor.lease AS l
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease'
ON CONFLICT (task_id, epoch) DO UPDATE SET counted = r.counted + 1
RETURNING counted

-- name: late_results
-- What was kept of the results that came for this lease too late; of those for epochs that never were, all.
SELECT e.facts FROM lessor.event AS e
WHERE e.task_id = :task_id AND e.kind = 'late' AND (e.epoch = :epoch OR NOT EXISTS (
    SELECT 1 FROM lessor.lease AS l WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease'
  ) AND NOT EXISTS (
    SELECT 1 FROM lessor.lease AS l WHERE l.task_id = :task_id AND l.epoch = e.epoch AND l.kind = 'lease'))
ORDER BY e.n

-- name: acknowledge
WITH l AS (
  UPDATE lessor.lease SET acknowledged_ms = lessor.ms()
  WHERE task_id = :task_id AND epoch = :epoch AND kind = 'lease' AND worker_id = :worker_id
    AND token_hash = :token_hash AND ended_ms IS NOT NULL AND acknowledged_ms IS NULL
  RETURNING task_id, acknowledged_ms, end_reason
), u AS (
  UPDATE lessor.task AS t SET events = t.events + 1 FROM l WHERE t.id = l.task_id
  RETURNING t.id, t.events, l.acknowledged_ms
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT u.id, u.events, u.acknowledged_ms, 'acknowledged', :epoch, :facts FROM u
)
SELECT l.id, l.end_reason FROM lessor.lease AS l
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease' AND l.worker_id = :worker_id
  AND l.token_hash = :token_hash AND l.ended_ms IS NOT NULL

-- name: refusal
-- The facts of the other side: who holds the task now.
SELECT t.id AS task_id, s.number, t.status, t.epoch, l.id AS lease_id, l.agent, l.worker_id, l.expires_ms, l.end_reason, l.kind, lessor.ms() AS now
FROM lessor.task AS t
JOIN lessor.submission AS s ON s.task_id = t.id
LEFT JOIN lessor.lease AS l ON l.task_id = t.id AND l.kind = 'lease' AND l.ended_ms IS NULL
WHERE t.id = :task_id
