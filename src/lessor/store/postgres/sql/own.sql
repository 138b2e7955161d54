-- name: claim_free
-- Tasks without a repository need no repository lock: one statement claims them. Nothing is claimed
-- while any limit is set: limits are counted under their rows' locks, by the long way round. Nor is
-- anything where the same transaction completed what others need: they may lie before the mark; nor, where
-- the `whole` of it is asked for, while something fell due or ran out. With fewer than `least` it is given back.
-- The lease's id is drawn with the task's row, so that everything that follows is written from u alone:
-- leases joined to their tasks again take the square of the batch.
WITH c AS MATERIALIZED (
  SELECT t.id, t.epoch, row_number() OVER () - 1 AS ord
  FROM (
    SELECT t.id, t.epoch FROM lessor.task AS t
    WHERE t.queue = :queue AND t.repository_id = 0 AND t.status = 'queued' AND t.due = 1
      AND t.needs_left = 0 AND t.waiting_on IS NULL AND (t.rank, t.id) >= (:mark_rank, :mark_id)
      AND (t.agent IS NULL OR t.agent = :kind)
      AND (t.capabilities IS NULL OR t.capabilities <@ ARRAY(SELECT json_array_elements_text(:capabilities::json)))
      AND NOT EXISTS (SELECT 1 FROM lessor.queue AS q WHERE q.name = :queue AND q.paused = 1)
      AND NOT EXISTS (SELECT 1 FROM lessor.usage_limit)
      AND NOT EXISTS (SELECT 1 FROM lessor.worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
      AND NOT EXISTS (
        SELECT 1 FROM json_to_recordset(:completed::json) AS x(task_id bigint)
        JOIN lessor.dependency AS d ON d.needs_id = x.task_id)
      AND (:whole = 0 OR NOT EXISTS (
        SELECT 1 FROM lessor.task AS d
        WHERE d.repository_id = 0 AND d.status = 'queued' AND d.due = 0 AND d.run_at_ms <= (SELECT lessor.ms())
      ) AND NOT EXISTS (
        SELECT 1 FROM lessor.lease AS x
        WHERE x.repository_id = 0 AND x.ended_ms IS NULL AND x.expires_ms <= (SELECT lessor.ms())))
    ORDER BY t.rank, t.id
    LIMIT :wanted
    FOR UPDATE OF t SKIP LOCKED
  ) AS t
), n AS MATERIALIZED (
  SELECT lessor.ms() AS now, count(*) AS locked FROM c
), u AS (
  UPDATE lessor.task AS t
  SET status = 'running', epoch = t.epoch + 1, attempts = t.attempts + 1, events = t.events + 1
  FROM c CROSS JOIN n
  WHERE t.id = c.id AND t.epoch = c.epoch AND t.status = 'queued'
  RETURNING nextval('lessor.lease_id_seq') AS lease_id, t.id, t.epoch, t.events, t.rank, t.attempts, t.effects,
    t.progress, t.limit_key, c.ord, n.now, n.now + :ttl_ms AS expires_ms,
    n.now + CASE WHEN t.progress = 1 THEN :hold_ms ELSE :ttl_ms END AS max_until_ms,
    :label_head || t.id || ';epoch=' || t.epoch AS label
), l AS (
  INSERT INTO lessor.lease (
    id, kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
    renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, label)
  SELECT u.lease_id, 'lease', 0, u.id, u.epoch, :worker_id, (ARRAY(SELECT json_array_elements_text(:token_hashes::json)))[u.ord + 1], 0, 0, :ttl_ms,
    u.now, u.now, u.expires_ms, u.max_until_ms, :queue, :agent, :kind, u.limit_key, u.label
  FROM u
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT u.id, u.events, u.now, 'claimed', u.epoch, :facts FROM u
), r AS (
  INSERT INTO lessor.request (actor, request_id, digest, answer, at_ms)
  SELECT :actor, :request_id, :digest, json_agg(u.lease_id ORDER BY u.ord)::text, min(u.now) FROM u HAVING count(*) > 0
)
SELECT u.lease_id, u.id AS task_id, u.epoch, 1::bigint AS version, 0::bigint AS fence, 0::bigint AS term,
  :ttl_ms::bigint AS ttl_ms, u.now AS granted_ms, u.expires_ms, u.max_until_ms, u.label, NULL::text AS branch,
  0::bigint AS repository_id, :queue::text AS queue, u.attempts, u.effects, u.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict, '[]' AS scopes,
  NULL::bigint AS ended_ms, u.rank, u.now, NULL::text AS stand
FROM (
  SELECT CASE WHEN count(*) < :least THEN lessor.require(0) ELSE count(*) END AS found FROM u
) AS checked CROSS JOIN u JOIN lessor.submission AS s ON s.task_id = u.id
WHERE checked.found > 0
ORDER BY u.ord

-- name: claim_next_free
-- The first ready task without a repository, as claim_free claims several: what is written for one has no lists,
-- no order and no rows read twice, and took a third less of the server's time. The task's row is the only lock,
-- and no lock is waited for: the clock is read with it held. `whole` as in claim_free.
WITH c AS MATERIALIZED (
  SELECT t.id, t.epoch FROM lessor.task AS t
  WHERE t.queue = :queue AND t.repository_id = 0 AND t.status = 'queued' AND t.due = 1
    AND t.needs_left = 0 AND t.waiting_on IS NULL AND (t.rank, t.id) >= (:mark_rank, :mark_id)
    AND (t.agent IS NULL OR t.agent = :kind)
    AND (t.capabilities IS NULL OR t.capabilities <@ ARRAY(SELECT json_array_elements_text(:capabilities::json)))
    AND NOT EXISTS (SELECT 1 FROM lessor.queue AS q WHERE q.name = :queue AND q.paused = 1)
    AND NOT EXISTS (SELECT 1 FROM lessor.usage_limit)
    AND NOT EXISTS (SELECT 1 FROM lessor.worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
    AND (:whole = 0 OR NOT EXISTS (
      SELECT 1 FROM lessor.task AS d
      WHERE d.repository_id = 0 AND d.status = 'queued' AND d.due = 0 AND d.run_at_ms <= (SELECT lessor.ms())
    ) AND NOT EXISTS (
      SELECT 1 FROM lessor.lease AS x
      WHERE x.repository_id = 0 AND x.ended_ms IS NULL AND x.expires_ms <= (SELECT lessor.ms())))
  ORDER BY t.rank, t.id
  LIMIT 1
  FOR UPDATE OF t SKIP LOCKED
), u AS (
  UPDATE lessor.task AS t
  SET status = 'running', epoch = t.epoch + 1, attempts = t.attempts + 1, events = t.events + 1
  FROM lessor.submission AS s
  WHERE t.id = (SELECT c.id FROM c) AND t.epoch = (SELECT c.epoch FROM c) AND t.status = 'queued'
    AND s.task_id = (SELECT c.id FROM c)
  RETURNING nextval('lessor.lease_id_seq') AS lease_id, t.id, t.epoch, t.events, t.rank, t.attempts, t.effects,
    t.progress, t.limit_key, lessor.ms() AS now, s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict
), l AS (
  INSERT INTO lessor.lease (
    id, kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
    renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, label)
  SELECT u.lease_id, 'lease', 0, u.id, u.epoch, :worker_id, :token_hash, 0, 0, :ttl_ms, u.now, u.now, u.now + :ttl_ms,
    u.now + CASE WHEN u.progress = 1 THEN :hold_ms ELSE :ttl_ms END, :queue, :agent, :kind, u.limit_key,
    :label_head || u.id || ';epoch=' || u.epoch
  FROM u
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT u.id, u.events, u.now, 'claimed', u.epoch, :facts FROM u
), r AS (
  INSERT INTO lessor.request (actor, request_id, digest, answer, at_ms)
  SELECT :actor, :request_id, :digest, '[' || u.lease_id || ']', u.now FROM u
)
SELECT u.lease_id, u.id AS task_id, u.epoch, 1::bigint AS version, 0::bigint AS fence, 0::bigint AS term,
  :ttl_ms::bigint AS ttl_ms, u.now AS granted_ms, u.now + :ttl_ms AS expires_ms,
  u.now + CASE WHEN u.progress = 1 THEN :hold_ms ELSE :ttl_ms END AS max_until_ms,
  :label_head || u.id || ';epoch=' || u.epoch AS label, NULL::text AS branch,
  0::bigint AS repository_id, :queue::text AS queue, u.attempts, u.effects, u.progress,
  u.number, u.title, u.prompt, u.check_command, u.idempotency_key, u.strict, '[]' AS scopes,
  NULL::bigint AS ended_ms, u.rank, u.now, NULL::text AS stand
FROM (
  SELECT CASE WHEN :least > 0 AND NOT EXISTS (SELECT 1 FROM u) THEN lessor.require(0) ELSE 1 END AS found
) AS checked CROSS JOIN u
WHERE checked.found > 0

-- name: lock_untaken
-- Without a repository no lock comes before the tasks' own. Claims by one statement have the first ready task
-- locked nearly always, for as long as a commit takes; a guarded write that waits for it finds it gone, again
-- and again: of four processes whose commits took 10 ms, one claim in seventy was refused as busy.
SELECT t.id AS task_id FROM lessor.task AS t
WHERE t.id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:tasks::json)))
  AND t.status = 'queued' AND t.waiting_on IS NULL
ORDER BY t.rank, t.id
LIMIT :most
FOR UPDATE SKIP LOCKED

-- name: lock_place
-- The repository's lock and nothing else: claim_next reads the counters itself, with a snapshot of its own.
SELECT r.id FROM lessor.repository AS r WHERE r.id = :repository_id AND r.id > 0 FOR UPDATE

-- name: drain_unawaited
-- Under the repository's lock: the scopes of ended leases go, where nobody waits for them. Waking is left
-- to the long way round: who is woken may lie before the mark. Of leases that ended before `since_ms`
-- nothing is left, or the long way meets it: their dead entries are all there is when vacuum is held up.
WITH d AS MATERIALIZED (
  SELECT l.id FROM lessor.lease AS l
  WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
    SELECT 1 FROM lessor.intent AS i
    WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
    AND l.ended_ms >= :since_ms
  ORDER BY l.ended_ms, l.id LIMIT :most FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM lessor.scope AS s WHERE s.lease_id = ANY (ARRAY(SELECT d.id FROM d))
), faded AS (
  DELETE FROM lessor.shadow_scope AS s WHERE s.lease_id = ANY (ARRAY(SELECT d.id FROM d))
), f AS (
  UPDATE lessor.lease AS l SET drained = 1 WHERE l.id = ANY (ARRAY(SELECT d.id FROM d))
)
SELECT CASE
  WHEN EXISTS (SELECT 1 FROM lessor.task AS t WHERE t.waiting_on = ANY (ARRAY(SELECT d.id FROM d))) THEN lessor.require(0)
  WHEN EXISTS (SELECT 1 FROM lessor.shadow_scope AS g WHERE g.lease_id = ANY (ARRAY(SELECT d.id FROM d))) AND EXISTS (
      SELECT 1 FROM lessor.shadow_scope AS g JOIN lessor.task AS t ON t.waiting_on = g.lease_id
      WHERE g.repository_id = :repository_id) THEN lessor.require(0)
END

-- name: claim_next
-- The first ready task of a repository, in the round trip that takes the lock and drains, where nothing
-- stands in its way. Whatever the model has to decide is left to it: what fell due or ran out, a turn that
-- has to be reserved (whose it is: as in drain), limits, globs, own reservations and holds, any overlap, a result that hasn't landed; then the
-- whole transaction is given back, the counter that was turned first included.
-- One task is looked up by its id alone: lists and joins took twice the time (0.4 ms instead of 0.2).
WITH r AS (
  UPDATE lessor.counter AS p
  SET fence = p.fence + 1, floor_ms = greatest(lessor.ms(), p.floor_ms), turn = p.turn + 1
  FROM lessor.repository AS r
  WHERE r.id = :repository_id AND p.repository_id = :repository_id AND p.turn = (
    SELECT c.turn FROM lessor.counter AS c WHERE c.repository_id = :repository_id AND c.repository_id > 0 ORDER BY c.turn DESC LIMIT 1)
  RETURNING p.fence, p.floor_ms AS now, r.term
), c AS MATERIALIZED (
  SELECT t.id, t.epoch FROM lessor.task AS t
  WHERE t.queue = :queue AND t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
    AND t.needs_left = 0 AND t.waiting_on IS NULL AND (t.rank, t.id) >= (:mark_rank, :mark_id)
    AND (t.agent IS NULL OR t.agent = :kind)
    AND (t.capabilities IS NULL OR t.capabilities <@ ARRAY(SELECT json_array_elements_text(:capabilities::json)))
    AND NOT EXISTS (
      SELECT 1 FROM lessor.intent AS i
      WHERE i.repository_id = :repository_id AND i.task_id = t.id AND i.settled_ms IS NULL)
  ORDER BY t.rank, t.id
  LIMIT 1
), u AS (
  UPDATE lessor.task AS t
  SET status = 'running', epoch = t.epoch + 1, attempts = t.attempts + 1, events = t.events + 1,
    branch = coalesce(t.branch, :branch_type || '/' || s.number || '-' || s.branch_words), parked_fence = NULL, parked_ms = NULL
  FROM lessor.submission AS s CROSS JOIN r
  WHERE t.id = (SELECT c.id FROM c) AND t.epoch = (SELECT c.epoch FROM c) AND t.status = 'queued'
    AND t.waiting_on IS NULL AND t.globs = 0 AND s.task_id = (SELECT c.id FROM c)
    AND NOT EXISTS (SELECT 1 FROM lessor.usage_limit)
    AND NOT EXISTS (SELECT 1 FROM lessor.queue AS q WHERE q.name = :queue AND q.paused = 1)
    AND NOT EXISTS (SELECT 1 FROM lessor.worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1 FROM lessor.task AS d
      WHERE d.repository_id = :repository_id AND d.status = 'queued' AND d.due = 0 AND d.run_at_ms <= (SELECT r.now FROM r))
    AND NOT EXISTS (
      SELECT 1 FROM lessor.lease AS x
      WHERE x.repository_id = :repository_id AND x.ended_ms IS NULL
        AND x.expires_ms >= :since_ms AND x.expires_ms <= (SELECT r.now FROM r))
    AND NOT EXISTS (
      SELECT 1 FROM (
        SELECT p.parked_fence, p.parked_ms,
          coalesce(q.overtake_limit, 20) AS overtake_limit, coalesce(q.overtake_ms, 600000) AS overtake_ms
        FROM lessor.task AS p LEFT JOIN lessor.queue AS q ON q.name = p.queue
        WHERE p.repository_id = :repository_id AND p.parked_fence IS NOT NULL AND coalesce(q.paused, 0) = 0
          AND (p.agent IS NULL AND p.capabilities IS NULL OR EXISTS (
            SELECT 1 FROM lessor.worker AS w
            WHERE w.retired_ms IS NULL AND (p.agent IS NULL OR w.kind = p.agent)
              AND (p.capabilities IS NULL OR p.capabilities <@ w.capabilities)))
        ORDER BY p.parked_fence, p.id
        LIMIT 1
      ) AS p
      WHERE (r.fence - p.parked_fence >= p.overtake_limit OR r.now - p.parked_ms >= p.overtake_ms)
        AND NOT EXISTS (
          SELECT 1 FROM lessor.lease AS x
          WHERE x.repository_id = :repository_id AND x.kind = 'reservation' AND x.ended_ms IS NULL))
    AND NOT EXISTS (
      SELECT 1 FROM lessor.scope AS g WHERE g.repository_id = :repository_id AND g.pattern IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1 FROM lessor.lease AS o
      WHERE o.task_id = (SELECT c.id FROM c) AND o.kind <> 'lease' AND o.ended_ms IS NULL)
    AND NOT EXISTS (
      SELECT 1 FROM lessor.task_scope AS ts
      WHERE ts.task_id = (SELECT c.id FROM c) AND (
        EXISTS (
          SELECT 1 FROM lessor.scope AS s
          WHERE s.repository_id = :repository_id AND s.key = ANY (ts.ancestors) AND (ts.mode = 'w' OR s.mode = 'w'))
        OR EXISTS (
          SELECT 1 FROM lessor.scope AS s
          WHERE s.repository_id = :repository_id AND s.key > ts.key AND s.key < ts.key_end AND (ts.mode = 'w' OR s.mode = 'w'))
        OR EXISTS (
          SELECT 1 FROM lessor.shadow_scope AS s WHERE s.repository_id = :repository_id AND s.key = ANY (ts.ancestors))
        OR EXISTS (
          SELECT 1 FROM lessor.shadow_scope AS s
          WHERE s.repository_id = :repository_id AND s.key > ts.key AND s.key < ts.key_end)))
    AND NOT EXISTS (
      SELECT 1 FROM lessor.shadow_scope AS g WHERE g.repository_id = :repository_id AND g.pattern IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM lessor.stand AS w WHERE w.task_id = (SELECT c.id FROM c))
  RETURNING nextval('lessor.lease_id_seq') AS lease_id, t.id, t.epoch, t.events, t.rank, t.queue, t.limit_key,
    t.attempts, t.effects, t.progress, t.branch, r.now, r.fence, r.term,
    r.now + CASE WHEN t.progress = 1 THEN :hold_ms ELSE :ttl_ms END AS max_until_ms,
    :label_head || t.branch || ';env=none;task=' || s.number || ';epoch=' || t.epoch AS label,
    s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict
), l AS (
  INSERT INTO lessor.lease (
    id, kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
    renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, branch, label)
  SELECT u.lease_id, 'lease', :repository_id, u.id, u.epoch, :worker_id, :token_hash, u.fence, u.term, :ttl_ms, u.now,
    u.now, u.now + :ttl_ms, u.max_until_ms, u.queue, :agent, :kind, u.limit_key, u.branch, u.label
  FROM u
), s AS (
  INSERT INTO lessor.scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
  SELECT u.lease_id, ts.ord, :repository_id, ts.task_id, ts.text, ts.key, ts.key_end, ts.mode, ts.pattern, ts.ancestors, u.fence
  FROM u JOIN lessor.task_scope AS ts ON ts.task_id = u.id
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT u.id, u.events, u.now, 'claimed', u.epoch, :facts FROM u
), q AS (
  INSERT INTO lessor.request (actor, request_id, digest, answer, at_ms)
  SELECT :actor, :request_id, :digest, '[' || u.lease_id || ']', u.now FROM u
)
SELECT u.lease_id, u.id AS task_id, u.epoch, 1::bigint AS version, u.fence, u.term, :ttl_ms::bigint AS ttl_ms,
  u.now AS granted_ms, u.now + :ttl_ms AS expires_ms, u.max_until_ms, u.label, u.branch,
  :repository_id::bigint AS repository_id, u.queue, u.attempts, u.effects, u.progress,
  u.number, u.title, u.prompt, u.check_command, u.idempotency_key, u.strict,
  coalesce((SELECT json_agg(json_build_array(ts.text, ts.mode) ORDER BY ts.ord)
    FROM lessor.task_scope AS ts WHERE ts.task_id = u.id)::text, '[]') AS scopes,
  NULL::bigint AS ended_ms, u.rank, u.now, NULL::text AS stand
FROM (SELECT lessor.require(count(*)) AS found FROM u) AS checked CROSS JOIN u
WHERE checked.found > 0

-- name: note_lineage
-- Another cluster or timeline than the one on record was restored or promoted: a new term, every live
-- grant is over, and ids, numbers and epochs jump past what the lost store may have handed out. What a role
-- may not ask is empty: it is compared with nothing, and what is on record of the same cluster stays.
WITH known AS (
  SELECT split_part(m.value, '/', 1) AS cluster, split_part(m.value, '/', 2) AS timeline
  FROM lessor.meta AS m WHERE m.key = 'lineage'
), kept AS (
  INSERT INTO lessor.meta AS m (key, value) VALUES ('lineage', :cluster || '/' || :timeline)
  ON CONFLICT (key) DO UPDATE SET value = CASE
    WHEN :cluster <> '' AND split_part(m.value, '/', 1) NOT IN ('', :cluster) THEN excluded.value
    ELSE coalesce(nullif(:cluster, ''), split_part(m.value, '/', 1)) || '/'
      || coalesce(nullif(:timeline, ''), split_part(m.value, '/', 2)) END
  WHERE :cluster <> '' AND split_part(m.value, '/', 1) <> :cluster
    OR :timeline <> '' AND split_part(m.value, '/', 2) <> :timeline
  RETURNING m.value
), rewound AS (
  SELECT 1 FROM known CROSS JOIN kept
  WHERE :cluster <> '' AND known.cluster NOT IN ('', :cluster) OR :timeline <> '' AND known.timeline NOT IN ('', :timeline)
), terms AS (
  UPDATE lessor.repository SET term = term + 1, last_number = last_number + 100
  WHERE EXISTS (SELECT 1 FROM rewound) RETURNING id
), epochs AS (
  UPDATE lessor.task SET epoch = epoch + 1000
  WHERE EXISTS (SELECT 1 FROM rewound) AND status NOT IN ('succeeded', 'failed', 'cancelled') RETURNING id
), leases AS (
  UPDATE lessor.lease SET expires_ms = least(expires_ms, lessor.ms()), proof = 'rewound'
  WHERE EXISTS (SELECT 1 FROM rewound) AND ended_ms IS NULL RETURNING id
), gaps AS (
  SELECT setval(s.name::regclass, nextval(s.name::regclass) + 1000) FROM rewound, (VALUES
    ('lessor.task_id_seq'), ('lessor.lease_id_seq'), ('lessor.worker_id_seq'), ('lessor.repository_id_seq'),
    ('lessor.workspace_id_seq'), ('lessor.intent_id_seq')) AS s (name)
)
SELECT count(*) AS terms, (SELECT count(*) FROM gaps) AS gaps FROM terms

-- name: same_cluster
-- Whether the server behind a pooler is the one of before.
SELECT lessor.expect(count(*), 1) AS same FROM pg_control_system() AS c WHERE c.system_identifier::text = :cluster

-- name: same_timeline
-- Whether that server has been promoted or restored since.
SELECT lessor.expect((substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) = :timeline)::int, 1) AS same

-- name: begin_term
-- What a person says who has restored the server by its own tools: as for another lineage, which stays.
WITH terms AS (
  UPDATE lessor.repository SET term = term + 1, last_number = last_number + 100 RETURNING id
), epochs AS (
  UPDATE lessor.task SET epoch = epoch + 1000 WHERE status NOT IN ('succeeded', 'failed', 'cancelled') RETURNING id
), leases AS (
  UPDATE lessor.lease SET expires_ms = least(expires_ms, lessor.ms()), proof = 'rewound' WHERE ended_ms IS NULL RETURNING id
), gaps AS (
  SELECT setval(s.name::regclass, nextval(s.name::regclass) + 1000) FROM (VALUES
    ('lessor.task_id_seq'), ('lessor.lease_id_seq'), ('lessor.worker_id_seq'), ('lessor.repository_id_seq'),
    ('lessor.workspace_id_seq'), ('lessor.intent_id_seq')) AS s (name)
)
SELECT count(*) AS terms, (SELECT count(*) FROM gaps) AS gaps FROM terms

-- name: unkept_promises
-- Settings of the server's without which it may lose, in a power cut, what it has committed.
SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name
