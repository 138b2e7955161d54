-- name: cast_shadows
-- Work with a commit, of leases (or of holds after a question, `held`) that the same transaction ended: each
-- casts its shadow, once an epoch, on what they have for writing.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, ord, asked)
SELECT (SELECT coalesce(max(q.seq), 0) FROM sqlite_sequence AS q WHERE q.name = 'lease') + row_number() OVER (ORDER BY x.key),
  o.task_id, o.epoch, o.id, json_set(x.value, '$.cast_ms', coalesce(:at_ms, o.ended_ms))
FROM json_each(:rows) AS x
JOIN lease AS o ON o.task_id = x.value ->> 'task_id' AND o.epoch = x.value ->> 'epoch' AND o.kind = 'lease'
WHERE o.repository_id > 0 AND o.branch IS NOT NULL AND o.ended_ms IS NOT NULL AND o.end_digest = x.value ->> 'digest'
  AND NOT EXISTS (SELECT 1 FROM unlanded AS u WHERE u.task_id = o.task_id AND u.epoch >= o.epoch);
INSERT INTO lease (
  id, kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms,
  queue, agent, branch, label)
SELECT p.lease_id, 'shadow', o.repository_id, o.task_id, o.epoch, o.fence, o.term, :ttl_ms, p.asked ->> 'cast_ms', p.asked ->> 'cast_ms',
  (p.asked ->> 'cast_ms') + :ttl_ms, (p.asked ->> 'cast_ms') + :ttl_ms, o.queue, o.agent, o.branch, o.label
FROM picked AS p JOIN lease AS o ON o.id = p.ord;
INSERT INTO shadow_scope (lease_id, ord, repository_id, task_id, text, key, key_end, pattern)
SELECT p.lease_id, w.ord, w.repository_id, p.task_id, w.text, w.key, w.key_end, w.pattern
FROM picked AS p CROSS JOIN scope AS w ON w.lease_id = coalesce(p.asked ->> 'held', p.ord)
WHERE w.mode = 'w';
INSERT INTO unlanded (task_id, repository_id, epoch, lease_id, branch, head, below)
SELECT p.task_id, o.repository_id, p.epoch, p.lease_id, o.branch, p.asked ->> 'head',
  coalesce((SELECT w.below FROM stand AS w WHERE w.task_id = p.task_id), '[]')
FROM picked AS p JOIN lease AS o ON o.id = p.ord
WHERE true
ON CONFLICT (task_id) DO UPDATE SET epoch = excluded.epoch, lease_id = excluded.lease_id, branch = excluded.branch,
  head = excluded.head, below = excluded.below, trouble = NULL, target = NULL, landed = NULL, given_up = 0;
SELECT p.task_id, p.epoch FROM picked AS p;

-- name: asked_results
-- What was reported with the questions after which these holds were put, and what that work began from.
SELECT h.id AS hold_id, o.task_id, o.epoch, o.end_digest, o.result, w.base
FROM lease AS h
JOIN lease AS o ON o.task_id = h.task_id AND o.epoch = h.epoch AND o.kind = 'lease'
LEFT JOIN workspace AS w ON w.id = o.workspace_id
WHERE h.id IN (SELECT value FROM json_each(:holds)) AND o.end_reason = 'asked'
ORDER BY h.id

-- name: shadow_pairs
-- For each task the shadows whose paths may meet its own; at most :most pairs a task, as a rank within it.
SELECT p.task_id, p.on_task, p.lease_id, u.branch, u.head, u.below, p.mine_key, p.mine_mode, p.mine_pattern, p.key, p.pattern
FROM (
  SELECT q.*, row_number() OVER (PARTITION BY q.task_id) AS place
  FROM (
    SELECT t.id AS task_id, s.task_id AS on_task, s.lease_id, ts.key AS mine_key, ts.mode AS mine_mode,
      ts.pattern AS mine_pattern, s.key, s.pattern
    FROM json_each(:tasks) AS c CROSS JOIN task AS t ON t.id = c.value
    CROSS JOIN task_scope AS ts ON ts.task_id = t.id
    CROSS JOIN json_each(ts.ancestors) AS a
    CROSS JOIN shadow_scope AS s ON s.repository_id = t.repository_id AND s.key = a.value
    WHERE s.task_id <> t.id
    UNION ALL
    SELECT t.id AS task_id, s.task_id AS on_task, s.lease_id, ts.key AS mine_key, ts.mode AS mine_mode,
      ts.pattern AS mine_pattern, s.key, s.pattern
    FROM json_each(:tasks) AS c CROSS JOIN task AS t ON t.id = c.value
    CROSS JOIN task_scope AS ts ON ts.task_id = t.id
    CROSS JOIN shadow_scope AS s ON s.repository_id = t.repository_id AND s.key > ts.key AND s.key < ts.key_end
    WHERE s.task_id <> t.id
  ) AS q
) AS p
JOIN lease AS l ON l.id = p.lease_id AND l.ended_ms IS NULL
JOIN unlanded AS u ON u.task_id = p.on_task
WHERE p.place <= :most
ORDER BY p.task_id, p.lease_id

-- name: put_stands
-- On which results the tasks begin that are granted next, in the same transaction.
INSERT INTO stand (task_id, on_task, head, below)
SELECT x.value ->> 'task_id', x.value ->> 'on_task', x.value ->> 'head', x.value ->> 'below'
FROM json_each(:rows) AS x
WHERE true
ON CONFLICT (task_id) DO UPDATE SET on_task = excluded.on_task, head = excluded.head, below = excluded.below
RETURNING task_id

-- name: shadow_scopes
SELECT s.lease_id, s.ord, s.text, s.key, 'w' AS mode, s.pattern
FROM shadow_scope AS s
WHERE s.lease_id IN (SELECT value FROM json_each(:leases))
ORDER BY s.lease_id, s.ord

-- name: stand
SELECT w.on_task, n.number, u.branch, w.head
FROM stand AS w JOIN submission AS n ON n.task_id = w.on_task JOIN unlanded AS u ON u.task_id = w.on_task
WHERE w.task_id = :task_id

-- name: results
-- Results that neither landed nor were given up, of a repository (0: of all) or of one task (0: of all);
-- with `unfinished` also the work of tasks that go on. Those after a task, oldest first.
-- By the index of those that haven't landed; CROSS JOIN keeps it first (SQLite's own choice read every task).
SELECT u.task_id, t.repository_id, u.lease_id, u.branch, u.head, u.below, u.trouble, l.ended_ms,
  CASE WHEN t.finished_ms IS NULL THEN 0 ELSE 1 END AS finished, (SELECT w.on_task FROM stand AS w WHERE w.task_id = u.task_id) AS on_task
FROM unlanded AS u INDEXED BY unlanded_branch CROSS JOIN lease AS l ON l.id = u.lease_id CROSS JOIN task AS t ON t.id = u.task_id
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
  FROM lease AS l JOIN task AS t ON t.waiting_on = l.id LEFT JOIN queue AS q ON q.name = t.queue
  WHERE l.kind <> 'lease' AND l.kind = 'shadow' AND l.ended_ms IS NULL AND (:repository_id = 0 OR l.repository_id = :repository_id)
    AND t.due = 1 AND t.needs_left = 0 AND :now - t.queued_ms >= coalesce(q.wait_max_ms, 3600000)
  GROUP BY l.id, l.task_id
) AS b JOIN submission AS s ON s.task_id = b.first
ORDER BY b.id
LIMIT :most

-- name: lock_result
-- BEGIN IMMEDIATE holds every row.
SELECT t.id AS task_id, t.status, u.lease_id, u.landed, u.trouble, u.given_up
FROM task AS t JOIN unlanded AS u ON u.task_id = t.id WHERE t.id = :task_id

-- name: set_result
UPDATE unlanded SET landed = coalesce(:landed, landed), target = coalesce(:target, target), trouble = :trouble
WHERE task_id = :task_id
RETURNING task_id

-- name: give_up_result
UPDATE unlanded SET given_up = 1 WHERE task_id = :task_id RETURNING task_id

-- name: set_stage
UPDATE task SET stage = :stage WHERE id = :task_id RETURNING id

-- name: lift_shadow
-- Ended like a lease: the next claim takes its paths away and wakes who waits for it.
UPDATE lease SET ended_ms = :now, end_reason = :reason
WHERE id = :lease_id AND kind = 'shadow' AND ended_ms IS NULL
RETURNING id
