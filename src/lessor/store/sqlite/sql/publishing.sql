-- name: set_fence_remote
UPDATE repository SET fence_remote = :remote, unfenced = :unfenced WHERE id = :repository_id AND id > 0
RETURNING id, canonical, name, fold_case, normalize,
  coalesce((SELECT c.fence FROM counter AS c WHERE c.repository_id = id), 0) AS fence, term, unlanded, fence_remote, unfenced

-- name: put_fence_ref
-- Announced again before it is open, it has the new value; nothing comes back of one that is open.
INSERT INTO fence_ref AS f (lease_id, repository_id, remote, oid, state, at_ms)
VALUES (:lease_id, :repository_id, :remote, :oid, 'opening', :now)
ON CONFLICT (lease_id, remote) DO UPDATE SET oid = excluded.oid, at_ms = excluded.at_ms WHERE f.state = 'opening'
RETURNING lease_id, remote, oid, state

-- name: move_fence_ref
UPDATE fence_ref SET state = :state, oid = :oid, at_ms = :now WHERE lease_id = :lease_id AND remote = :remote
RETURNING lease_id, remote, oid, state

-- name: fence_ref
SELECT f.lease_id, f.remote, f.oid, f.state FROM fence_ref AS f WHERE f.lease_id = :lease_id AND f.remote = :remote

-- name: unclosed_fence_refs
-- What the remote may still have of leases that have ended.
SELECT f.lease_id, f.remote, f.oid, f.state
FROM fence_ref AS f JOIN lease AS l ON l.id = f.lease_id
WHERE f.repository_id = :repository_id AND f.state <> 'closed' AND l.ended_ms IS NOT NULL
  AND (:remote = '' OR f.remote = :remote)
ORDER BY f.lease_id
LIMIT :most

-- name: close_fence_refs
UPDATE fence_ref SET state = 'closed', at_ms = :now
WHERE lease_id IN (SELECT value FROM json_each(:leases)) AND remote = :remote AND state <> 'closed'
  AND EXISTS (SELECT 1 FROM lease AS l WHERE l.id = fence_ref.lease_id AND l.ended_ms IS NOT NULL)
RETURNING lease_id

-- name: add_intent
INSERT INTO intent (kind, repository_id, task_id, lease_id, epoch, target, facts, secret_hash, announced_ms)
VALUES (:kind, :repository_id, :task_id, :lease_id, :epoch, :target, :facts, :secret_hash, :now)
RETURNING id

-- name: settle_intent
UPDATE intent SET settled_ms = :now, outcome = :outcome, response = :response
WHERE id = :intent_id AND settled_ms IS NULL
RETURNING id

-- name: intent
SELECT i.id, i.kind, i.repository_id, i.task_id, s.number, i.lease_id, i.epoch, i.target, i.facts, i.secret_hash,
  i.announced_ms, i.settled_ms, i.outcome, i.response, l.ended_ms, l.end_reason, l.expires_ms, :now AS now
FROM intent AS i JOIN lease AS l ON l.id = i.lease_id JOIN submission AS s ON s.task_id = i.task_id
WHERE i.id = :intent_id

-- name: task_intents
SELECT i.id, i.kind, i.repository_id, i.task_id, s.number, i.lease_id, i.epoch, i.target, i.facts, i.secret_hash,
  i.announced_ms, i.settled_ms, i.outcome, i.response, l.ended_ms, l.end_reason, l.expires_ms, :now AS now
FROM intent AS i JOIN lease AS l ON l.id = i.lease_id JOIN submission AS s ON s.task_id = i.task_id
WHERE i.task_id = :task_id
ORDER BY i.id

-- name: unsettled_intents
-- Of leases that have ended: their holders settle nothing any more.
SELECT i.id, i.kind, i.repository_id, i.task_id, s.number, i.lease_id, i.epoch, i.target, i.facts, i.secret_hash,
  i.announced_ms, i.settled_ms, i.outcome, i.response, l.ended_ms, l.end_reason, l.expires_ms, :now AS now
FROM intent AS i JOIN lease AS l ON l.id = i.lease_id JOIN submission AS s ON s.task_id = i.task_id
WHERE i.repository_id = :repository_id AND i.settled_ms IS NULL AND l.ended_ms IS NOT NULL AND i.id > :after
ORDER BY i.id
LIMIT :most

-- name: branch_standings
-- Whose each branch is: its unfinished task's, else that of a result that hasn't landed.
SELECT x.value AS branch, t.id AS task_id, s.number, s.title, t.status, t.epoch, l.id AS lease_id, l.agent, l.expires_ms,
  CASE WHEN t.id = u.task_id THEN u.head END AS head, :now AS now
FROM json_each(:branches) AS x
LEFT JOIN unlanded AS u ON u.repository_id = :repository_id AND u.branch = x.value AND u.landed IS NULL
  AND NOT EXISTS (SELECT 1 FROM lease AS d WHERE d.id = u.lease_id AND d.end_reason = 'discarded')
JOIN task AS t ON t.id = coalesce((
  SELECT o.id FROM task AS o
  WHERE o.repository_id = :repository_id AND o.branch = x.value AND o.status NOT IN ('succeeded', 'failed', 'cancelled')
), u.task_id)
JOIN submission AS s ON s.task_id = t.id
LEFT JOIN lease AS l ON l.task_id = t.id AND l.kind = 'lease' AND l.ended_ms IS NULL
ORDER BY x.value, t.id
