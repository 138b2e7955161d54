-- name: cast_shadows
-- Work with a commit, of leases (or of holds after a question, `held`) that the same transaction ended: each
-- casts its shadow, once an epoch, on what they have for writing.
-- No lock is needed: until what ended is drained its own rows block, and a claim reads after that.
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(task_id bigint, epoch bigint, digest text, head text, held bigint)
), o AS MATERIALIZED (
  SELECT o.*, coalesce(:at_ms::bigint, o.ended_ms) AS cast_ms, coalesce(x.held, o.id) AS holder
  FROM x JOIN lessor.lease AS o ON o.task_id = x.task_id AND o.epoch = x.epoch AND o.kind = 'lease'
  WHERE o.repository_id > 0 AND o.branch IS NOT NULL AND o.ended_ms IS NOT NULL AND o.end_digest = x.digest
    AND NOT EXISTS (SELECT 1 FROM lessor.unlanded AS u WHERE u.task_id = x.task_id AND u.epoch >= x.epoch)
), l AS (
  INSERT INTO lessor.lease AS l (
    kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms,
    queue, agent, branch, label)
  SELECT 'shadow', o.repository_id, o.task_id, o.epoch, o.fence, o.term, :ttl_ms, o.cast_ms, o.cast_ms,
    o.cast_ms + :ttl_ms, o.cast_ms + :ttl_ms, o.queue, o.agent, o.branch, o.label
  FROM o
  RETURNING l.id, l.repository_id, l.task_id, l.epoch, l.branch
), s AS (
  INSERT INTO lessor.shadow_scope (lease_id, ord, repository_id, task_id, text, key, key_end, pattern)
  SELECT l.id, w.ord, l.repository_id, l.task_id, w.text, w.key, w.key_end, w.pattern
  FROM l JOIN o ON o.task_id = l.task_id JOIN lessor.scope AS w ON w.lease_id = o.holder
  WHERE w.mode = 'w'
)
INSERT INTO lessor.unlanded AS u (task_id, repository_id, epoch, lease_id, branch, head, below)
SELECT l.task_id, l.repository_id, l.epoch, l.id, l.branch, x.head,
  coalesce((SELECT w.below FROM lessor.stand AS w WHERE w.task_id = l.task_id), '[]')
FROM l JOIN x ON x.task_id = l.task_id
ON CONFLICT (task_id) DO UPDATE SET epoch = excluded.epoch, lease_id = excluded.lease_id, branch = excluded.branch,
  head = excluded.head, below = excluded.below, trouble = NULL, target = NULL, landed = NULL, given_up = 0
RETURNING u.task_id, u.epoch

-- name: asked_results
-- What was reported with the questions after which these holds were put, and what that work began from.
SELECT h.id AS hold_id, o.task_id, o.epoch, o.end_digest, o.result, w.base
FROM lessor.lease AS h
JOIN lessor.lease AS o ON o.task_id = h.task_id AND o.epoch = h.epoch AND o.kind = 'lease'
LEFT JOIN lessor.workspace AS w ON w.id = o.workspace_id
WHERE h.id IN (SELECT value::bigint FROM json_array_elements_text(:holds::json)) AND o.end_reason = 'asked'
ORDER BY h.id

-- name: shadow_pairs
-- For each task the shadows whose paths may meet its own; exact for plain paths, to be decided for globs.
SELECT p.task_id, p.on_task, p.lease_id, u.branch, u.head, u.below, p.mine_key, p.mine_mode, p.mine_pattern, p.key, p.pattern
FROM (SELECT value::bigint AS task_id FROM json_array_elements_text(:tasks::json)) AS c
JOIN lessor.task AS t ON t.id = c.task_id
CROSS JOIN LATERAL (
  SELECT t.id AS task_id, s.task_id AS on_task, s.lease_id, ts.key AS mine_key, ts.mode AS mine_mode,
    ts.pattern AS mine_pattern, s.key, s.pattern
  FROM lessor.task_scope AS ts CROSS JOIN LATERAL (
    SELECT s.lease_id, s.task_id, s.key, s.pattern FROM lessor.shadow_scope AS s
    WHERE s.repository_id = t.repository_id AND s.key = ANY (ts.ancestors)
    UNION ALL
    SELECT s.lease_id, s.task_id, s.key, s.pattern FROM lessor.shadow_scope AS s
    WHERE s.repository_id = t.repository_id AND s.key > ts.key AND s.key < ts.key_end
  ) AS s
  WHERE ts.task_id = t.id AND s.task_id <> t.id
  LIMIT :most
) AS p
JOIN lessor.lease AS l ON l.id = p.lease_id AND l.ended_ms IS NULL
JOIN lessor.unlanded AS u ON u.task_id = p.on_task
ORDER BY p.task_id, p.lease_id

-- name: put_stands
-- On which results the tasks begin that are granted next, in the same transaction.
INSERT INTO lessor.stand AS w (task_id, on_task, head, below)
SELECT x.task_id, x.on_task, x.head, x.below
FROM json_to_recordset(:rows::json) AS x(task_id bigint, on_task bigint, head text, below text)
ON CONFLICT (task_id) DO UPDATE SET on_task = excluded.on_task, head = excluded.head, below = excluded.below
RETURNING w.task_id

-- name: shadow_scopes
SELECT s.lease_id, s.ord, s.text, s.key, 'w' AS mode, s.pattern
FROM lessor.shadow_scope AS s
WHERE s.lease_id IN (SELECT value::bigint FROM json_array_elements_text(:leases::json))
ORDER BY s.lease_id, s.ord

-- name: stand
SELECT w.on_task, n.number, u.branch, w.head
FROM lessor.stand AS w JOIN lessor.submission AS n ON n.task_id = w.on_task JOIN lessor.unlanded AS u ON u.task_id = w.on_task
WHERE w.task_id = :task_id

-- name: results
-- Results that neither landed nor were given up, of a repository (0: of all) or of one task (0: of all);
-- with `unfinished` also the work of tasks that go on. Those after a task, oldest first.
SELECT u.task_id, t.repository_id, u.lease_id, u.branch, u.head, u.below, u.trouble, l.ended_ms,
  CASE WHEN t.finished_ms IS NULL THEN 0 ELSE 1 END AS finished, (SELECT w.on_task FROM lessor.stand AS w WHERE w.task_id = u.task_id) AS on_task
FROM lessor.unlanded AS u JOIN lessor.lease AS l ON l.id = u.lease_id JOIN lessor.task AS t ON t.id = u.task_id
WHERE u.task_id > :after AND (:repository_id = 0 OR u.repository_id = :repository_id) AND (:task_id = 0 OR u.task_id = :task_id)
  AND u.landed IS NULL AND u.given_up = 0 AND (t.status = 'succeeded' OR :unfinished = 1 AND t.finished_ms IS NULL)
ORDER BY u.task_id
LIMIT :most

-- name: overdue_shadows
-- Shadows for which somebody has waited longer than its queue allows: how many wait for so long, since when
-- the first of them, and its number.
SELECT b.task_id, b.waiting, b.since_ms, s.number
FROM (
  SELECT l.id, l.task_id, count(*) AS waiting, min(t.queued_ms) AS since_ms, min(t.id) AS first
  FROM lessor.lease AS l JOIN lessor.task AS t ON t.waiting_on = l.id LEFT JOIN lessor.queue AS q ON q.name = t.queue
  WHERE l.kind <> 'lease' AND l.kind = 'shadow' AND l.ended_ms IS NULL AND (:repository_id = 0 OR l.repository_id = :repository_id)
    AND t.due = 1 AND t.needs_left = 0 AND (SELECT lessor.ms()) - t.queued_ms >= coalesce(q.wait_max_ms, 3600000)
  GROUP BY l.id, l.task_id
) AS b JOIN lessor.submission AS s ON s.task_id = b.first
ORDER BY b.id
LIMIT :most

-- name: lock_result
-- The shadow's row, then the result's and the task's, which every change of the result waits for.
WITH l AS MATERIALIZED (
  SELECT l.id FROM lessor.unlanded AS u JOIN lessor.lease AS l ON l.id = u.lease_id WHERE u.task_id = :task_id FOR UPDATE OF l
)
SELECT t.id AS task_id, t.status, u.lease_id, u.landed, u.trouble, u.given_up
FROM l JOIN lessor.unlanded AS u ON u.lease_id = l.id JOIN lessor.task AS t ON t.id = u.task_id
WHERE t.id = :task_id FOR UPDATE OF u, t

-- name: set_result
UPDATE lessor.unlanded SET landed = coalesce(:landed, landed), target = coalesce(:target, target), trouble = :trouble
WHERE task_id = :task_id
RETURNING task_id

-- name: give_up_result
UPDATE lessor.unlanded SET given_up = 1 WHERE task_id = :task_id RETURNING task_id

-- name: set_stage
UPDATE lessor.task SET stage = :stage WHERE id = :task_id RETURNING id

-- name: lift_shadow
-- Ended like a lease: the next claim takes its paths away and wakes who waits for it.
UPDATE lessor.lease SET ended_ms = lessor.ms(), end_reason = :reason
WHERE id = :lease_id AND kind = 'shadow' AND ended_ms IS NULL
RETURNING id
