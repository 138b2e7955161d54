-- name: claim_free
-- Tasks without a repository need no repository lock: one statement claims them. Nothing is claimed
-- while any limit is set: limits are counted under their rows' locks, by the long way round.
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
  SELECT u.lease_id, 'lease', 0, u.id, u.epoch, :worker_id, :token_hashes::json ->> u.ord::int, 0, 0, :ttl_ms,
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
  NULL::bigint AS ended_ms, u.rank, u.now
FROM u JOIN lessor.submission AS s ON s.task_id = u.id
ORDER BY u.ord

-- name: note_lineage
-- Another cluster or timeline than the one on record was restored or promoted: a new term, every live
-- grant is over, and ids, numbers and epochs jump past what the lost store may have handed out.
WITH known AS (
  SELECT value FROM lessor.meta WHERE key = 'lineage'
), kept AS (
  INSERT INTO lessor.meta (key, value) VALUES ('lineage', :lineage)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE lessor.meta.value <> excluded.value
  RETURNING value
), rewound AS (
  SELECT 1 FROM known CROSS JOIN kept
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
    ('lessor.workspace_id_seq')) AS s (name)
)
SELECT count(*) AS terms, (SELECT count(*) FROM gaps) AS gaps FROM terms

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
    ('lessor.workspace_id_seq')) AS s (name)
)
SELECT count(*) AS terms, (SELECT count(*) FROM gaps) AS gaps FROM terms
