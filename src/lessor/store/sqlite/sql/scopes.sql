-- name: scope_conflicts
-- Live scope rows whose paths may meet the asked ones; exact for plain paths, to be decided for globs.
SELECT x.value ->> 'ord' AS ord, s.lease_id, s.task_id, s.text, s.key, s.mode, s.pattern, s.fence, s.reserved_rank
FROM json_each(:rows) AS x CROSS JOIN json_each(x.value -> 'ancestors') AS a CROSS JOIN scope AS s
WHERE s.repository_id = :repository_id AND s.key = a.value AND s.lease_id <> :lease_id
  AND (s.mode = 'w' OR x.value ->> 'mode' = 'w') AND (s.reserved_rank IS NULL OR :with_reserved = 1)
UNION ALL
SELECT x.value ->> 'ord' AS ord, s.lease_id, s.task_id, s.text, s.key, s.mode, s.pattern, s.fence, s.reserved_rank
FROM json_each(:rows) AS x CROSS JOIN scope AS s
WHERE s.repository_id = :repository_id AND s.key > x.value ->> 'key' AND s.key < x.value ->> 'key_end'
  AND s.lease_id <> :lease_id
  AND (s.mode = 'w' OR x.value ->> 'mode' = 'w') AND (s.reserved_rank IS NULL OR :with_reserved = 1)
ORDER BY 1, 2

-- name: lease_scopes
SELECT s.lease_id, s.ord, s.text, s.key, s.mode, s.pattern, s.fence
FROM scope AS s
WHERE s.lease_id IN (SELECT value FROM json_each(:leases))
ORDER BY s.lease_id, s.ord

-- name: task_scopes
SELECT ts.task_id, ts.ord, ts.text, ts.key, ts.mode, ts.pattern, ts.widened
FROM task_scope AS ts
WHERE ts.task_id IN (SELECT value FROM json_each(:tasks))
ORDER BY ts.task_id, ts.ord

-- name: widen_write
-- A widening is a grant: its rows carry the new fence, and the task keeps them for its next epoch.
INSERT INTO task_scope (task_id, ord, text, key, key_end, mode, pattern, ancestors, widened)
SELECT :task_id, value ->> 'ord', value ->> 'text', value ->> 'key', value ->> 'key_end', value ->> 'mode',
  value ->> 'pattern', value -> 'ancestors', 1
FROM json_each(:rows);
INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
SELECT :lease_id, value ->> 'ord', :repository_id, :task_id, value ->> 'text', value ->> 'key', value ->> 'key_end',
  value ->> 'mode', value ->> 'pattern', value -> 'ancestors', :fence
FROM json_each(:rows);
INSERT INTO widening (repository_id, fence, ord, lease_id, task_id, text, key, mode, pattern)
SELECT :repository_id, :fence, value ->> 'ord', :lease_id, :task_id, value ->> 'text', value ->> 'key', value ->> 'mode',
  value ->> 'pattern'
FROM json_each(:rows);
UPDATE counter SET fence = :fence, floor_ms = max(floor_ms, :at_ms), turn = turn + 1 WHERE repository_id = :repository_id;
-- The high-water file counts lease ids: a widening uses one up, so that a rewind over it shows.
UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'lease';
UPDATE task SET events = task.events + 1,
  globs = CASE WHEN EXISTS (SELECT 1 FROM json_each(:rows) AS j WHERE j.value ->> 'pattern' IS NOT NULL) THEN 1 ELSE globs END
WHERE id = :task_id;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :at_ms, 'widened', :epoch, :facts FROM task AS t WHERE t.id = :task_id
RETURNING n;

-- name: keep_scopes
-- Before a task's scopes are replaced: what its latest lease held stays on record under that lease's fence.
INSERT INTO widening (repository_id, fence, ord, lease_id, task_id, text, key, mode, pattern)
SELECT l.repository_id, l.fence, ts.ord, l.id, ts.task_id, ts.text, ts.key, ts.mode, ts.pattern
FROM task AS t
JOIN lease AS l ON l.task_id = t.id AND l.kind = 'lease' AND l.epoch = (
  SELECT max(m.epoch) FROM lease AS m WHERE m.task_id = :task_id AND m.kind = 'lease')
JOIN task_scope AS ts ON ts.task_id = t.id
WHERE t.id = :task_id
ON CONFLICT (repository_id, fence, ord) DO NOTHING

-- name: last_scope_ord
SELECT coalesce(max(ts.ord), -1) AS ord FROM task_scope AS ts WHERE ts.task_id = :task_id

-- name: taken_since
-- Scopes of other tasks' grants and widenings after :fence, ended or not. A later lease of a task holds
-- what its earlier ones widened to, so all of the task's scopes count.
SELECT l.id AS lease_id, l.task_id, l.fence, ts.text, ts.key, ts.mode, ts.pattern
FROM lease AS l JOIN task_scope AS ts ON ts.task_id = l.task_id
WHERE l.repository_id = :repository_id AND l.repository_id > 0 AND l.fence > :fence AND l.kind = 'lease' AND l.task_id <> :task_id
UNION ALL
SELECT w.lease_id, w.task_id, w.fence, w.text, w.key, w.mode, w.pattern
FROM widening AS w
WHERE w.repository_id = :repository_id AND w.fence > :fence AND w.task_id <> :task_id
ORDER BY fence
