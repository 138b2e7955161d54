-- name: reserve_task_ids
SELECT nextval('lessor.task_id_seq') AS id FROM generate_series(1, :wanted)

-- name: next_numbers
UPDATE lessor.repository SET last_number = last_number + :wanted WHERE id = :repository_id RETURNING last_number

-- name: insert_tasks
-- A unique key that an unfinished task of the queue has makes this row nothing; the caller asks who has it.
INSERT INTO lessor.task (
  id, queue, repository_id, rank, status, due, run_at_ms, needs_left, agent, capabilities, limit_key, unique_key,
  branch, effects, progress, globs, max_attempts, events, queued_ms)
SELECT x.id, x.queue, x.repository_id, x.rank, :status, x.due, x.run_at_ms, x.needs_left, x.agent, x.capabilities,
  x.limit_key, x.unique_key, x.branch, x.effects, x.progress, x.globs, x.max_attempts, 1, x.queued_ms
FROM json_to_recordset(:rows::json) AS x(
  id bigint, queue text, repository_id bigint, rank bigint, due bigint, run_at_ms bigint, needs_left bigint,
  agent text, capabilities text[], limit_key text, unique_key text, branch text, effects text, progress bigint,
  globs bigint, max_attempts bigint, queued_ms bigint)
ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled')
DO NOTHING
RETURNING id

-- name: insert_submissions
INSERT INTO lessor.submission (
  task_id, repository_id, number, title, branch_words, prompt, check_command, idempotency_key, strict, submitter, created_ms)
SELECT x.id, x.repository_id, x.number, x.title, x.branch_words, x.prompt, x.check_command, x.idempotency_key, x.strict, :submitter, x.queued_ms
FROM json_to_recordset(:rows::json) AS x(
  id bigint, repository_id bigint, number bigint, title text, branch_words text, prompt text, check_command text,
  idempotency_key text, strict bigint, queued_ms bigint)
RETURNING task_id

-- name: insert_task_scopes
INSERT INTO lessor.task_scope (task_id, ord, text, key, key_end, mode, pattern, ancestors, widened)
SELECT x.task_id, x.ord, x.text, x.key, x.key_end, x.mode, x.pattern, x.ancestors, x.widened
FROM json_to_recordset(:rows::json) AS x(
  task_id bigint, ord bigint, text text, key text, key_end text, mode text, pattern text, ancestors text[], widened bigint)
RETURNING task_id

-- name: drop_task_scopes
DELETE FROM lessor.task_scope WHERE task_id = :task_id RETURNING task_id

-- name: insert_dependencies
INSERT INTO lessor.dependency (task_id, needs_id)
SELECT DISTINCT x.task_id, x.needs_id
FROM json_to_recordset(:rows::json) AS x(task_id bigint, needs_id bigint)
RETURNING task_id

-- name: recount_needs
UPDATE lessor.task AS t
SET needs_left = (
  SELECT count(*) FROM lessor.dependency AS d JOIN lessor.task AS n ON n.id = d.needs_id
  WHERE d.task_id = t.id AND n.status <> :met)
WHERE t.id IN (SELECT value::bigint FROM json_array_elements_text(:tasks::json))
RETURNING t.id

-- name: drop_dependencies
DELETE FROM lessor.dependency WHERE task_id = :task_id RETURNING needs_id

-- name: lock_needs
-- Two amendments can close a circle together without touching a common task: who adds needs is alone.
-- Of all repositories' rows the one that stands for none is the first in the lock order, and nobody
-- else locks it.
SELECT id FROM lessor.repository WHERE id = 0 FOR UPDATE

-- name: needed_by
-- Everything that the given tasks wait for, directly or not; to refuse a cycle.
WITH RECURSIVE above AS (
  SELECT value::bigint AS id FROM json_array_elements_text(:tasks::json)
  UNION
  SELECT d.needs_id FROM above AS a JOIN lessor.dependency AS d ON d.task_id = a.id
)
SELECT id FROM above

-- name: insert_events
INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
SELECT x.task_id, x.n, x.at_ms, x.kind, x.epoch, x.facts
FROM json_to_recordset(:rows::json) AS x(task_id bigint, n bigint, at_ms bigint, kind text, epoch bigint, facts text)
RETURNING task_id

-- name: append_event
WITH u AS (
  UPDATE lessor.task AS t SET events = t.events + 1 WHERE t.id = :task_id RETURNING t.id, t.events, t.epoch
)
INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
SELECT u.id, u.events, lessor.ms(), :kind, coalesce(:epoch::bigint, u.epoch), :facts FROM u
RETURNING n

-- name: unfinished_by_key
SELECT t.id AS task_id, t.queue, t.unique_key, s.number
FROM json_to_recordset(:rows::json) AS x(queue text, unique_key text)
JOIN lessor.task AS t ON t.queue = x.queue AND t.unique_key = x.unique_key
  AND t.status NOT IN ('succeeded', 'failed', 'cancelled')
JOIN lessor.submission AS s ON s.task_id = t.id

-- name: newest_by_key
SELECT max(t.id) AS task_id
FROM json_array_elements_text(:keys::json) AS x
JOIN lessor.task AS t ON t.repository_id = :repository_id AND t.unique_key = x.value
GROUP BY t.unique_key ORDER BY task_id

-- name: newest_on_branches
-- The newest task of each branch, finished or not. No index has the branches of finished tasks, which each
-- ending would have to write for it: a person's question reads the rows here, and only what it wants comes out.
-- Inside of CASE the list is hashed once; as a join, which may be no hash join here, it would be read for each row.
SELECT max(t.id) AS task_id
FROM lessor.task AS t
WHERE t.repository_id = :repository_id
  AND CASE WHEN t.branch IN (SELECT value FROM json_array_elements_text(:branches::json)) THEN true ELSE false END
GROUP BY t.branch ORDER BY task_id

-- name: open_by_key
-- Unfinished tasks whose keys lie in a range: those that begin alike.
SELECT t.id AS task_id FROM lessor.task AS t
WHERE t.repository_id = :repository_id AND t.unique_key >= :first AND t.unique_key < :behind AND t.finished_ms IS NULL
ORDER BY t.id LIMIT :most

-- name: branch_owners
SELECT t.branch, t.id AS task_id, s.number
FROM lessor.task AS t JOIN lessor.submission AS s ON s.task_id = t.id
WHERE t.repository_id = :repository_id AND t.branch IN (SELECT json_array_elements_text(:branches::json))
  AND t.status NOT IN ('succeeded', 'failed', 'cancelled')
ORDER BY t.id

-- name: lock_tasks
SELECT t.id AS task_id, t.status, t.epoch, t.repository_id, t.needs_left, t.charged, t.queue, t.rank, t.waiting_on
FROM lessor.task AS t
WHERE t.id IN (SELECT value::bigint FROM json_array_elements_text(:tasks::json))
ORDER BY t.id
FOR UPDATE OF t

-- name: move_tasks
-- Guarded by the state that was read: a task that moved meanwhile isn't counted. What it was passed by
-- while it couldn't run isn't held against the others: its waiting begins anew.
WITH x AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:rows::json) AS x(
    task_id bigint, from_status text, status text, queued_ms bigint, finished_ms bigint, due bigint, run_at_ms bigint,
    charged bigint, kind text, facts text)
), moved AS (
  UPDATE lessor.task AS t
  SET status = x.status, waiting_on = NULL, parked_fence = NULL, parked_ms = NULL, queued_ms = coalesce(x.queued_ms, t.queued_ms),
    finished_ms = x.finished_ms, due = coalesce(x.due, t.due), run_at_ms = coalesce(x.run_at_ms, t.run_at_ms),
    charged = coalesce(x.charged, t.charged), same_errors = CASE WHEN x.charged = 0 THEN 0 ELSE t.same_errors END,
    events = t.events + 1
  FROM x WHERE t.id = x.task_id AND t.status = x.from_status
  RETURNING t.id, t.events, t.epoch, x.kind, x.facts
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT id, events, :at_ms, kind, epoch, facts FROM moved
)
SELECT id AS task_id FROM moved

-- name: lock_side_leases
-- Reservations and holds, before their tasks: their end by time locks them in that order too.
SELECT l.id FROM lessor.lease AS l
WHERE l.task_id IN (SELECT value::bigint FROM json_array_elements_text(:tasks::json))
  AND l.kind <> 'lease' AND l.kind IN (SELECT json_array_elements_text(:kinds::json)) AND l.ended_ms IS NULL
ORDER BY l.id
FOR UPDATE OF l

-- name: end_side_leases
-- Reservations and holds of tasks that no longer want their turn. After the tasks' own locks: a claim that
-- was reserving meanwhile has committed by then, and its reservation, which nobody else ends yet, is seen.
UPDATE lessor.lease AS l SET ended_ms = :at_ms, end_reason = :reason
WHERE l.task_id IN (SELECT value::bigint FROM json_array_elements_text(:tasks::json))
  AND l.kind <> 'lease' AND l.kind IN (SELECT json_array_elements_text(:kinds::json)) AND l.ended_ms IS NULL
RETURNING l.id

-- name: amend_task
UPDATE lessor.task AS t
SET rank = :rank, agent = :agent, limit_key = :limit_key, globs = :globs, needs_left = :needs_left,
  waiting_on = NULL
WHERE t.id = :task_id AND t.status = :from_status
RETURNING t.epoch

-- name: amend_submission
UPDATE lessor.submission SET title = :title, branch_words = :branch_words, prompt = :prompt, check_command = :check_command, strict = :strict
WHERE task_id = :task_id
RETURNING task_id

-- name: append_prompt
UPDATE lessor.submission SET prompt = prompt || :addition WHERE task_id = :task_id RETURNING task_id

-- name: note_needs
-- Lock what others need or no longer need, by id, so that none of it ends in between, and mark it, so
-- that a completion which is already waiting for the row reads the dependencies again.
WITH l AS MATERIALIZED (
  SELECT t.id FROM lessor.task AS t
  WHERE t.id IN (SELECT value::bigint FROM json_array_elements_text(:tasks::json))
  ORDER BY t.id
  FOR UPDATE OF t
)
UPDATE lessor.task AS t SET needed = t.needed + 1 FROM l WHERE t.id = l.id
RETURNING t.id AS task_id, t.status, t.repository_id
