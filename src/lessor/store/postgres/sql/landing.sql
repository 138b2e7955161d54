-- name: cast_shadows
-- Results with a commit, of leases that the same transaction ended: each casts its shadow, once an epoch.
-- No lock is needed: until the ended lease is drained its own rows block, and a claim reads after that.
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(task_id bigint, epoch bigint, digest text, head text)
), l AS (
  INSERT INTO lessor.lease AS l (
    kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms,
    queue, agent, branch, label)
  SELECT 'shadow', o.repository_id, o.task_id, o.epoch, o.fence, o.term, :ttl_ms, o.ended_ms, o.ended_ms,
    o.ended_ms + :ttl_ms, o.ended_ms + :ttl_ms, o.queue, o.agent, o.branch, o.label
  FROM x JOIN lessor.lease AS o ON o.task_id = x.task_id AND o.epoch = x.epoch AND o.kind = 'lease'
  WHERE o.repository_id > 0 AND o.branch IS NOT NULL AND o.ended_ms IS NOT NULL AND o.end_digest = x.digest
    AND NOT EXISTS (SELECT 1 FROM lessor.unlanded AS u WHERE u.task_id = x.task_id AND u.epoch >= x.epoch)
  RETURNING l.id, l.repository_id, l.task_id, l.epoch, l.branch
), s AS (
  INSERT INTO lessor.shadow_scope (lease_id, ord, repository_id, task_id, text, key, key_end, pattern)
  SELECT l.id, ts.ord, l.repository_id, l.task_id, ts.text, ts.key, ts.key_end, ts.pattern
  FROM l JOIN lessor.task_scope AS ts ON ts.task_id = l.task_id
  WHERE ts.mode = 'w'
)
INSERT INTO lessor.unlanded AS u (task_id, repository_id, epoch, lease_id, branch, head, below)
SELECT l.task_id, l.repository_id, l.epoch, l.id, l.branch, x.head,
  coalesce((SELECT w.below FROM lessor.stand AS w WHERE w.task_id = l.task_id), '[]')
FROM l JOIN x ON x.task_id = l.task_id
ON CONFLICT (task_id) DO UPDATE SET epoch = excluded.epoch, lease_id = excluded.lease_id, branch = excluded.branch,
  head = excluded.head, below = excluded.below, trouble = NULL, target = NULL, landed = NULL
RETURNING u.task_id

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
-- Results that neither landed nor were given up, of a repository (0: of all) or of one task (0: of all).
SELECT u.task_id, t.repository_id, u.lease_id, u.branch, u.head, u.below, u.trouble, l.ended_ms,
  (SELECT w.on_task FROM lessor.stand AS w WHERE w.task_id = u.task_id) AS on_task
FROM lessor.unlanded AS u JOIN lessor.lease AS l ON l.id = u.lease_id JOIN lessor.task AS t ON t.id = u.task_id
WHERE (:repository_id = 0 OR u.repository_id = :repository_id) AND (:task_id = 0 OR u.task_id = :task_id)
  AND u.landed IS NULL AND (l.end_reason IS NULL OR l.end_reason <> 'discarded') AND t.status = 'succeeded'
ORDER BY u.task_id
LIMIT :most

-- name: lock_result
-- The task's row, which every change of its result waits for.
SELECT t.id, t.status, t.stage, u.lease_id, u.landed, u.target, u.trouble, l.end_reason
FROM lessor.task AS t JOIN lessor.unlanded AS u ON u.task_id = t.id JOIN lessor.lease AS l ON l.id = u.lease_id
WHERE t.id = :task_id FOR UPDATE OF t

-- name: set_result
UPDATE lessor.unlanded SET landed = coalesce(:landed, landed), target = coalesce(:target, target), trouble = :trouble
WHERE task_id = :task_id
RETURNING task_id

-- name: set_stage
UPDATE lessor.task SET stage = :stage WHERE id = :task_id RETURNING id

-- name: lift_shadow
-- Ended like a lease: the next claim takes its paths away and wakes who waits for it.
UPDATE lessor.lease SET ended_ms = lessor.ms(), end_reason = :reason
WHERE id = :lease_id AND kind = 'shadow' AND ended_ms IS NULL
RETURNING id
