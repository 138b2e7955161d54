-- name: note_boot
-- Another boot than the one on record: this host's processes of earlier boots are gone, so their leases
-- are over. The lapse ends them, with this proof, and no attempt is spent.
UPDATE lease SET expires_ms = min(expires_ms, :now), proof = 'reboot'
WHERE ended_ms IS NULL AND kind = 'lease' AND :host_id <> '' AND worker_id IN (
  SELECT w.id FROM worker AS w WHERE w.host_id = :host_id AND w.boot_id <> '' AND w.boot_id <> :boot_id);
INSERT INTO meta (key, value) VALUES ('boot_id', :boot_id), ('slept_ms', :slept)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: extend_for_suspend
-- The machine that holds the store slept: every live lease gets that time back, once.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, epoch, at_ms)
SELECT l.id, l.task_id, l.epoch, CAST(:slept AS INTEGER) - CAST(m.value AS INTEGER)
FROM meta AS m CROSS JOIN lease AS l
WHERE m.key = 'slept_ms' AND l.ended_ms IS NULL
  AND CAST(:slept AS INTEGER) - CAST(m.value AS INTEGER) >= :noticed
  AND (SELECT b.value FROM meta AS b WHERE b.key = 'boot_id') = :boot_id;
UPDATE lease SET expires_ms = expires_ms + p.at_ms, max_until_ms = max_until_ms + p.at_ms
FROM picked AS p WHERE lease.id = p.lease_id;
UPDATE task SET events = events + 1
WHERE id IN (SELECT p.task_id FROM picked AS p JOIN lease AS l ON l.id = p.lease_id WHERE l.kind = 'lease');
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :now, 'extended', p.epoch, json_object('reason', 'suspend', 'by_ms', p.at_ms)
FROM picked AS p JOIN lease AS l ON l.id = p.lease_id JOIN task AS t ON t.id = p.task_id
WHERE l.kind = 'lease';
UPDATE meta SET value = :slept
WHERE key = 'slept_ms' AND CAST(:slept AS INTEGER) - CAST(value AS INTEGER) >= :noticed
  AND (SELECT b.value FROM meta AS b WHERE b.key = 'boot_id') = :boot_id;

-- name: new_term
-- A rewound store: a new term, every live grant is over, epochs jump past what the lost store may have
-- handed out, and so do ids and numbers; lease ids go on behind the highest that is on record.
UPDATE repository SET term = term + 1, last_number = last_number + 100;
UPDATE task SET epoch = epoch + 1000 WHERE status NOT IN ('succeeded', 'failed', 'cancelled');
UPDATE lease SET expires_ms = min(expires_ms, :now), proof = 'rewound' WHERE ended_ms IS NULL;
INSERT INTO sqlite_sequence (name, seq)
SELECT 'lease', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'lease');
UPDATE sqlite_sequence SET seq = max(seq, :high) WHERE name = 'lease';
UPDATE sqlite_sequence SET seq = seq + 1000 WHERE name IN ('task', 'worker', 'repository', 'workspace', 'intent');

-- name: claim_first_free
-- The first ready task without a repository, where no rule has anything to decide: nothing fell due or ran out, and
-- there are no limits. Else it claims nothing, and the rule goes on in the same transaction. The lease comes first, as
-- the rest can be told from it; what follows goes by whether the statement before it changed a row. The other tables
-- have no rowid, so that the last one that was inserted stays the lease's.
INSERT INTO lease (
  kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
  renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, label)
SELECT 'lease', 0, t.id, t.epoch + 1, :worker_id, :token_hash, 0, 0, :ttl_ms, :now, :now, :now + :ttl_ms,
  :now + CASE WHEN t.progress = 1 THEN :hold_ms ELSE :ttl_ms END, t.queue, :agent, :kind, t.limit_key,
  :label_head || (SELECT s.number FROM submission AS s WHERE s.task_id = t.id) || ';epoch=' || (t.epoch + 1)
FROM task AS t
WHERE t.queue = :queue AND t.repository_id = 0 AND t.status = 'queued' AND t.due = 1
  AND t.needs_left = 0 AND t.waiting_on IS NULL
  AND (t.agent IS NULL OR t.agent = :kind)
  AND (t.capabilities IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(t.capabilities) AS j WHERE j.value NOT IN (SELECT value FROM json_each(:capabilities))))
  AND NOT EXISTS (SELECT 1 FROM usage_limit)
  AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.name = :queue AND q.paused = 1)
  AND NOT EXISTS (SELECT 1 FROM worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM intent AS i WHERE i.repository_id = 0 AND i.task_id = t.id AND i.settled_ms IS NULL)
  AND NOT EXISTS (SELECT 1 FROM lease AS o WHERE o.task_id = t.id AND o.kind <> 'lease' AND o.ended_ms IS NULL)
  AND NOT EXISTS (
    SELECT 1 FROM task AS d WHERE d.repository_id = 0 AND d.status = 'queued' AND d.due = 0 AND d.run_at_ms <= :now)
  AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.repository_id = 0 AND l.ended_ms IS NULL AND l.expires_ms <= :now)
ORDER BY t.rank, t.id LIMIT 1;
UPDATE task SET status = 'running', epoch = epoch + 1, attempts = attempts + 1, events = events + 1,
  parked_fence = NULL, parked_ms = NULL
WHERE changes() = 1 AND id = (SELECT l.task_id FROM lease AS l WHERE l.id = last_insert_rowid());
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, :now, 'claimed', t.epoch, :facts
FROM lease AS l JOIN task AS t ON t.id = l.task_id WHERE l.id = last_insert_rowid() AND changes() = 1;
INSERT INTO request (actor, request_id, digest, answer, at_ms)
SELECT :actor, :request_id, :digest, '[' || last_insert_rowid() || ']', :now WHERE changes() = 1;
SELECT l.id AS lease_id, t.id AS task_id, t.epoch, 1 AS version, 0 AS fence, 0 AS term, l.ttl_ms, l.granted_ms, l.expires_ms,
  l.max_until_ms, l.label, NULL AS branch, 0 AS repository_id, l.queue, t.attempts, t.effects, t.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict, '[]' AS scopes,
  NULL AS ended_ms, t.rank, :now AS now, NULL AS stand
FROM lease AS l JOIN task AS t ON t.id = l.task_id JOIN submission AS s ON s.task_id = t.id
WHERE l.id = last_insert_rowid() AND changes() = 1;

-- name: claim_first
-- The first ready task of a repository, where no rule has anything to decide: as PostgreSQL's claim_next, with the
-- scopes of ended leases that nobody waits for taken away on the way. Whose turn is looked at is as in drain. Else it claims nothing and takes nothing away.
DELETE FROM picked;
INSERT INTO picked (lease_id, task_id, ord, at_ms)
SELECT (SELECT coalesce(max(q.seq), 0) FROM sqlite_sequence AS q WHERE q.name = 'lease') + 1, c.id, p.fence + 1, max(:now, p.floor_ms)
FROM counter AS p CROSS JOIN (
  SELECT t.id FROM task AS t
  WHERE t.queue = :queue AND t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
    AND t.needs_left = 0 AND t.waiting_on IS NULL
    AND (t.agent IS NULL OR t.agent = :kind)
    AND (t.capabilities IS NULL OR NOT EXISTS (
      SELECT 1 FROM json_each(t.capabilities) AS j WHERE j.value NOT IN (SELECT value FROM json_each(:capabilities))))
    AND NOT EXISTS (
      SELECT 1 FROM intent AS i
      WHERE i.repository_id = :repository_id AND i.task_id = t.id AND i.settled_ms IS NULL)
  ORDER BY t.rank, t.id LIMIT 1
) AS c
WHERE p.repository_id = :repository_id AND p.repository_id > 0
  AND (SELECT t.globs FROM task AS t WHERE t.id = c.id) = 0
  AND NOT EXISTS (SELECT 1 FROM usage_limit)
  AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.name = :queue AND q.paused = 1)
  AND NOT EXISTS (SELECT 1 FROM worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM lease AS o WHERE o.task_id = c.id AND o.kind <> 'lease' AND o.ended_ms IS NULL)
  AND NOT EXISTS (SELECT 1 FROM stand AS w WHERE w.task_id = c.id)
  AND NOT EXISTS (
    SELECT 1 FROM task AS d
    WHERE d.repository_id = :repository_id AND d.status = 'queued' AND d.due = 0 AND d.run_at_ms <= max(:now, p.floor_ms))
  AND NOT EXISTS (
    SELECT 1 FROM lease AS x
    WHERE x.repository_id = :repository_id AND x.ended_ms IS NULL AND x.expires_ms <= max(:now, p.floor_ms))
  AND NOT EXISTS (
    SELECT 1 FROM (
      SELECT t.parked_fence, t.parked_ms,
        coalesce(q.overtake_limit, 20) AS overtake_limit, coalesce(q.overtake_ms, 600000) AS overtake_ms
      FROM task AS t LEFT JOIN queue AS q ON q.name = t.queue
      WHERE t.repository_id = :repository_id AND t.parked_fence IS NOT NULL AND coalesce(q.paused, 0) = 0
        AND (t.agent IS NULL AND t.capabilities IS NULL OR EXISTS (
          SELECT 1 FROM worker AS w
          WHERE w.retired_ms IS NULL AND (t.agent IS NULL OR w.kind = t.agent)
            AND NOT EXISTS (
              SELECT 1 FROM json_each(coalesce(t.capabilities, '[]')) AS j
              WHERE j.value NOT IN (SELECT value FROM json_each(w.capabilities)))))
      ORDER BY t.parked_fence, t.id
      LIMIT 1
    ) AS parked
    WHERE (p.fence + 1 - parked.parked_fence >= parked.overtake_limit OR max(:now, p.floor_ms) - parked.parked_ms >= parked.overtake_ms)
      AND NOT EXISTS (
        SELECT 1 FROM lease AS x
        WHERE x.repository_id = :repository_id AND x.kind = 'reservation' AND x.ended_ms IS NULL))
  AND NOT EXISTS (SELECT 1 FROM scope AS g WHERE g.repository_id = :repository_id AND g.pattern IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM shadow_scope AS g WHERE g.repository_id = :repository_id AND g.pattern IS NOT NULL)
  AND (SELECT count(*) FROM (
    SELECT 1 FROM lease AS e INDEXED BY lease_drain
    WHERE e.repository_id = :repository_id AND e.ended_ms IS NOT NULL AND e.drained = 0 LIMIT :most + 1)) <= :most
  AND NOT EXISTS (
    SELECT 1 FROM lease AS e INDEXED BY lease_drain
    WHERE e.repository_id = :repository_id AND e.ended_ms IS NOT NULL AND e.drained = 0
      AND (e.kind <> 'lease' OR EXISTS (SELECT 1 FROM task AS w WHERE w.waiting_on = e.id) OR EXISTS (
        SELECT 1 FROM intent AS i
        WHERE i.repository_id = :repository_id AND i.task_id = e.task_id AND i.settled_ms IS NULL)))
  AND NOT EXISTS (
    SELECT 1 FROM task_scope AS ts CROSS JOIN json_each(ts.ancestors) AS a CROSS JOIN scope AS s
    WHERE ts.task_id = c.id AND s.repository_id = :repository_id AND s.key = a.value AND (ts.mode = 'w' OR s.mode = 'w')
      AND (SELECT e.ended_ms FROM lease AS e WHERE e.id = s.lease_id) IS NULL)
  AND NOT EXISTS (
    SELECT 1 FROM task_scope AS ts CROSS JOIN scope AS s
    WHERE ts.task_id = c.id AND s.repository_id = :repository_id AND s.key > ts.key AND s.key < ts.key_end
      AND (ts.mode = 'w' OR s.mode = 'w') AND (SELECT e.ended_ms FROM lease AS e WHERE e.id = s.lease_id) IS NULL)
  AND NOT EXISTS (
    SELECT 1 FROM task_scope AS ts CROSS JOIN json_each(ts.ancestors) AS a CROSS JOIN shadow_scope AS s
    WHERE ts.task_id = c.id AND s.repository_id = :repository_id AND s.key = a.value)
  AND NOT EXISTS (
    SELECT 1 FROM task_scope AS ts CROSS JOIN shadow_scope AS s
    WHERE ts.task_id = c.id AND s.repository_id = :repository_id AND s.key > ts.key AND s.key < ts.key_end);
DELETE FROM scope WHERE EXISTS (SELECT 1 FROM picked) AND lease_id IN (
  SELECT e.id FROM lease AS e INDEXED BY lease_drain
  WHERE e.repository_id = :repository_id AND e.ended_ms IS NOT NULL AND e.drained = 0);
UPDATE lease SET drained = 1 WHERE EXISTS (SELECT 1 FROM picked) AND id IN (
  SELECT e.id FROM lease AS e INDEXED BY lease_drain
  WHERE e.repository_id = :repository_id AND e.ended_ms IS NOT NULL AND e.drained = 0);
UPDATE task SET status = 'running', epoch = epoch + 1, attempts = attempts + 1, events = events + 1,
  parked_fence = NULL, parked_ms = NULL, branch = coalesce(branch, (
    SELECT :branch_type || '/' || s.number || '-' || s.branch_words FROM submission AS s WHERE s.task_id = task.id))
WHERE id = (SELECT p.task_id FROM picked AS p);
INSERT INTO lease (
  id, kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
  renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, branch, label)
SELECT p.lease_id, 'lease', t.repository_id, t.id, t.epoch, :worker_id, :token_hash, p.ord, r.term, :ttl_ms, p.at_ms, p.at_ms,
  p.at_ms + :ttl_ms, p.at_ms + CASE WHEN t.progress = 1 THEN :hold_ms ELSE :ttl_ms END, t.queue, :agent, :kind, t.limit_key,
  t.branch, :label_head || t.branch || ';env=none;task=' || s.number || ';epoch=' || t.epoch
FROM picked AS p JOIN task AS t ON t.id = p.task_id JOIN submission AS s ON s.task_id = p.task_id
JOIN repository AS r ON r.id = t.repository_id;
INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
SELECT p.lease_id, ts.ord, :repository_id, ts.task_id, ts.text, ts.key, ts.key_end, ts.mode, ts.pattern, ts.ancestors, p.ord
FROM picked AS p CROSS JOIN task_scope AS ts ON ts.task_id = p.task_id;
INSERT INTO event (task_id, n, at_ms, kind, epoch, facts)
SELECT t.id, t.events, p.at_ms, 'claimed', t.epoch, :facts FROM picked AS p JOIN task AS t ON t.id = p.task_id;
UPDATE counter SET fence = p.ord, floor_ms = p.at_ms, turn = turn + 1
FROM picked AS p WHERE counter.repository_id = :repository_id;
INSERT INTO request (actor, request_id, digest, answer, at_ms)
SELECT :actor, :request_id, :digest, '[' || p.lease_id || ']', p.at_ms FROM picked AS p;
SELECT p.lease_id, t.id AS task_id, t.epoch, 1 AS version, l.fence, l.term, l.ttl_ms, l.granted_ms, l.expires_ms,
  l.max_until_ms, l.label, l.branch, l.repository_id, l.queue, t.attempts, t.effects, t.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict,
  (SELECT json_group_array(json_array(ts.text, ts.mode) ORDER BY ts.ord) FROM task_scope AS ts WHERE ts.task_id = t.id) AS scopes,
  NULL AS ended_ms, t.rank, p.at_ms AS now, NULL AS stand
FROM picked AS p JOIN lease AS l ON l.id = p.lease_id JOIN task AS t ON t.id = p.task_id
JOIN submission AS s ON s.task_id = p.task_id;
