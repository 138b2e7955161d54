-- name: heads
-- Where a claim of any repository has to look, best first: the first task of each repository that this
-- worker may take now, or that a claim there would make ready: one that fell due, one parked on a lease
-- that has ended, or on a shadow where another has ended, one under a lease that ran out. Nowhere while a limit that counts every task of the
-- claim is used up.
WITH full_limit AS MATERIALIZED (
  SELECT u.kind, u.key FROM usage_limit AS u
  WHERE (u.kind = 'key' OR u.kind = 'queue' AND u.key = :queue OR u.kind = 'agent' AND u.key IN (:agent, :kind))
    AND u.maximum <= CASE u.kind
      WHEN 'queue' THEN (SELECT count(*) FROM lease AS l
        WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.queue = u.key AND l.expires_ms > :now)
      WHEN 'agent' THEN (SELECT count(*) FROM lease AS l
        WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.agent_kind = :kind AND u.key IN (l.agent, :kind)
          AND l.expires_ms > :now)
      ELSE (SELECT count(*) FROM lease AS l
        WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.limit_key = u.key AND l.expires_ms > :now)
    END
)
SELECT b.id, b.rank, b.task_id
FROM (
  SELECT p.id, p.rank, p.task_id, row_number() OVER (PARTITION BY p.id ORDER BY p.rank, p.task_id) AS place
  FROM (
    SELECT r.id, h.rank, h.id AS task_id
    FROM repository AS r JOIN task AS h ON h.id = (
      SELECT t.id FROM task AS t
      WHERE t.queue = :queue AND t.repository_id = r.id AND t.status = 'queued' AND t.due = 1
        AND t.needs_left = 0 AND t.waiting_on IS NULL
        AND (t.agent IS NULL OR t.agent = :kind)
        AND (t.capabilities IS NULL OR NOT EXISTS (
          SELECT 1 FROM json_each(t.capabilities) AS j WHERE j.value NOT IN (SELECT value FROM json_each(:capabilities))))
        AND (t.limit_key IS NULL OR t.limit_key NOT IN (SELECT f.key FROM full_limit AS f WHERE f.kind = 'key'))
        AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.name = :queue AND q.paused = 1)
      ORDER BY t.rank, t.id LIMIT 1
    )
    UNION ALL
    SELECT r.id, d.rank, d.id
    FROM repository AS r JOIN task AS d ON d.id = (
      SELECT t.id FROM task AS t
      WHERE t.repository_id = r.id AND t.status = 'queued' AND t.due = 0 AND t.run_at_ms <= :now
      ORDER BY t.run_at_ms, t.id LIMIT 1
    )
    UNION ALL
    SELECT r.id, w.rank, w.id
    FROM repository AS r CROSS JOIN lease AS l INDEXED BY lease_drain CROSS JOIN task AS w
    WHERE l.repository_id = r.id AND l.ended_ms IS NOT NULL AND l.drained = 0
      AND w.id = (SELECT t.id FROM task AS t WHERE t.waiting_on = l.id ORDER BY t.rank, t.id LIMIT 1)
    UNION ALL
    SELECT r.id, w.rank, w.id
    FROM repository AS r CROSS JOIN lease AS l INDEXED BY lease_drain CROSS JOIN task AS w
    WHERE l.repository_id = r.id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND l.kind = 'shadow' AND w.id = (
      SELECT t.id FROM shadow_scope AS g CROSS JOIN task AS t ON t.waiting_on = g.lease_id
      WHERE g.repository_id = r.id ORDER BY t.rank, t.id LIMIT 1)
    UNION ALL
    SELECT r.id, t.rank, t.id
    FROM repository AS r CROSS JOIN lease AS l INDEXED BY lease_lapse CROSS JOIN task AS t
    WHERE l.repository_id = r.id AND l.ended_ms IS NULL AND l.expires_ms <= :now AND t.id = l.task_id
  ) AS p
) AS b
WHERE b.place = 1 AND NOT EXISTS (SELECT 1 FROM full_limit AS f WHERE f.kind <> 'key')
ORDER BY b.rank, b.task_id

-- name: lock_repository_or_skip
-- BEGIN IMMEDIATE holds every row.
SELECT id FROM repository WHERE id = :repository_id

-- name: lock_repository
SELECT r.id, c.fence, r.term, c.floor_ms, r.fold_case, r.normalize, r.unlanded
FROM repository AS r JOIN counter AS c ON c.repository_id = r.id WHERE r.id = :repository_id AND r.id > 0

-- name: turn_repository
-- For whoever removed scope rows and grants nothing: at snapshot isolation a row that was only locked
-- lets two overlapping claims through.
UPDATE counter SET turn = turn + 1 WHERE repository_id = :repository_id AND repository_id > 0 RETURNING turn

-- name: promote_due
UPDATE task SET due = 1, queued_ms = max(queued_ms, run_at_ms)
WHERE id IN (
  SELECT t.id FROM task AS t
  WHERE t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 0 AND t.run_at_ms <= :now
  ORDER BY t.run_at_ms, t.id LIMIT :most
)
RETURNING id

-- name: lapsed_leases
-- In the order of lease_lapse: ordered by id, PostgreSQL walked every lease that ever was.
-- SKIP LOCKED: a lease that is being renewed or completed right now stays as it is. The bound is a
-- scalar subquery: as a join it read every live lease (25 ms beside 100,000, instead of one probe).
SELECT l.id AS lease_id, l.task_id, l.epoch, l.kind, l.worker_id, l.expires_ms, l.proof, t.status, t.effects,
  t.charged, t.max_attempts, t.same_errors, CASE WHEN s.idempotency_key IS NULL THEN 0 ELSE 1 END AS keyed, t.queue,
  EXISTS (
    SELECT 1 FROM intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) AS unsettled,
  max(:now, (SELECT c.floor_ms FROM counter AS c WHERE c.repository_id = :repository_id)) AS now
FROM lease AS l
JOIN task AS t ON t.id = l.task_id
JOIN submission AS s ON s.task_id = l.task_id
WHERE l.repository_id = :repository_id AND l.ended_ms IS NULL
  AND l.expires_ms <= (SELECT max(:now, c.floor_ms) FROM counter AS c WHERE c.repository_id = :repository_id)
ORDER BY l.expires_ms, l.id
LIMIT :most

-- name: lapsed_by_limit
-- Leases that ran out, in whatever repository, and still count against these limits. Their scopes are
-- drained by the next claim there, as after every end.
SELECT l.id AS lease_id, l.task_id, l.epoch, l.kind, l.worker_id, l.expires_ms, l.proof, t.status, t.effects,
  t.charged, t.max_attempts, t.same_errors, CASE WHEN s.idempotency_key IS NULL THEN 0 ELSE 1 END AS keyed, t.queue,
  EXISTS (
    SELECT 1 FROM intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) AS unsettled,
  :now AS now
FROM lease AS l
JOIN task AS t ON t.id = l.task_id
JOIN submission AS s ON s.task_id = l.task_id
WHERE l.ended_ms IS NULL AND l.expires_ms <= :now AND l.id IN (
  SELECT a.id FROM lease AS a WHERE a.kind = 'lease' AND a.ended_ms IS NULL AND a.queue = :queue
  UNION ALL
  SELECT a.id FROM lease AS a WHERE a.kind = 'lease' AND a.ended_ms IS NULL AND a.agent_kind = :agent_kind
  UNION ALL
  SELECT a.id FROM lease AS a
  WHERE a.kind = 'lease' AND a.ended_ms IS NULL AND a.limit_key IN (SELECT value FROM json_each(:keys)))
ORDER BY l.id
LIMIT :most

-- name: drain
-- SQLite has no data-modifying CTE, so the leases of this pass are picked into a table of the connection.
-- While nobody knows what became of a push, its lease keeps its paths.
-- Who overlaps several results is parked on one of their shadows, and may begin when another goes: the first
-- pass over an ended shadow, while its paths are there, hands it all who wait for a shadow here.
DELETE FROM picked;
INSERT INTO picked (lease_id)
SELECT l.id FROM lease AS l
WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
  SELECT 1 FROM intent AS i
  WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
ORDER BY l.ended_ms, l.id LIMIT :most;
UPDATE task SET waiting_on = (SELECT min(g.lease_id) FROM picked AS p CROSS JOIN shadow_scope AS g ON g.lease_id = p.lease_id)
WHERE EXISTS (SELECT 1 FROM picked AS p CROSS JOIN shadow_scope AS g ON g.lease_id = p.lease_id)
  AND waiting_on IN (SELECT g.lease_id FROM shadow_scope AS g WHERE g.repository_id = :repository_id);
UPDATE picked SET ord = (SELECT count(*) FROM (SELECT 1 FROM task AS t WHERE t.waiting_on = picked.lease_id LIMIT :wake));
DELETE FROM scope WHERE lease_id IN (SELECT lease_id FROM picked);
DELETE FROM shadow_scope WHERE lease_id IN (SELECT lease_id FROM picked);
UPDATE task SET waiting_on = NULL
WHERE id IN (
  SELECT t.id FROM picked AS p JOIN task AS t ON t.id IN (
    SELECT w.id FROM task AS w WHERE w.waiting_on = p.lease_id ORDER BY w.rank, w.id LIMIT :wake)
  WHERE p.ord > 0);
UPDATE lease SET drained = 1 WHERE id IN (SELECT lease_id FROM picked WHERE ord < :wake);
SELECT (SELECT count(*) FROM picked) AS drained, (SELECT coalesce(sum(ord), 0) FROM picked) AS woken,
  EXISTS (
    SELECT 1 FROM task AS t
    WHERE t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 0 AND t.run_at_ms <= :now) AS due,
  EXISTS (
    SELECT 1 FROM lease AS l
    WHERE l.repository_id = :repository_id AND l.ended_ms IS NULL AND l.expires_ms <= :now) AS lapsed,
  (SELECT count(*) FROM picked) >= :most OR EXISTS (SELECT 1 FROM picked WHERE ord >= :wake) AS undrained,
  o.task_id AS parked, o.parked_fence, o.parked_ms, o.overtake_limit, o.overtake_ms,
  EXISTS (
    SELECT 1 FROM lease AS l
    WHERE l.repository_id = :repository_id AND l.kind = 'reservation' AND l.ended_ms IS NULL) AS reserved
FROM (SELECT 1) LEFT JOIN (
  SELECT t.id AS task_id, t.parked_fence, t.parked_ms,
    coalesce(q.overtake_limit, 20) AS overtake_limit, coalesce(q.overtake_ms, 600000) AS overtake_ms
  FROM task AS t LEFT JOIN queue AS q ON q.name = t.queue
  WHERE t.repository_id = :repository_id AND t.parked_fence IS NOT NULL AND coalesce(q.paused, 0) = 0
    AND (t.agent IS NULL AND t.capabilities IS NULL OR EXISTS (
        SELECT 1 FROM worker AS w
        WHERE w.retired_ms IS NULL AND (t.agent IS NULL OR w.kind = t.agent)
          AND NOT EXISTS (
            SELECT 1 FROM json_each(coalesce(t.capabilities, '[]')) AS j
            WHERE j.value NOT IN (SELECT value FROM json_each(w.capabilities)))))
  ORDER BY t.parked_fence, t.id
  LIMIT 1
) AS o;

-- name: left_ended
-- Whether the drain of this transaction has left an ended lease. BEGIN IMMEDIATE holds every row: it never has.
SELECT l.id FROM lease AS l
WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
  SELECT 1 FROM intent AS i
  WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
LIMIT 1

-- name: await_ended
SELECT l.id FROM lease AS l
WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
  SELECT 1 FROM intent AS i
  WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
ORDER BY l.id

-- name: candidates
-- Ready tasks in order, each with one lease that blocks it where both sides are plain paths. CROSS JOIN
-- fixes the order of lookups: ancestors by equality, descendants by range.
-- A reserved turn blocks no task that has a hold: the turn may itself wait for that hold's end.
-- Of a task's own rows only those of an ended lease block it, until they are drained.
WITH full_key AS (  -- a first look, so that nobody scans past a full key; counted again under its lock
  SELECT value AS key FROM json_each(:full_keys)  -- as this claim has found them
  UNION ALL
  SELECT u.key FROM usage_limit AS u
  WHERE u.kind = 'key' AND u.maximum <= (
    SELECT count(*) FROM lease AS l
    WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.limit_key = u.key AND l.expires_ms > :now)
), c AS MATERIALIZED (
  SELECT t.id, t.epoch, t.rank, t.agent, t.limit_key, t.branch, t.progress, t.globs
  FROM task AS t
  WHERE t.queue = :queue AND t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
    AND t.needs_left = 0 AND t.waiting_on IS NULL AND (t.rank, t.id) >= (:mark_rank, :mark_id)
    AND (t.agent IS NULL OR t.agent = :kind)
    AND (t.capabilities IS NULL OR NOT EXISTS (
      SELECT 1 FROM json_each(t.capabilities) AS j WHERE j.value NOT IN (SELECT value FROM json_each(:capabilities))))
    AND (t.limit_key IS NULL OR t.limit_key NOT IN (SELECT f.key FROM full_key AS f))
    AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.name = :queue AND q.paused = 1)
    AND NOT EXISTS (SELECT 1 FROM worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1 FROM intent AS i
      WHERE i.repository_id = :repository_id AND i.task_id = t.id AND i.settled_ms IS NULL)
  ORDER BY t.rank, t.id
  LIMIT :most
)
SELECT c.id AS task_id, c.epoch, c.rank, c.agent, c.limit_key, c.branch, c.progress, c.globs,
  s.number, s.title,
  coalesce(
    (SELECT w.lease_id FROM task_scope AS ts CROSS JOIN json_each(ts.ancestors) AS a CROSS JOIN scope AS w
      WHERE ts.task_id = c.id AND ts.pattern IS NULL AND w.repository_id = :repository_id AND w.key = a.value
        AND (ts.mode = 'w' OR w.mode = 'w') AND w.pattern IS NULL
        AND CASE WHEN w.task_id <> c.id THEN 1 ELSE (SELECT o.kind = 'lease' FROM lease AS o WHERE o.id = w.lease_id) END
        AND (w.reserved_rank IS NULL OR w.reserved_rank <= c.rank AND NOT EXISTS (
          SELECT 1 FROM lease AS h WHERE h.task_id = c.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
      LIMIT 1),
    (SELECT w.lease_id FROM task_scope AS ts CROSS JOIN scope AS w
      WHERE ts.task_id = c.id AND ts.pattern IS NULL AND w.repository_id = :repository_id
        AND w.key > ts.key AND w.key < ts.key_end
        AND (ts.mode = 'w' OR w.mode = 'w') AND w.pattern IS NULL
        AND CASE WHEN w.task_id <> c.id THEN 1 ELSE (SELECT o.kind = 'lease' FROM lease AS o WHERE o.id = w.lease_id) END
        AND (w.reserved_rank IS NULL OR w.reserved_rank <= c.rank AND NOT EXISTS (
          SELECT 1 FROM lease AS h WHERE h.task_id = c.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
      LIMIT 1)) AS blocker,
  CASE WHEN :with_scopes = 1 THEN
    (SELECT json_group_array(json_array(ts.text, ts.key, ts.mode, ts.pattern) ORDER BY ts.ord)
     FROM task_scope AS ts WHERE ts.task_id = c.id)
  END AS scopes,
  EXISTS (SELECT 1 FROM lease AS o WHERE o.task_id = c.id AND o.kind <> 'lease' AND o.ended_ms IS NULL) AS has_own,
  EXISTS (SELECT 1 FROM scope AS g WHERE g.repository_id = :repository_id AND g.pattern IS NOT NULL) AS live_globs,
  EXISTS (SELECT 1 FROM usage_limit) AS limited,
  EXISTS (SELECT 1 FROM shadow_scope AS sh WHERE sh.repository_id = :repository_id) AS shadowed,
  :now AS now
FROM c JOIN submission AS s ON s.task_id = c.id
ORDER BY c.rank, c.id

-- name: glob_pairs
-- At most :most pairs a task; SQLite has no lateral join, so the bound is a rank within the task.
SELECT task_id, lease_id, mine_key, mine_mode, mine_pattern, key, mode, pattern
FROM (
  SELECT p.*, row_number() OVER (PARTITION BY p.task_id) AS place
  FROM (
    SELECT t.id AS task_id, s.lease_id, ts.key AS mine_key, ts.mode AS mine_mode, ts.pattern AS mine_pattern, s.key, s.mode, s.pattern
    FROM json_each(:tasks) AS c CROSS JOIN task AS t ON t.id = c.value
    CROSS JOIN task_scope AS ts ON ts.task_id = t.id
    CROSS JOIN json_each(ts.ancestors) AS a
    CROSS JOIN scope AS s ON s.repository_id = t.repository_id AND s.key = a.value
    WHERE (ts.pattern IS NOT NULL OR s.pattern IS NOT NULL) AND (ts.mode = 'w' OR s.mode = 'w')
      AND s.task_id <> t.id AND (s.reserved_rank IS NULL OR s.reserved_rank <= t.rank AND NOT EXISTS (
        SELECT 1 FROM lease AS h WHERE h.task_id = t.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
    UNION ALL
    SELECT t.id AS task_id, s.lease_id, ts.key AS mine_key, ts.mode AS mine_mode, ts.pattern AS mine_pattern, s.key, s.mode, s.pattern
    FROM json_each(:tasks) AS c CROSS JOIN task AS t ON t.id = c.value
    CROSS JOIN task_scope AS ts ON ts.task_id = t.id
    CROSS JOIN scope AS s ON s.repository_id = t.repository_id AND s.key > ts.key AND s.key < ts.key_end
    WHERE (ts.pattern IS NOT NULL OR s.pattern IS NOT NULL) AND (ts.mode = 'w' OR s.mode = 'w')
      AND s.task_id <> t.id AND (s.reserved_rank IS NULL OR s.reserved_rank <= t.rank AND NOT EXISTS (
        SELECT 1 FROM lease AS h WHERE h.task_id = t.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
  ) AS p
)
WHERE place <= :most

-- name: lock_queue
-- BEGIN IMMEDIATE holds every row.
SELECT q.paused FROM task AS t JOIN queue AS q ON q.name = t.queue WHERE t.id = :task_id

-- name: reserve
-- A reservation isn't a grant: it takes no fence of its own, and blocks only the same or lower priority.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id)
SELECT coalesce((SELECT q.seq FROM sqlite_sequence AS q WHERE q.name = 'lease'), 0) + 1, t.id
FROM task AS t
WHERE t.id = :task_id AND t.status = 'queued' AND t.parked_fence IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.name = t.queue AND q.paused = 1);
INSERT INTO lease (
  id, kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms,
  queue, agent, label)
SELECT p.lease_id, 'reservation', t.repository_id, t.id, t.epoch, :fence, 0, :ttl_ms, :at_ms, :at_ms,
  :at_ms + :ttl_ms, :at_ms + :ttl_ms, t.queue, '', ''
FROM picked AS p JOIN task AS t ON t.id = p.task_id;
INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence, reserved_rank)
SELECT p.lease_id, ts.ord, :repository_id, ts.task_id, ts.text, ts.key, ts.key_end, ts.mode, ts.pattern, ts.ancestors, :fence, t.rank
FROM picked AS p JOIN task AS t ON t.id = p.task_id JOIN task_scope AS ts ON ts.task_id = p.task_id;
UPDATE task SET parked_fence = :fence, parked_ms = :at_ms, events = task.events + 1
WHERE id IN (SELECT p.task_id FROM picked AS p);
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :at_ms, 'reserved', t.epoch, '{}' FROM picked AS p JOIN task AS t ON t.id = p.task_id;
UPDATE counter SET turn = turn + 1 WHERE repository_id = :repository_id;
SELECT lease_id FROM picked;

-- name: end_own
-- A task's reservation or hold gives way to its own lease, before the lease's rows are written.
DELETE FROM scope WHERE lease_id IN (
  SELECT l.id FROM lease AS l
  WHERE l.task_id IN (SELECT value FROM json_each(:tasks)) AND l.kind <> 'lease' AND l.ended_ms IS NULL);
UPDATE lease SET ended_ms = :at_ms, end_reason = 'granted'
WHERE task_id IN (SELECT value FROM json_each(:tasks)) AND kind <> 'lease' AND ended_ms IS NULL;

-- name: claim_write
-- Guarded by each task's epoch and state; fewer rows than decided are the caller's sign to roll back.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, ord, asked)
SELECT (SELECT coalesce(max(q.seq), 0) FROM sqlite_sequence AS q WHERE q.name = 'lease')
    + row_number() OVER (ORDER BY g.value ->> 'ord'),
  t.id, t.epoch + 1, g.value ->> 'ord', g.value
FROM json_each(:grants) AS g CROSS JOIN task AS t ON t.id = g.value ->> 'task_id'
WHERE t.epoch = g.value ->> 'epoch' AND t.status = 'queued' AND t.waiting_on IS NULL;
UPDATE task SET status = 'running', epoch = p.epoch, attempts = attempts + 1, events = task.events + 1,
  branch = p.asked ->> 'branch', parked_fence = NULL, parked_ms = NULL
FROM picked AS p WHERE task.id = p.task_id;
INSERT INTO lease (
  id, kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
  renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, branch, label)
SELECT p.lease_id, 'lease', :repository_id, t.id, t.epoch, :worker_id, p.asked ->> 'token_hash', p.asked ->> 'fence',
  :term, :ttl_ms, :at_ms, :at_ms, :at_ms + :ttl_ms, :at_ms + (p.asked ->> 'hold_ms'), t.queue, :agent,
  :kind, t.limit_key, t.branch, p.asked ->> 'label'
FROM picked AS p JOIN task AS t ON t.id = p.task_id
ORDER BY p.lease_id;
INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
SELECT p.lease_id, ts.ord, :repository_id, ts.task_id, ts.text, ts.key, ts.key_end, ts.mode, ts.pattern, ts.ancestors,
  p.asked ->> 'fence'
FROM picked AS p CROSS JOIN task_scope AS ts ON ts.task_id = p.task_id;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :at_ms, 'claimed', t.epoch, :facts FROM picked AS p JOIN task AS t ON t.id = p.task_id;
UPDATE counter SET fence = :fence, floor_ms = max(floor_ms, :at_ms), turn = turn + 1
WHERE repository_id = :repository_id AND repository_id > 0;
INSERT INTO request (actor, request_id, digest, answer, at_ms)
SELECT :actor, :request_id, :digest, (SELECT json_group_array(p.lease_id ORDER BY p.lease_id) FROM picked AS p), :at_ms
WHERE EXISTS (SELECT 1 FROM picked);
SELECT p.lease_id, t.id AS task_id, t.epoch, 1 AS version, l.fence, l.term, l.ttl_ms, l.granted_ms, l.expires_ms,
  l.max_until_ms, l.label, l.branch, l.repository_id, l.queue, t.attempts, t.effects, t.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict,
  (SELECT json_group_array(json_array(ts.text, ts.mode) ORDER BY ts.ord) FROM task_scope AS ts WHERE ts.task_id = t.id) AS scopes,
  l.ended_ms, t.rank, :at_ms AS now,
  (SELECT json_array(w.on_task, n.number, v.branch, w.head) FROM stand AS w
    JOIN submission AS n ON n.task_id = w.on_task JOIN unlanded AS v ON v.task_id = w.on_task
    WHERE w.task_id = t.id) AS stand
FROM picked AS p JOIN lease AS l ON l.id = p.lease_id JOIN task AS t ON t.id = p.task_id
JOIN submission AS s ON s.task_id = t.id
ORDER BY p.ord;

-- name: park_tasks
-- Tasks that wait leave every scan: on a live lease, or on the one that another task was just granted.
-- Who waits for a result to land (`passed` is 0) isn't passed by anybody: a reserved turn wouldn't help it.
UPDATE task SET waiting_on = coalesce(x.lease_id, x.granted), parked_fence = CASE WHEN x.passed = 1 THEN coalesce(parked_fence, :fence) END,
  parked_ms = CASE WHEN x.passed = 1 THEN coalesce(parked_ms, :at_ms) END
FROM (
  SELECT j.value ->> 'task_id' AS task_id, j.value ->> 'lease_id' AS lease_id, j.value ->> 'passed' AS passed, (
    SELECT l.id FROM lease AS l WHERE l.task_id = j.value ->> 'behind' AND l.kind = 'lease' AND l.ended_ms IS NULL
  ) AS granted
  FROM json_each(:parks) AS j
) AS x
WHERE task.id = x.task_id AND task.status = 'queued' AND task.waiting_on IS NULL
RETURNING id AS task_id

-- name: grants
-- What a repeated request is answered with: its leases as they are now.
SELECT l.id AS lease_id, l.task_id, l.epoch, l.version, l.fence, l.term, l.ttl_ms, l.granted_ms, l.expires_ms,
  l.max_until_ms, l.label, l.branch, l.repository_id, l.queue, t.attempts, t.effects, t.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict,
  (SELECT json_group_array(json_array(ts.text, ts.mode) ORDER BY ts.ord) FROM task_scope AS ts WHERE ts.task_id = l.task_id) AS scopes,
  l.ended_ms, t.rank, :now AS now,
  (SELECT json_array(w.on_task, n.number, v.branch, w.head) FROM stand AS w
    JOIN submission AS n ON n.task_id = w.on_task JOIN unlanded AS v ON v.task_id = w.on_task
    WHERE w.task_id = l.task_id) AS stand
FROM json_each(:leases) AS x
JOIN lease AS l ON l.id = x.value
JOIN task AS t ON t.id = l.task_id
JOIN submission AS s ON s.task_id = l.task_id
ORDER BY x.key
