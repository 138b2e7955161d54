-- name: reserve_task_ids
-- Explicit ids move AUTOINCREMENT's own counter, so none is handed out twice.
WITH RECURSIVE n (id) AS (
  SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'task'), 0) + 1
  UNION ALL
  SELECT id + 1 FROM n
  LIMIT :wanted
)
SELECT id FROM n

-- name: next_numbers
UPDATE repository SET last_number = last_number + :wanted WHERE id = :repository_id RETURNING last_number

-- name: insert_tasks
-- A unique key that an unfinished task of the queue has makes this row nothing; the caller asks who has it.
-- (WHERE true: without it SQLite reads ON as the join's.)
INSERT INTO task (
  id, queue, repository_id, rank, status, due, run_at_ms, needs_left, agent, capabilities, limit_key, unique_key,
  branch, effects, progress, globs, max_attempts, events, queued_ms)
SELECT value ->> 'id', value ->> 'queue', value ->> 'repository_id', value ->> 'rank', :status, value ->> 'due',
  value ->> 'run_at_ms', value ->> 'needs_left', value ->> 'agent', value ->> 'capabilities', value ->> 'limit_key',
  value ->> 'unique_key', value ->> 'branch', value ->> 'effects', value ->> 'progress', value ->> 'globs',
  value ->> 'max_attempts', 1, value ->> 'queued_ms'
FROM json_each(:rows) WHERE true
ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled')
DO NOTHING
RETURNING id

-- name: insert_submissions
INSERT INTO submission (
  task_id, repository_id, number, title, branch_words, prompt, check_command, idempotency_key, strict, submitter, created_ms)
SELECT x.id, x.repository_id, x.number, x.title, x.branch_words, x.prompt, x.check_command, x.idempotency_key, x.strict, :submitter, x.queued_ms
FROM (SELECT value ->> 'id' AS id, value ->> 'repository_id' AS repository_id, value ->> 'number' AS number, value ->> 'title' AS title, value ->> 'branch_words' AS branch_words, value ->> 'prompt' AS prompt, value ->> 'check_command' AS check_command, value ->> 'idempotency_key' AS idempotency_key, value ->> 'strict' AS strict, value ->> 'queued_ms' AS queued_ms FROM json_each(:rows)) AS x
RETURNING task_id

-- name: insert_task_scopes
INSERT INTO task_scope (task_id, ord, text, key, key_end, mode, pattern, ancestors, widened)
SELECT x.task_id, x.ord, x.text, x.key, x.key_end, x.mode, x.pattern, x.ancestors, x.widened
FROM (SELECT value ->> 'task_id' AS task_id, value ->> 'ord' AS ord, value ->> 'text' AS text, value ->> 'key' AS key, value ->> 'key_end' AS key_end, value ->> 'mode' AS mode, value ->> 'pattern' AS pattern, value ->> 'ancestors' AS ancestors, value ->> 'widened' AS widened FROM json_each(:rows)) AS x
RETURNING task_id

-- name: drop_task_scopes
DELETE FROM task_scope WHERE task_id = :task_id RETURNING task_id

-- name: insert_dependencies
INSERT INTO dependency (task_id, needs_id)
SELECT DISTINCT x.task_id, x.needs_id
FROM (SELECT value ->> 'task_id' AS task_id, value ->> 'needs_id' AS needs_id FROM json_each(:rows)) AS x
RETURNING task_id

-- name: recount_needs
UPDATE task AS t
SET needs_left = (
  SELECT count(*) FROM dependency AS d JOIN task AS n ON n.id = d.needs_id
  WHERE d.task_id = t.id AND n.status <> :met)
WHERE t.id IN (SELECT value FROM json_each(:tasks))
RETURNING id

-- name: drop_dependencies
DELETE FROM dependency WHERE task_id = :task_id RETURNING needs_id

-- name: lock_needs
-- BEGIN IMMEDIATE holds every row.
SELECT id FROM repository WHERE id = 0

-- name: needed_by
-- Everything that the given tasks wait for, directly or not; to refuse a cycle.
WITH RECURSIVE above AS (
  SELECT value AS id FROM json_each(:tasks)
  UNION
  SELECT d.needs_id FROM above AS a JOIN dependency AS d ON d.task_id = a.id
)
SELECT id FROM above

-- name: insert_events
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT x.task_id, x.n, x.at_ms, x.kind, x.epoch, x.facts
FROM (SELECT value ->> 'task_id' AS task_id, value ->> 'n' AS n, value ->> 'at_ms' AS at_ms, value ->> 'kind' AS kind, value ->> 'epoch' AS epoch, value ->> 'facts' AS facts FROM json_each(:rows)) AS x
RETURNING task_id

-- name: append_event
UPDATE task SET events = task.events + 1 WHERE id = :task_id;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :now, :kind, coalesce(:epoch, t.epoch), :facts FROM task AS t WHERE t.id = :task_id
RETURNING n;

-- name: unfinished_by_key
SELECT t.id AS task_id, t.queue, t.unique_key, s.number
FROM (SELECT value ->> 'queue' AS queue, value ->> 'unique_key' AS unique_key FROM json_each(:rows)) AS x
JOIN task AS t ON t.queue = x.queue AND t.unique_key = x.unique_key
  AND t.status NOT IN ('succeeded', 'failed', 'cancelled')
JOIN submission AS s ON s.task_id = t.id

-- name: newest_by_key
SELECT max(t.id) AS task_id
FROM json_each(:keys) AS x
JOIN task AS t ON t.repository_id = :repository_id AND t.unique_key = x.value
GROUP BY t.unique_key ORDER BY task_id

-- name: newest_on_branches
-- The newest task of each branch, finished or not. No index has the branches of finished tasks, which each
-- ending would have to write for it: a person's question reads the rows here, and only what it wants comes out.
SELECT max(t.id) AS task_id
FROM task AS t
WHERE t.repository_id = :repository_id AND t.branch IN (SELECT value FROM json_each(:branches))
GROUP BY t.branch ORDER BY task_id

-- name: open_by_key
-- Unfinished tasks whose keys lie in a range: those that begin alike.
SELECT t.id AS task_id FROM task AS t
WHERE t.repository_id = :repository_id AND t.unique_key >= :first AND t.unique_key < :behind AND t.finished_ms IS NULL
ORDER BY t.id LIMIT :most

-- name: branch_owners
SELECT t.branch, t.id AS task_id, s.number
FROM task AS t JOIN submission AS s ON s.task_id = t.id
WHERE t.repository_id = :repository_id AND t.branch IN (SELECT value FROM json_each(:branches))
  AND t.status NOT IN ('succeeded', 'failed', 'cancelled')
ORDER BY t.id

-- name: lock_tasks
SELECT t.id AS task_id, t.status, t.epoch, t.repository_id, t.needs_left, t.charged, t.queue, t.rank, t.waiting_on
FROM task AS t
WHERE t.id IN (SELECT value FROM json_each(:tasks))
ORDER BY t.id

-- name: move_tasks
-- Guarded by the state that was read: a task that moved meanwhile isn't counted. What it was passed by
-- while it couldn't run isn't held against the others: its waiting begins anew.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, asked)
SELECT x.key + 1, t.id, t.epoch, x.value
FROM json_each(:rows) AS x JOIN task AS t ON t.id = x.value ->> 'task_id'
WHERE t.status = x.value ->> 'from_status';
UPDATE task SET status = p.asked ->> 'status', waiting_on = NULL, parked_fence = NULL, parked_ms = NULL,
  queued_ms = coalesce(p.asked ->> 'queued_ms', task.queued_ms), finished_ms = p.asked ->> 'finished_ms',
  due = coalesce(p.asked ->> 'due', task.due), run_at_ms = coalesce(p.asked ->> 'run_at_ms', task.run_at_ms),
  charged = coalesce(p.asked ->> 'charged', task.charged),
  same_errors = CASE WHEN p.asked ->> 'charged' = 0 THEN 0 ELSE task.same_errors END,
  events = task.events + 1
FROM picked AS p WHERE task.id = p.task_id;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :at_ms, p.asked ->> 'kind', t.epoch, p.asked ->> 'facts'
FROM picked AS p JOIN task AS t ON t.id = p.task_id;
SELECT task_id FROM picked;

-- name: lock_side_leases
-- BEGIN IMMEDIATE holds every row.
SELECT l.id FROM lease AS l
WHERE l.task_id IN (SELECT value FROM json_each(:tasks))
  AND l.kind <> 'lease' AND l.kind IN (SELECT value FROM json_each(:kinds)) AND l.ended_ms IS NULL

-- name: end_side_leases
-- Reservations and holds of tasks that no longer want their turn.
UPDATE lease AS l SET ended_ms = :at_ms, end_reason = :reason
WHERE l.task_id IN (SELECT value FROM json_each(:tasks))
  AND l.kind <> 'lease' AND l.kind IN (SELECT value FROM json_each(:kinds)) AND l.ended_ms IS NULL
RETURNING id

-- name: amend_task
UPDATE task
SET rank = :rank, agent = :agent, limit_key = :limit_key, globs = :globs, needs_left = :needs_left,
  waiting_on = NULL
WHERE id = :task_id AND status = :from_status
RETURNING epoch

-- name: amend_submission
UPDATE submission SET title = :title, branch_words = :branch_words, prompt = :prompt, check_command = :check_command, strict = :strict
WHERE task_id = :task_id
RETURNING task_id

-- name: append_prompt
UPDATE submission SET prompt = prompt || :addition WHERE task_id = :task_id RETURNING task_id

-- name: note_needs
UPDATE task SET needed = needed + 1
WHERE id IN (SELECT value FROM json_each(:tasks))
RETURNING id AS task_id, status, repository_id
