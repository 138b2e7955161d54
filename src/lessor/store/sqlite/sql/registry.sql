-- name: clock
SELECT :now AS now

-- name: put_repository
INSERT INTO repository AS r (canonical, name, fold_case, normalize)
VALUES (:canonical, :name, :fold_case, :normalize)
ON CONFLICT (canonical) DO UPDATE SET name = r.name
RETURNING id, canonical, name, fold_case, normalize,
  coalesce((SELECT c.fence FROM counter AS c WHERE c.repository_id = id), 0) AS fence, term, unlanded, fence_remote, unfenced

-- name: repository_by_id
SELECT r.id, r.canonical, r.name, r.fold_case, r.normalize, c.fence, r.term, r.unlanded, r.fence_remote, r.unfenced
FROM repository AS r JOIN counter AS c ON c.repository_id = r.id WHERE r.id = :repository_id AND r.id > 0

-- name: repositories
SELECT r.id, r.canonical, r.name, r.fold_case, r.normalize, c.fence, r.term, r.unlanded, r.fence_remote, r.unfenced
FROM repository AS r JOIN counter AS c ON c.repository_id = r.id WHERE r.id > 0 ORDER BY r.id

-- name: set_unlanded
UPDATE repository SET unlanded = :unlanded WHERE id = :repository_id AND id > 0 RETURNING id

-- name: wake_shadowed
-- Who waits for a landing in the repository, from a task's id on.
UPDATE task SET waiting_on = NULL
WHERE id IN (
  SELECT t.id FROM lease AS l CROSS JOIN task AS t ON t.waiting_on = l.id
  WHERE l.repository_id = :repository_id AND l.kind <> 'lease' AND l.kind = 'shadow' AND l.ended_ms IS NULL AND t.id > :after
  ORDER BY t.id LIMIT :most
)
RETURNING id

-- name: put_checkout
INSERT INTO checkout (repository_id, host_id, common_dir)
VALUES (:repository_id, :host_id, :common_dir)
ON CONFLICT (host_id, common_dir) DO UPDATE SET repository_id = excluded.repository_id
RETURNING id

-- name: checkouts
SELECT c.id, c.repository_id, c.host_id, c.common_dir FROM checkout AS c WHERE c.repository_id = :repository_id ORDER BY c.id

-- name: add_worker
INSERT INTO worker (agent, kind, host_id, boot_id, pid, pid_namespace, start_ticks, capabilities, heartbeat, registered_ms)
VALUES (:agent, :kind, :host_id, :boot_id, :pid, :pid_namespace, :start_ticks, :capabilities, :heartbeat, :now)
RETURNING id, agent, kind, host_id, boot_id, pid, pid_namespace, start_ticks, capabilities, heartbeat, registered_ms, retired_ms

-- name: worker
SELECT id, agent, kind, host_id, boot_id, pid, pid_namespace, start_ticks, capabilities, heartbeat, registered_ms, retired_ms
FROM worker WHERE id = :worker_id

-- name: live_workers
SELECT id, agent, kind, host_id, boot_id, pid, pid_namespace, start_ticks, capabilities, heartbeat, registered_ms, retired_ms
FROM worker WHERE retired_ms IS NULL AND (:host_id = '' OR host_id = :host_id) ORDER BY id

-- name: retire_worker
UPDATE worker SET retired_ms = coalesce(retired_ms, :now) WHERE id = :worker_id RETURNING id

-- name: put_queue
INSERT INTO queue AS q (name, paused, wait_max_ms, overtake_limit, overtake_ms)
VALUES (:name, coalesce(:paused, 0), coalesce(:wait_max_ms, 3600000), coalesce(:overtake_limit, 20), coalesce(:overtake_ms, 600000))
ON CONFLICT (name) DO UPDATE
SET paused = coalesce(:paused, q.paused), wait_max_ms = coalesce(:wait_max_ms, q.wait_max_ms),
  overtake_limit = coalesce(:overtake_limit, q.overtake_limit), overtake_ms = coalesce(:overtake_ms, q.overtake_ms)
RETURNING name, paused, wait_max_ms, overtake_limit, overtake_ms

-- name: queue
SELECT name, paused, wait_max_ms, overtake_limit, overtake_ms FROM queue WHERE name = :name

-- name: queues
SELECT q.name, coalesce(r.paused, 0) AS paused, coalesce(r.wait_max_ms, 3600000) AS wait_max_ms,
  coalesce(r.overtake_limit, 20) AS overtake_limit, coalesce(r.overtake_ms, 600000) AS overtake_ms
FROM (SELECT name FROM queue UNION SELECT DISTINCT queue FROM task WHERE finished_ms IS NULL) AS q
LEFT JOIN queue AS r ON r.name = q.name
ORDER BY q.name

-- name: end_queue_reservations
UPDATE lease AS l INDEXED BY lease_one_reservation_per_repository SET ended_ms = :now, end_reason = 'released'
WHERE l.queue = :queue AND l.kind = 'reservation' AND l.ended_ms IS NULL
RETURNING id AS lease_id, task_id, epoch, kind, ended_ms

-- name: end_unserved_reservations
-- Turns reserved for tasks that no worker which hasn't retired could do.
UPDATE lease AS l INDEXED BY lease_one_reservation_per_repository SET ended_ms = :now, end_reason = 'released'
WHERE l.kind = 'reservation' AND l.ended_ms IS NULL AND EXISTS (
  SELECT 1 FROM task AS t
  WHERE t.id = l.task_id AND (t.agent IS NOT NULL OR t.capabilities IS NOT NULL) AND NOT EXISTS (
    SELECT 1 FROM worker AS w
    WHERE w.retired_ms IS NULL AND (t.agent IS NULL OR w.kind = t.agent)
      AND (t.capabilities IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(t.capabilities) AS j WHERE j.value NOT IN (SELECT value FROM json_each(w.capabilities))))))
RETURNING id AS lease_id, task_id, epoch, kind, ended_ms

-- name: put_limit
INSERT INTO usage_limit (kind, key, maximum) VALUES (:kind, :key, :maximum)
ON CONFLICT (kind, key) DO UPDATE SET maximum = excluded.maximum
RETURNING kind, key, maximum

-- name: drop_limit
DELETE FROM usage_limit WHERE kind = :kind AND key = :key RETURNING kind, key, maximum

-- name: lock_limits
SELECT u.kind, u.key, u.maximum FROM usage_limit AS u
WHERE (u.kind = 'queue' AND u.key = :queue) OR (u.kind = 'agent' AND u.key IN (:agent, :agent_kind))
  OR (u.kind = 'key' AND u.key IN (SELECT value FROM json_each(:keys)))
ORDER BY u.kind, u.key

-- name: lock_more_limits
-- By a claim that has locked others before: waiting for an earlier one could be waiting in a circle.
SELECT u.kind, u.key, u.maximum FROM usage_limit AS u
WHERE (u.kind = 'queue' AND u.key = :queue) OR (u.kind = 'agent' AND u.key IN (:agent, :agent_kind))
  OR (u.kind = 'key' AND u.key IN (SELECT value FROM json_each(:keys)))
ORDER BY u.kind, u.key

-- name: limit_usage
-- Counted, not kept: under the limit's lock every other claim has committed, and an end only lowers it.
SELECT u.kind, u.key, u.maximum,
  CASE u.kind
    WHEN 'queue' THEN (SELECT count(*) FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.queue = u.key)
    WHEN 'agent' THEN (SELECT count(*) FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.agent_kind = :agent_kind
        AND u.key IN (l.agent, :agent_kind))
    ELSE (SELECT count(*) FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.limit_key = u.key)
  END AS holding, :now AS now
FROM usage_limit AS u
WHERE (u.kind = 'queue' AND u.key = :queue) OR (u.kind = 'agent' AND u.key IN (:agent, :agent_kind))
  OR (u.kind = 'key' AND u.key IN (SELECT value FROM json_each(:keys)))
ORDER BY u.kind, u.key

-- name: limits
SELECT u.kind, u.key, u.maximum FROM usage_limit AS u ORDER BY u.kind, u.key

-- name: request_seen
SELECT digest, answer FROM request WHERE actor = :actor AND request_id = :request_id

-- name: keep_request
INSERT INTO request (actor, request_id, digest, answer, at_ms)
VALUES (:actor, :request_id, :digest, :answer, :now)
RETURNING request_id

-- name: put_workspace
INSERT INTO workspace (task_id, epoch, host_id, path, branch, base, state, snapshot, at_ms)
VALUES (:task_id, :epoch, :host_id, :path, :branch, :base, :state, '{}', :now)
RETURNING id

-- name: attach_workspace
UPDATE lease SET workspace_id = :workspace_id WHERE id = :lease_id AND ended_ms IS NULL RETURNING id

-- name: move_task_branch
UPDATE task SET branch = :branch WHERE id = :task_id RETURNING id

-- name: move_lease_branch
UPDATE lease SET branch = :branch, label = :label WHERE id = :lease_id AND ended_ms IS NULL RETURNING id

-- name: set_workspace
-- Guarded by the state that the move was judged by: no lock holds it meanwhile.
UPDATE workspace SET state = :state, snapshot = coalesce(:snapshot, snapshot), at_ms = :now
WHERE id = :workspace_id AND epoch = :epoch AND state = :from_state RETURNING id

-- name: adopt_workspace
UPDATE workspace SET epoch = :epoch, state = :state, at_ms = :now
WHERE id = :workspace_id AND epoch = :from_epoch AND state = :from_state RETURNING id

-- name: workspace
SELECT w.id, w.task_id, w.epoch, w.host_id, w.path, w.branch, w.base, w.state, w.snapshot, w.at_ms
FROM workspace AS w WHERE w.id = :workspace_id

-- name: task_workspaces
SELECT w.id, w.task_id, w.epoch, w.host_id, w.path, w.branch, w.base, w.state, w.snapshot, w.at_ms
FROM workspace AS w
WHERE w.task_id = :task_id AND (:gone = 1 OR w.state <> 'gone')
ORDER BY w.id

-- name: host_workspaces
SELECT w.id, w.task_id, w.epoch, w.host_id, w.path, w.branch, w.base, w.state, w.snapshot, w.at_ms
FROM workspace AS w JOIN task AS t ON t.id = w.task_id
WHERE w.host_id = :host_id AND w.state <> 'gone' AND (:repository_id = 0 OR t.repository_id = :repository_id)
ORDER BY w.id

-- name: add_salvage
INSERT INTO salvage (task_id, epoch, n, ref, archive, files, workspace_id, at_ms)
SELECT :task_id, :epoch, 1 + coalesce((SELECT max(s.n) FROM salvage AS s WHERE s.task_id = :task_id AND s.epoch = :epoch), 0),
  :ref, :archive, :files, :workspace_id, :now
RETURNING n

-- name: salvages
SELECT s.task_id, s.epoch, s.n, s.ref, s.archive, s.files, s.at_ms, w.host_id, w.path, w.branch
FROM salvage AS s JOIN workspace AS w ON w.id = s.workspace_id
WHERE s.task_id = :task_id AND s.dropped_ms IS NULL ORDER BY s.epoch, s.n

-- name: repository_salvages
SELECT s.task_id, s.epoch, s.n, s.ref, s.archive, s.files, s.at_ms, w.host_id, w.path, w.branch
FROM salvage AS s JOIN workspace AS w ON w.id = s.workspace_id JOIN task AS t ON t.id = s.task_id
WHERE t.repository_id = :repository_id AND s.dropped_ms IS NULL
ORDER BY s.task_id DESC, s.epoch DESC, s.n DESC LIMIT :most

-- name: drop_salvage
UPDATE salvage SET dropped_ms = :now
WHERE task_id = :task_id AND epoch = :epoch AND n = :n AND dropped_ms IS NULL RETURNING n
