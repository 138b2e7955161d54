-- name: scope_conflicts
-- Live scope rows whose paths may meet the asked ones; exact for plain paths, to be decided for globs.
WITH x AS (
  SELECT * FROM json_to_recordset(:rows::json) AS x(ord bigint, key text, key_end text, mode text, pattern text, ancestors text[])
)
SELECT x.ord, s.lease_id, s.task_id, s.text, s.key, s.mode, s.pattern, s.fence, s.reserved_rank
FROM x CROSS JOIN LATERAL (
  (SELECT s.* FROM lessor.scope AS s
    WHERE s.repository_id = :repository_id AND s.key = ANY (x.ancestors) AND s.lease_id <> :lease_id
      AND (s.mode = 'w' OR x.mode = 'w') AND (s.reserved_rank IS NULL OR :with_reserved = 1) LIMIT 1000)
  UNION ALL
  (SELECT s.* FROM lessor.scope AS s
    WHERE s.repository_id = :repository_id AND s.key > x.key AND s.key < x.key_end AND s.lease_id <> :lease_id
      AND (s.mode = 'w' OR x.mode = 'w') AND (s.reserved_rank IS NULL OR :with_reserved = 1) LIMIT 1000)
) AS s
ORDER BY x.ord, s.lease_id

-- name: lease_scopes
SELECT s.lease_id, s.ord, s.text, s.key, s.mode, s.pattern, s.fence
FROM lessor.scope AS s
WHERE s.lease_id IN (SELECT value::bigint FROM json_array_elements_text(:leases::json))
ORDER BY s.lease_id, s.ord

-- name: task_scopes
SELECT ts.task_id, ts.ord, ts.text, ts.key, ts.mode, ts.pattern, ts.widened
FROM lessor.task_scope AS ts
WHERE ts.task_id IN (SELECT value::bigint FROM json_array_elements_text(:tasks::json))
ORDER BY ts.task_id, ts.ord

-- name: widen_write
-- A widening is a grant: its rows carry the new fence, and the task keeps them for its next epoch.
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(
    ord bigint, text text, key text, key_end text, mode text, pattern text, ancestors text[])
), kept AS (
  INSERT INTO lessor.task_scope (task_id, ord, text, key, key_end, mode, pattern, ancestors, widened)
  SELECT :task_id, x.ord, x.text, x.key, x.key_end, x.mode, x.pattern, x.ancestors, 1 FROM x
), live AS (
  INSERT INTO lessor.scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
  SELECT :lease_id, x.ord, :repository_id, :task_id, x.text, x.key, x.key_end, x.mode, x.pattern, x.ancestors, :fence FROM x
), history AS (
  INSERT INTO lessor.widening (repository_id, fence, ord, lease_id, task_id, text, key, mode, pattern)
  SELECT :repository_id, :fence, x.ord, :lease_id, :task_id, x.text, x.key, x.mode, x.pattern FROM x
), turned AS (
  UPDATE lessor.counter AS c SET turn = c.turn + 1, fence = :fence, floor_ms = greatest(c.floor_ms, :at_ms)
  WHERE c.repository_id = :repository_id AND c.repository_id > 0 AND c.turn = (
    SELECT k.turn FROM lessor.counter AS k WHERE k.repository_id = :repository_id ORDER BY k.turn DESC LIMIT 1)
), u AS (
  UPDATE lessor.task AS t
  SET events = t.events + 1, globs = CASE WHEN EXISTS (SELECT 1 FROM x WHERE x.pattern IS NOT NULL) THEN 1 ELSE t.globs END
  WHERE t.id = :task_id RETURNING t.id, t.events
)
INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
SELECT u.id, u.events, :at_ms, 'widened', :epoch, :facts FROM u
RETURNING n

-- name: keep_scopes
-- Before a task's scopes are replaced: what its latest lease held stays on record under that lease's fence.
INSERT INTO lessor.widening (repository_id, fence, ord, lease_id, task_id, text, key, mode, pattern)
SELECT l.repository_id, l.fence, ts.ord, l.id, ts.task_id, ts.text, ts.key, ts.mode, ts.pattern
FROM lessor.task AS t
JOIN lessor.lease AS l ON l.task_id = t.id AND l.kind = 'lease' AND l.epoch = (
  SELECT max(m.epoch) FROM lessor.lease AS m WHERE m.task_id = :task_id AND m.kind = 'lease')
JOIN lessor.task_scope AS ts ON ts.task_id = t.id
WHERE t.id = :task_id
ON CONFLICT (repository_id, fence, ord) DO NOTHING

-- name: last_scope_ord
SELECT coalesce(max(ts.ord), -1) AS ord FROM lessor.task_scope AS ts WHERE ts.task_id = :task_id

-- name: taken_since
-- Scopes of other tasks' grants and widenings after :fence, ended or not. A later lease of a task holds
-- what its earlier ones widened to, so all of the task's scopes count.
SELECT l.id AS lease_id, l.task_id, l.fence, ts.text, ts.key, ts.mode, ts.pattern
FROM lessor.lease AS l JOIN lessor.task_scope AS ts ON ts.task_id = l.task_id
WHERE l.repository_id = :repository_id AND l.repository_id > 0 AND l.fence > :fence AND l.kind = 'lease' AND l.task_id <> :task_id
UNION ALL
SELECT w.lease_id, w.task_id, w.fence, w.text, w.key, w.mode, w.pattern
FROM lessor.widening AS w
WHERE w.repository_id = :repository_id AND w.fence > :fence AND w.task_id <> :task_id
ORDER BY fence
