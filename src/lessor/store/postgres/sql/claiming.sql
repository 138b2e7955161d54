-- name: heads
-- Where a claim of any repository has to look, best first: the first task of each repository that this
-- worker may take now, or that a claim there would make ready: one that fell due, one parked on a lease
-- that has ended, or on a shadow where another has ended, one under a lease that ran out. Eight ended leases are asked who waits for them; where
-- there are more, a claim looks there whoever does, and drains them. Nowhere while a limit that counts
-- every task of the claim is used up.
WITH full_limit AS MATERIALIZED (
  SELECT u.kind, u.key FROM lessor.usage_limit AS u
  WHERE (u.kind = 'key' OR u.kind = 'queue' AND u.key = :queue OR u.kind = 'agent' AND u.key IN (:agent, :kind))
    AND u.maximum <= CASE u.kind
      WHEN 'queue' THEN (SELECT count(*) FROM lessor.lease AS l
        WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.queue = u.key AND l.expires_ms > (SELECT lessor.ms()))
      WHEN 'agent' THEN (SELECT count(*) FROM lessor.lease AS l
        WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.agent_kind = :kind AND u.key IN (l.agent, :kind)
          AND l.expires_ms > (SELECT lessor.ms()))
      ELSE (SELECT count(*) FROM lessor.lease AS l
        WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.limit_key = u.key AND l.expires_ms > (SELECT lessor.ms()))
    END
)
SELECT b.id, b.rank, b.task_id
FROM (
  SELECT p.id, p.rank, p.task_id, row_number() OVER (PARTITION BY p.id ORDER BY p.rank, p.task_id) AS place
  FROM (
    SELECT r.id, h.rank, h.task_id FROM lessor.repository AS r CROSS JOIN LATERAL (
      SELECT t.rank, t.id AS task_id FROM lessor.task AS t
      WHERE t.queue = :queue AND t.repository_id = r.id AND t.status = 'queued' AND t.due = 1
        AND t.needs_left = 0 AND t.waiting_on IS NULL
        AND (t.agent IS NULL OR t.agent = :kind)
        AND (t.capabilities IS NULL OR t.capabilities <@ ARRAY(SELECT json_array_elements_text(:capabilities::json)))
        AND (t.limit_key IS NULL OR t.limit_key NOT IN (SELECT f.key FROM full_limit AS f WHERE f.kind = 'key'))
        AND NOT EXISTS (SELECT 1 FROM lessor.queue AS q WHERE q.name = :queue AND q.paused = 1)
      ORDER BY t.rank, t.id LIMIT 1
    ) AS h
    UNION ALL
    SELECT r.id, d.rank, d.id FROM lessor.repository AS r CROSS JOIN LATERAL (
      SELECT t.rank, t.id FROM lessor.task AS t
      WHERE t.repository_id = r.id AND t.status = 'queued' AND t.due = 0 AND t.run_at_ms <= (SELECT lessor.ms())
      ORDER BY t.run_at_ms, t.id LIMIT 1
    ) AS d
    UNION ALL
    SELECT r.id, w.rank, w.id FROM lessor.repository AS r CROSS JOIN LATERAL (
      SELECT l.id FROM lessor.lease AS l
      WHERE l.repository_id = r.id AND l.ended_ms IS NOT NULL AND l.drained = 0 ORDER BY l.id LIMIT 8
    ) AS l CROSS JOIN LATERAL (
      SELECT t.rank, t.id FROM lessor.task AS t WHERE t.waiting_on = l.id ORDER BY t.rank, t.id LIMIT 1
    ) AS w
    UNION ALL
    SELECT r.id, w.rank, w.id FROM lessor.repository AS r CROSS JOIN LATERAL (
      SELECT l.kind FROM lessor.lease AS l
      WHERE l.repository_id = r.id AND l.ended_ms IS NOT NULL AND l.drained = 0 ORDER BY l.id LIMIT 8
    ) AS l CROSS JOIN LATERAL (
      SELECT t.rank, t.id FROM lessor.shadow_scope AS g JOIN lessor.task AS t ON t.waiting_on = g.lease_id
      WHERE l.kind = 'shadow' AND g.repository_id = r.id ORDER BY t.rank, t.id LIMIT 1
    ) AS w
    UNION ALL
    SELECT r.id, t.rank, t.id FROM lessor.repository AS r CROSS JOIN LATERAL (
      SELECT l.task_id FROM lessor.lease AS l
      WHERE l.repository_id = r.id AND l.ended_ms IS NOT NULL AND l.drained = 0 ORDER BY l.id OFFSET 8 LIMIT 1
    ) AS l JOIN lessor.task AS t ON t.id = l.task_id
    UNION ALL
    SELECT r.id, t.rank, t.id FROM lessor.repository AS r CROSS JOIN LATERAL (
      SELECT l.task_id FROM lessor.lease AS l
      WHERE l.repository_id = r.id AND l.ended_ms IS NULL AND l.expires_ms <= (SELECT lessor.ms())
      ORDER BY l.expires_ms LIMIT 8
    ) AS l JOIN lessor.task AS t ON t.id = l.task_id
  ) AS p
) AS b
WHERE b.place = 1 AND NOT EXISTS (SELECT 1 FROM full_limit AS f WHERE f.kind <> 'key')
ORDER BY b.rank, b.task_id

-- name: lock_repository_or_skip
SELECT id FROM lessor.repository WHERE id = :repository_id FOR UPDATE SKIP LOCKED

-- name: lock_repository
SELECT r.id, c.fence, r.term, c.floor_ms, r.fold_case, r.normalize, r.unlanded
FROM (
  SELECT id, term, fold_case, normalize, unlanded FROM lessor.repository WHERE id = :repository_id AND id > 0 FOR UPDATE
) AS r CROSS JOIN LATERAL lessor.counted(r.id) AS c

-- name: turn_repository
-- For whoever removed scope rows and grants nothing: at snapshot isolation a row that was only locked
-- lets two overlapping claims through.
UPDATE lessor.counter AS c SET turn = c.turn + 1
WHERE c.repository_id = :repository_id AND c.repository_id > 0 AND c.turn = (
  SELECT k.turn FROM lessor.counter AS k WHERE k.repository_id = :repository_id ORDER BY k.turn DESC LIMIT 1)
RETURNING c.turn

-- name: promote_due
UPDATE lessor.task SET due = 1, queued_ms = greatest(queued_ms, run_at_ms)
WHERE id IN (
  SELECT t.id FROM lessor.task AS t
  WHERE t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 0 AND t.run_at_ms <= (SELECT lessor.ms())
  ORDER BY t.run_at_ms, t.id LIMIT :most FOR UPDATE SKIP LOCKED
)
RETURNING id

-- name: lapsed_leases
-- In the order of lease_lapse: ordered by id, PostgreSQL walked every lease that ever was.
-- SKIP LOCKED: a lease that is being renewed or completed right now stays as it is. The bound is a
-- scalar subquery: as a join it read every live lease (25 ms beside 100,000, instead of one probe).
SELECT l.id AS lease_id, l.task_id, l.epoch, l.kind, l.worker_id, l.expires_ms, l.proof, t.status, t.effects,
  t.charged, t.max_attempts, t.same_errors, CASE WHEN s.idempotency_key IS NULL THEN 0 ELSE 1 END AS keyed, t.queue,
  CASE WHEN EXISTS (
    SELECT 1 FROM lessor.intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) THEN 1 ELSE 0 END AS unsettled,
  greatest(lessor.ms(), (SELECT c.floor_ms FROM lessor.counter AS c WHERE c.repository_id = :repository_id ORDER BY c.turn DESC LIMIT 1)) AS now
FROM lessor.lease AS l
JOIN lessor.task AS t ON t.id = l.task_id
JOIN lessor.submission AS s ON s.task_id = l.task_id
WHERE l.repository_id = :repository_id AND l.ended_ms IS NULL
  AND l.expires_ms <= (
    SELECT greatest(lessor.ms(), c.floor_ms) FROM lessor.counter AS c
    WHERE c.repository_id = :repository_id ORDER BY c.turn DESC LIMIT 1)
ORDER BY l.expires_ms, l.id
LIMIT :most
FOR UPDATE OF l SKIP LOCKED

-- name: lapsed_by_limit
-- Leases that ran out, in whatever repository, and still count against these limits. Their scopes are
-- drained by the next claim there, as after every end.
SELECT l.id AS lease_id, l.task_id, l.epoch, l.kind, l.worker_id, l.expires_ms, l.proof, t.status, t.effects,
  t.charged, t.max_attempts, t.same_errors, CASE WHEN s.idempotency_key IS NULL THEN 0 ELSE 1 END AS keyed, t.queue,
  CASE WHEN EXISTS (
    SELECT 1 FROM lessor.intent AS i
    WHERE i.repository_id = l.repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL) THEN 1 ELSE 0 END AS unsettled,
  lessor.ms() AS now
FROM lessor.lease AS l
JOIN lessor.task AS t ON t.id = l.task_id
JOIN lessor.submission AS s ON s.task_id = l.task_id
WHERE l.ended_ms IS NULL AND l.expires_ms <= (SELECT lessor.ms()) AND l.id IN (
  SELECT a.id FROM lessor.lease AS a WHERE a.kind = 'lease' AND a.ended_ms IS NULL AND a.queue = :queue
  UNION ALL
  SELECT a.id FROM lessor.lease AS a WHERE a.kind = 'lease' AND a.ended_ms IS NULL AND a.agent_kind = :agent_kind
  UNION ALL
  SELECT a.id FROM lessor.lease AS a
  WHERE a.kind = 'lease' AND a.ended_ms IS NULL AND a.limit_key IN (SELECT json_array_elements_text(:keys::json)))
ORDER BY l.id
LIMIT :most
FOR UPDATE OF l SKIP LOCKED

-- name: drain
-- Under the repository's lock: the scopes of ended leases go, and each lease wakes a bounded number of
-- its waiters. A lease with more of them stays undrained and is met again by the next claim.
-- The same answer says what else a claim has to see to: tasks that fell due, leases that ran out, and
-- whose turn may have to be reserved (the one parked longest that a live worker could do). Asked one
-- by one, three statements found nothing nearly always, at 40 us each. One that this very pass wakes
-- counts as parked: under a steady stream it is woken and parked again by every claim.
-- While nobody knows what became of a push, its lease keeps its paths.
-- Who overlaps several results is parked on one of their shadows, and may begin when another goes: the first
-- pass over an ended shadow, while its paths are there, hands it all who wait for a shadow here (x, o). The
-- next pass wakes them: this one's snapshot has them where they were.
WITH d AS MATERIALIZED (
  SELECT l.id FROM lessor.lease AS l
  WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
    SELECT 1 FROM lessor.intent AS i
    WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
  ORDER BY l.ended_ms, l.id LIMIT :most FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM lessor.scope AS s WHERE s.lease_id = ANY (ARRAY(SELECT d.id FROM d))
), faded AS (
  DELETE FROM lessor.shadow_scope AS s WHERE s.lease_id = ANY (ARRAY(SELECT d.id FROM d))
), x AS MATERIALIZED (
  SELECT min(g.lease_id) AS lease_id FROM lessor.shadow_scope AS g WHERE g.lease_id = ANY (ARRAY(SELECT d.id FROM d))
), o AS (
  UPDATE lessor.task AS t SET waiting_on = x.lease_id
  FROM x WHERE x.lease_id IS NOT NULL AND t.waiting_on = ANY (ARRAY(
    SELECT g.lease_id FROM lessor.shadow_scope AS g
    WHERE g.repository_id = :repository_id AND g.lease_id <> ALL (ARRAY(SELECT d.id FROM d))))
  RETURNING x.lease_id
), w AS MATERIALIZED (
  SELECT d.id AS lease_id, ARRAY(
    SELECT t.id FROM lessor.task AS t WHERE t.waiting_on = d.id ORDER BY t.rank, t.id LIMIT :wake
  ) AS waiters
  FROM d
), k AS (
  UPDATE lessor.task AS t SET waiting_on = NULL
  WHERE t.id = ANY (ARRAY(SELECT unnest(w.waiters) FROM w)) AND t.waiting_on = ANY (ARRAY(SELECT d.id FROM d))
  RETURNING t.id
), f AS (
  UPDATE lessor.lease AS l SET drained = 1
  WHERE l.id = ANY (ARRAY(SELECT w.lease_id FROM w WHERE cardinality(w.waiters) < :wake)) AND l.id <> ALL (ARRAY(SELECT o.lease_id FROM o))
)
SELECT (SELECT count(*) FROM d) AS drained, (SELECT count(*) FROM k) AS woken,
  CASE WHEN (
    SELECT t.id FROM lessor.task AS t
    WHERE t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 0 AND t.run_at_ms <= n.now
    ORDER BY t.run_at_ms, t.id LIMIT 1
  ) IS NULL THEN 0 ELSE 1 END AS due,
  CASE WHEN (
    SELECT l.id FROM lessor.lease AS l
    WHERE l.repository_id = :repository_id AND l.ended_ms IS NULL AND l.expires_ms <= n.now
    ORDER BY l.expires_ms LIMIT 1
  ) IS NULL THEN 0 ELSE 1 END AS lapsed,
  CASE WHEN (SELECT count(*) FROM d) >= :most OR EXISTS (SELECT 1 FROM w WHERE cardinality(w.waiters) >= :wake)
      OR EXISTS (SELECT 1 FROM o) THEN 1 ELSE 0 END AS undrained,
  o.task_id AS parked, o.parked_fence, o.parked_ms, o.overtake_limit, o.overtake_ms,
  CASE WHEN EXISTS (
    SELECT 1 FROM lessor.lease AS l
    WHERE l.repository_id = :repository_id AND l.kind = 'reservation' AND l.ended_ms IS NULL) THEN 1 ELSE 0 END AS reserved
FROM (SELECT lessor.ms() AS now OFFSET 0) AS n LEFT JOIN LATERAL (
  SELECT t.id AS task_id, t.parked_fence, t.parked_ms,
    coalesce(q.overtake_limit, 20) AS overtake_limit, coalesce(q.overtake_ms, 600000) AS overtake_ms
  FROM lessor.task AS t LEFT JOIN lessor.queue AS q ON q.name = t.queue
  WHERE t.repository_id = :repository_id AND t.parked_fence IS NOT NULL AND coalesce(q.paused, 0) = 0
    AND (t.agent IS NULL AND t.capabilities IS NULL OR EXISTS (
      SELECT 1 FROM lessor.worker AS w
      WHERE w.retired_ms IS NULL AND (t.agent IS NULL OR w.kind = t.agent)
        AND (t.capabilities IS NULL OR t.capabilities <@ w.capabilities)))
  ORDER BY t.parked_fence, t.id
  LIMIT 1
) AS o ON true

-- name: left_ended
-- Whether the drain of this transaction has left an ended lease: somebody had its row locked.
SELECT l.id FROM lessor.lease AS l
WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
  SELECT 1 FROM lessor.intent AS i
  WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
LIMIT 1

-- name: await_ended
-- For whoever found nothing else: once their rows could be locked, by id, the next drain can free them. In a
-- transaction of its own: the repository isn't kept waiting for a late writer.
SELECT l.id FROM lessor.lease AS l
WHERE l.repository_id = :repository_id AND l.ended_ms IS NOT NULL AND l.drained = 0 AND NOT EXISTS (
  SELECT 1 FROM lessor.intent AS i
  WHERE i.repository_id = :repository_id AND i.task_id = l.task_id AND i.settled_ms IS NULL)
ORDER BY l.id
FOR UPDATE OF l

-- name: candidates
-- Ready tasks in order, each with one lease that blocks it where both sides are plain paths. Two
-- lookups, ancestors by equality and descendants by range: as one OR, PostgreSQL read every scope of
-- the repository.
-- A reserved turn blocks no task that has a hold: the turn may itself wait for that hold's end.
-- Of a task's own rows only those of an ended lease block it, until they are drained.
WITH full_key AS (  -- a first look, so that nobody scans past a full key; counted again under its lock
  SELECT json_array_elements_text(:full_keys::json) AS key  -- as this claim has found them
  UNION ALL
  SELECT u.key FROM lessor.usage_limit AS u
  WHERE u.kind = 'key' AND u.maximum <= (
    SELECT count(*) FROM lessor.lease AS l
    WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.limit_key = u.key AND l.expires_ms > (SELECT lessor.ms()))
), c AS MATERIALIZED (
  SELECT t.id, t.epoch, t.rank, t.agent, t.limit_key, t.branch, t.progress, t.globs
  FROM lessor.task AS t
  WHERE t.queue = :queue AND t.repository_id = :repository_id AND t.status = 'queued' AND t.due = 1
    AND t.needs_left = 0 AND t.waiting_on IS NULL AND (t.rank, t.id) >= (:mark_rank, :mark_id)
    AND (t.agent IS NULL OR t.agent = :kind)
    AND (t.capabilities IS NULL OR t.capabilities <@ ARRAY(SELECT json_array_elements_text(:capabilities::json)))
    AND (t.limit_key IS NULL OR t.limit_key NOT IN (SELECT f.key FROM full_key AS f))
    AND NOT EXISTS (SELECT 1 FROM lessor.queue AS q WHERE q.name = :queue AND q.paused = 1)
    AND NOT EXISTS (SELECT 1 FROM lessor.worker AS w WHERE w.id = :worker_id AND w.retired_ms IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1 FROM lessor.intent AS i
      WHERE i.repository_id = :repository_id AND i.task_id = t.id AND i.settled_ms IS NULL)
  ORDER BY t.rank, t.id
  LIMIT :most
)
SELECT c.id AS task_id, c.epoch, c.rank, c.agent, c.limit_key, c.branch, c.progress, c.globs,
  s.number, s.title,
  (SELECT hit.lease_id FROM lessor.task_scope AS ts CROSS JOIN LATERAL (
     (SELECT s.lease_id FROM lessor.scope AS s
       WHERE s.repository_id = :repository_id AND s.key = ANY (ts.ancestors)
         AND (ts.mode = 'w' OR s.mode = 'w') AND s.pattern IS NULL
         AND CASE WHEN s.task_id <> c.id THEN true ELSE (SELECT o.kind = 'lease' FROM lessor.lease AS o WHERE o.id = s.lease_id) END
         AND (s.reserved_rank IS NULL OR s.reserved_rank <= c.rank AND NOT EXISTS (
          SELECT 1 FROM lessor.lease AS h WHERE h.task_id = c.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
       LIMIT 1)
     UNION ALL
     (SELECT s.lease_id FROM lessor.scope AS s
       WHERE s.repository_id = :repository_id AND s.key > ts.key AND s.key < ts.key_end
         AND (ts.mode = 'w' OR s.mode = 'w') AND s.pattern IS NULL
         AND CASE WHEN s.task_id <> c.id THEN true ELSE (SELECT o.kind = 'lease' FROM lessor.lease AS o WHERE o.id = s.lease_id) END
         AND (s.reserved_rank IS NULL OR s.reserved_rank <= c.rank AND NOT EXISTS (
          SELECT 1 FROM lessor.lease AS h WHERE h.task_id = c.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
       LIMIT 1)
   ) AS hit
   WHERE ts.task_id = c.id AND ts.pattern IS NULL LIMIT 1) AS blocker,
  CASE WHEN :with_scopes = 1 THEN
    (SELECT json_agg(json_build_array(ts.text, ts.key, ts.mode, ts.pattern) ORDER BY ts.ord)
     FROM lessor.task_scope AS ts WHERE ts.task_id = c.id)::text
  END AS scopes,
  CASE WHEN (SELECT o.id FROM lessor.lease AS o WHERE o.task_id = c.id AND o.kind <> 'lease' AND o.ended_ms IS NULL LIMIT 1)
    IS NULL THEN 0 ELSE 1 END AS has_own,
  CASE WHEN EXISTS (SELECT 1 FROM lessor.scope AS g WHERE g.repository_id = :repository_id AND g.pattern IS NOT NULL)
    THEN 1 ELSE 0 END AS live_globs,
  CASE WHEN EXISTS (SELECT 1 FROM lessor.usage_limit) THEN 1 ELSE 0 END AS limited,
  CASE WHEN EXISTS (SELECT 1 FROM lessor.shadow_scope AS sh WHERE sh.repository_id = :repository_id) THEN 1 ELSE 0 END AS shadowed,
  lessor.ms() AS now
FROM c JOIN lessor.submission AS s ON s.task_id = c.id
ORDER BY c.rank, c.id

-- name: glob_pairs
-- Pairs in which a side is a glob and whose literal beginnings touch: the model decides them exactly.
SELECT p.task_id, p.lease_id, p.mine_key, p.mine_mode, p.mine_pattern, p.key, p.mode, p.pattern
FROM (SELECT value::bigint AS task_id FROM json_array_elements_text(:tasks::json)) AS c
JOIN lessor.task AS t ON t.id = c.task_id
CROSS JOIN LATERAL (
  SELECT t.id AS task_id, s.lease_id, ts.key AS mine_key, ts.mode AS mine_mode, ts.pattern AS mine_pattern, s.key, s.mode, s.pattern
  FROM lessor.task_scope AS ts CROSS JOIN LATERAL (
    SELECT s.lease_id, s.key, s.mode, s.pattern, s.task_id, s.reserved_rank FROM lessor.scope AS s
    WHERE s.repository_id = t.repository_id AND s.key = ANY (ts.ancestors)
    UNION ALL
    SELECT s.lease_id, s.key, s.mode, s.pattern, s.task_id, s.reserved_rank FROM lessor.scope AS s
    WHERE s.repository_id = t.repository_id AND s.key > ts.key AND s.key < ts.key_end
  ) AS s
  WHERE ts.task_id = t.id AND (ts.pattern IS NOT NULL OR s.pattern IS NOT NULL)
    AND (ts.mode = 'w' OR s.mode = 'w') AND s.task_id <> t.id
    AND (s.reserved_rank IS NULL OR s.reserved_rank <= t.rank AND NOT EXISTS (
        SELECT 1 FROM lessor.lease AS h WHERE h.task_id = t.id AND h.kind = 'hold' AND h.kind <> 'lease' AND h.ended_ms IS NULL))
  LIMIT :most
) AS p

-- name: lock_queue
-- Before a turn is reserved: a pause that is under way comes first, a later one sees the reservation.
INSERT INTO lessor.queue AS q (name)
SELECT t.queue FROM lessor.task AS t WHERE t.id = :task_id
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING paused

-- name: reserve
-- A reservation isn't a grant: it takes no fence of its own, and blocks only the same or lower priority.
-- The task's row is locked first, and the queue's is read as it is now: a cancel or a pause that came
-- in between leaves nothing to reserve.
WITH u AS (
  UPDATE lessor.task AS t SET parked_fence = :fence, parked_ms = :at_ms, events = t.events + 1
  WHERE t.id = :task_id AND t.status = 'queued' AND t.parked_fence IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM lessor.queue AS q WHERE q.name = t.queue AND q.paused = 1)
  RETURNING t.id, t.repository_id, t.queue, t.rank, t.events, t.epoch
), l AS (
  INSERT INTO lessor.lease AS l (
    kind, repository_id, task_id, epoch, fence, term, ttl_ms, granted_ms, renewed_ms, expires_ms, max_until_ms,
    queue, agent, label)
  SELECT 'reservation', u.repository_id, u.id, u.epoch, :fence, 0, :ttl_ms, :at_ms, :at_ms,
    :at_ms + :ttl_ms, :at_ms + :ttl_ms, u.queue, '', ''
  FROM u
  RETURNING l.id
), s AS (
  INSERT INTO lessor.scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence, reserved_rank)
  SELECT l.id, ts.ord, :repository_id, ts.task_id, ts.text, ts.key, ts.key_end, ts.mode, ts.pattern, ts.ancestors, :fence, u.rank
  FROM l, u JOIN lessor.task_scope AS ts ON ts.task_id = u.id
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT u.id, u.events, :at_ms, 'reserved', u.epoch, '{}' FROM u
), r AS (
  UPDATE lessor.counter AS c SET turn = c.turn + 1
  WHERE c.repository_id = :repository_id AND c.repository_id > 0 AND c.turn = (
    SELECT k.turn FROM lessor.counter AS k WHERE k.repository_id = :repository_id ORDER BY k.turn DESC LIMIT 1)
)
SELECT id AS lease_id FROM l

-- name: end_own
-- A task's reservation or hold gives way to its own lease, before the lease's rows are written.
WITH l AS (
  UPDATE lessor.lease AS l SET ended_ms = :at_ms, end_reason = 'granted'
  FROM (SELECT value::bigint AS task_id FROM json_array_elements_text(:tasks::json)) AS c
  WHERE l.task_id = c.task_id AND l.kind <> 'lease' AND l.ended_ms IS NULL
  RETURNING l.id
)
DELETE FROM lessor.scope AS s USING l WHERE s.lease_id = l.id

-- name: claim_write
-- Guarded by each task's epoch and state: fewer leases than decided end the transaction. The lease's id
-- is drawn with the task's row, so that everything that follows is written from u alone: leases joined to
-- their tasks again take the square of the batch.
WITH u AS (
  UPDATE lessor.task AS t
  SET status = 'running', epoch = t.epoch + 1, attempts = t.attempts + 1, events = t.events + 1,
    branch = g.branch, parked_fence = NULL, parked_ms = NULL
  FROM json_to_recordset(:grants::json) AS g(
    ord bigint, task_id bigint, epoch bigint, token_hash text, branch text, label text, fence bigint, hold_ms bigint)
  WHERE t.id = g.task_id AND t.epoch = g.epoch AND t.status = 'queued' AND t.waiting_on IS NULL
  RETURNING nextval('lessor.lease_id_seq') AS lease_id, t.id, t.epoch, t.events, t.rank, t.queue, t.limit_key,
    t.attempts, t.effects, t.progress, g.ord, g.token_hash, g.branch, g.label, g.fence, :at_ms + g.hold_ms AS max_until_ms
), l AS (
  INSERT INTO lessor.lease (
    id, kind, repository_id, task_id, epoch, worker_id, token_hash, fence, term, ttl_ms, granted_ms,
    renewed_ms, expires_ms, max_until_ms, queue, agent, agent_kind, limit_key, branch, label)
  SELECT u.lease_id, 'lease', :repository_id, u.id, u.epoch, :worker_id, u.token_hash, u.fence, :term, :ttl_ms, :at_ms,
    :at_ms, :at_ms + :ttl_ms, u.max_until_ms, u.queue, :agent, :kind, u.limit_key, u.branch, u.label
  FROM u
), s AS (
  INSERT INTO lessor.scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, pattern, ancestors, fence)
  SELECT u.lease_id, ts.ord, :repository_id, ts.task_id, ts.text, ts.key, ts.key_end, ts.mode, ts.pattern, ts.ancestors, u.fence
  FROM u JOIN lessor.task_scope AS ts ON ts.task_id = u.id
), e AS (
  INSERT INTO lessor.event (task_id, n, at_ms, kind, epoch, facts)
  SELECT u.id, u.events, :at_ms, 'claimed', u.epoch, :facts FROM u
), r AS (
  UPDATE lessor.counter AS c SET turn = c.turn + 1, fence = :fence, floor_ms = greatest(c.floor_ms, :at_ms)
  WHERE c.repository_id = :repository_id AND c.repository_id > 0 AND c.turn = (
    SELECT k.turn FROM lessor.counter AS k WHERE k.repository_id = :repository_id ORDER BY k.turn DESC LIMIT 1)
), q AS (
  INSERT INTO lessor.request (actor, request_id, digest, answer, at_ms)
  SELECT :actor, :request_id, :digest, json_agg(u.lease_id ORDER BY u.ord)::text, :at_ms FROM u HAVING count(*) > 0
)
SELECT u.lease_id, u.id AS task_id, u.epoch, 1::bigint AS version, u.fence, :term::bigint AS term,
  :ttl_ms::bigint AS ttl_ms, :at_ms::bigint AS granted_ms, :at_ms + :ttl_ms AS expires_ms, u.max_until_ms, u.label, u.branch,
  :repository_id::bigint AS repository_id, u.queue, u.attempts, u.effects, u.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict,
  coalesce((SELECT json_agg(json_build_array(ts.text, ts.mode) ORDER BY ts.ord)
    FROM lessor.task_scope AS ts WHERE ts.task_id = u.id)::text, '[]') AS scopes,
  NULL::bigint AS ended_ms, u.rank, :at_ms::bigint AS now,
  (SELECT json_build_array(w.on_task, n.number, v.branch, w.head)::text FROM lessor.stand AS w
    JOIN lessor.submission AS n ON n.task_id = w.on_task JOIN lessor.unlanded AS v ON v.task_id = w.on_task
    WHERE w.task_id = u.id) AS stand
FROM (SELECT lessor.expect(count(*), json_array_length(:grants::json)) AS found FROM u) AS checked
CROSS JOIN u JOIN lessor.submission AS s ON s.task_id = u.id
WHERE checked.found > 0
ORDER BY u.ord

-- name: park_tasks
-- Tasks that wait leave every scan: on a live lease, or on the one that another task was just granted.
-- Who waits for a result to land (`passed` is 0) isn't passed by anybody: a reserved turn wouldn't help it.
UPDATE lessor.task AS t
SET waiting_on = coalesce(x.lease_id, x.granted), parked_fence = CASE WHEN x.passed = 1 THEN coalesce(t.parked_fence, :fence) END,
  parked_ms = CASE WHEN x.passed = 1 THEN coalesce(t.parked_ms, :at_ms) END
FROM (
  SELECT p.task_id, p.lease_id, p.passed, (
    SELECT l.id FROM lessor.lease AS l WHERE l.task_id = p.behind AND l.kind = 'lease' AND l.ended_ms IS NULL
  ) AS granted
  FROM json_to_recordset(:parks::json) AS p(task_id bigint, lease_id bigint, behind bigint, passed bigint)
  OFFSET 0
) AS x
WHERE t.id = x.task_id AND t.status = 'queued' AND t.waiting_on IS NULL
RETURNING t.id AS task_id

-- name: grants
-- What a repeated request is answered with: its leases as they are now.
SELECT l.id AS lease_id, l.task_id, l.epoch, l.version, l.fence, l.term, l.ttl_ms, l.granted_ms, l.expires_ms,
  l.max_until_ms, l.label, l.branch, l.repository_id, l.queue, t.attempts, t.effects, t.progress,
  s.number, s.title, s.prompt, s.check_command, s.idempotency_key, s.strict,
  coalesce((SELECT json_agg(json_build_array(ts.text, ts.mode) ORDER BY ts.ord)
    FROM lessor.task_scope AS ts WHERE ts.task_id = l.task_id)::text, '[]') AS scopes,
  l.ended_ms, t.rank, lessor.ms() AS now,
  (SELECT json_build_array(w.on_task, n.number, v.branch, w.head)::text FROM lessor.stand AS w
    JOIN lessor.submission AS n ON n.task_id = w.on_task JOIN lessor.unlanded AS v ON v.task_id = w.on_task
    WHERE w.task_id = l.task_id) AS stand
FROM json_array_elements_text(:leases::json) WITH ORDINALITY AS x(value, ord)
JOIN lessor.lease AS l ON l.id = x.value::bigint
JOIN lessor.task AS t ON t.id = l.task_id
JOIN lessor.submission AS s ON s.task_id = l.task_id
ORDER BY x.ord
