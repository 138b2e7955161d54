-- name: tasks
SELECT t.id, s.number, s.title, s.prompt, t.queue, t.repository_id, t.rank, t.status, t.stage, t.effects, t.agent,
  s.check_command, t.branch, s.strict, t.progress, t.unique_key, s.idempotency_key, t.limit_key,
  coalesce(t.capabilities, '[]') AS capabilities, t.epoch, t.attempts, t.charged, t.max_attempts, t.run_at_ms,
  t.queued_ms, s.created_ms, t.finished_ms, t.needs_left, t.waiting_on,
  (SELECT l.result FROM lease AS l WHERE l.task_id = t.id AND l.kind = 'lease' AND l.result IS NOT NULL ORDER BY l.epoch DESC LIMIT 1) AS result,
  (SELECT json_group_array(json_array(ts.text, ts.mode) ORDER BY ts.ord) FROM task_scope AS ts WHERE ts.task_id = t.id) AS scopes
FROM task AS t JOIN submission AS s ON s.task_id = t.id
WHERE t.id IN (SELECT value FROM json_each(:tasks))
ORDER BY t.id

-- name: task_by_number
SELECT s.task_id FROM submission AS s WHERE s.repository_id = :repository_id AND s.number = :number

-- name: list_tasks
SELECT t.id FROM task AS t
WHERE (:repository_id < 0 OR t.repository_id = :repository_id) AND (:queue = '' OR t.queue = :queue)
  AND (:states = '[]' OR t.status IN (SELECT value FROM json_each(:states)))
  AND (:before = 0 OR t.id < :before)
ORDER BY t.id DESC
LIMIT :most

-- name: list_open_tasks
SELECT t.id FROM task AS t
WHERE t.repository_id = :repository_id AND t.finished_ms IS NULL
ORDER BY t.id
LIMIT :most

-- name: count_tasks
SELECT t.status, count(*) AS found FROM task AS t
WHERE (:repository_id < 0 OR t.repository_id = :repository_id) AND (:queue = '' OR t.queue = :queue)
GROUP BY t.status ORDER BY t.status

-- name: ready_tasks
SELECT t.id FROM task AS t
WHERE t.queue = :queue AND t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
  AND t.needs_left = 0 AND t.waiting_on IS NULL
  AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.name = :queue AND q.paused = 1)
ORDER BY t.rank, t.id
LIMIT :most

-- name: leases
-- What somebody held or has reserved; a shadow is nobody's, and the results tell of it.
SELECT l.id, l.kind, l.repository_id, l.task_id, s.number, s.title, l.epoch, l.worker_id, l.agent, l.version, l.fence, l.term,
  l.ttl_ms, l.granted_ms, l.renewed_ms, l.expires_ms, l.max_until_ms, l.queue, l.branch, l.label, l.workspace_id,
  l.ended_ms, l.end_reason, l.acknowledged_ms, l.proof, l.result,
  coalesce((SELECT x.counted FROM late_result AS x WHERE x.task_id = l.task_id AND x.epoch = l.epoch AND l.kind = 'lease'), 0) AS late, :now AS now
FROM lease AS l JOIN submission AS s ON s.task_id = l.task_id
WHERE (:repository_id < 0 OR l.repository_id = :repository_id) AND l.kind <> 'shadow'
ORDER BY l.id
LIMIT :most

-- name: task_leases
-- A task's leases, and the holds and reservations it has now. Two looks, as each has an index of its own; one
-- that served for both read every lease there ever was.
SELECT l.id, l.kind, l.repository_id, l.task_id, s.number, s.title, l.epoch, l.worker_id, l.agent, l.version, l.fence, l.term,
  l.ttl_ms, l.granted_ms, l.renewed_ms, l.expires_ms, l.max_until_ms, l.queue, l.branch, l.label, l.workspace_id,
  l.ended_ms, l.end_reason, l.acknowledged_ms, l.proof, l.result,
  coalesce((SELECT x.counted FROM late_result AS x WHERE x.task_id = l.task_id AND x.epoch = l.epoch AND l.kind = 'lease'), 0) AS late, :now AS now
FROM lease AS l JOIN submission AS s ON s.task_id = l.task_id
WHERE l.id IN (
  SELECT a.id FROM lease AS a WHERE a.task_id = :task_id AND a.kind = 'lease'
  UNION ALL
  SELECT a.id FROM lease AS a WHERE a.task_id = :task_id AND a.kind <> 'lease' AND a.kind <> 'shadow' AND a.ended_ms IS NULL)
  AND (:live = 0 OR l.ended_ms IS NULL)
ORDER BY l.id
LIMIT :most

-- name: live_leases
SELECT l.id, l.kind, l.repository_id, l.task_id, s.number, s.title, l.epoch, l.worker_id, l.agent, l.version, l.fence, l.term,
  l.ttl_ms, l.granted_ms, l.renewed_ms, l.expires_ms, l.max_until_ms, l.queue, l.branch, l.label, l.workspace_id,
  l.ended_ms, l.end_reason, l.acknowledged_ms, l.proof, l.result,
  coalesce((SELECT x.counted FROM late_result AS x WHERE x.task_id = l.task_id AND x.epoch = l.epoch AND l.kind = 'lease'), 0) AS late, :now AS now
FROM lease AS l JOIN submission AS s ON s.task_id = l.task_id
WHERE l.ended_ms IS NULL AND l.kind <> 'shadow'
  AND l.repository_id IN (SELECT r.id FROM repository AS r WHERE :repository_id < 0 OR r.id = :repository_id)
ORDER BY l.id
LIMIT :most

-- name: lease
SELECT l.id, l.kind, l.repository_id, l.task_id, s.number, s.title, l.epoch, l.worker_id, l.agent, l.version, l.fence, l.term,
  l.ttl_ms, l.granted_ms, l.renewed_ms, l.expires_ms, l.max_until_ms, l.queue, l.branch, l.label, l.workspace_id,
  l.ended_ms, l.end_reason, l.acknowledged_ms, l.proof, l.result,
  coalesce((SELECT x.counted FROM late_result AS x WHERE x.task_id = l.task_id AND x.epoch = l.epoch AND l.kind = 'lease'), 0) AS late, :now AS now
FROM lease AS l JOIN submission AS s ON s.task_id = l.task_id
WHERE l.id = :lease_id

-- name: holder_lease
-- What a holder may ask without writing: is it still mine?
SELECT l.id, l.version, l.expires_ms, l.max_until_ms, l.ended_ms, l.end_reason, l.fence, :now AS now
FROM lease AS l
WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease' AND l.worker_id = :worker_id AND l.token_hash = :token_hash

-- name: history
SELECT e.task_id, e.n, e.at_ms, e.kind, e.epoch, e.facts FROM event AS e
WHERE e.task_id = :task_id AND e.n > :after ORDER BY e.n LIMIT :most

-- name: end_facts
-- What is on record about how an epoch ended.
SELECT e.facts FROM event AS e
WHERE e.task_id = :task_id AND e.epoch = :epoch AND e.kind = :kind
ORDER BY e.n DESC LIMIT 1

-- name: needs
SELECT d.needs_id AS task_id, s.number, s.title, t.status FROM dependency AS d
JOIN task AS t ON t.id = d.needs_id JOIN submission AS s ON s.task_id = t.id
WHERE d.task_id = :task_id ORDER BY d.needs_id

-- name: waiting_position
SELECT count(*) AS before FROM (
  SELECT 1 FROM task AS t
  WHERE t.waiting_on = :lease_id AND (t.rank, t.id) < (:rank, :task_id) LIMIT 10000
) AS earlier

-- name: ready_position
SELECT count(*) AS before FROM (
  SELECT 1 FROM task AS t
  WHERE t.queue = :queue AND t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
    AND t.needs_left = 0 AND t.waiting_on IS NULL AND (t.rank, t.id) < (:rank, :task_id) LIMIT 10000
) AS earlier

-- name: task_wait
SELECT t.id AS task_id, t.status, t.queue, t.repository_id, t.rank, t.due, t.run_at_ms, t.needs_left, t.waiting_on, t.parked_fence,
  t.parked_ms, t.agent, coalesce(t.capabilities, '[]') AS capabilities, t.limit_key, t.queued_ms, t.globs,
  coalesce(q.paused, 0) AS paused, coalesce(q.wait_max_ms, 3600000) AS wait_max_ms, :now AS now
FROM task AS t LEFT JOIN queue AS q ON q.name = t.queue
WHERE t.id = :task_id

-- name: overdue
SELECT t.id FROM task AS t LEFT JOIN queue AS q ON q.name = t.queue
WHERE t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
  AND t.queued_ms + coalesce(q.wait_max_ms, 3600000) <= :now
ORDER BY t.id LIMIT :most

-- name: store_size
-- What the store takes on its disk, in bytes, without its write-ahead log.
SELECT p.page_count * s.page_size AS size FROM pragma_page_count AS p, pragma_page_size AS s
