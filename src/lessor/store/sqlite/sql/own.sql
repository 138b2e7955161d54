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
