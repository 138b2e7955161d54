-- Instants are milliseconds of the store's clock. Ids are AUTOINCREMENT: a reused rowid would let
-- an old id name a new row. Repository 0 stands for "no repository", so that every index and
-- comparison treats it like any other.
CREATE TABLE schema_migration (
  version INTEGER PRIMARY KEY,
  digest TEXT NOT NULL,
  applied_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE repository (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  canonical TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  fold_case INTEGER NOT NULL DEFAULT 0 CHECK (fold_case IN (0, 1)),
  normalize INTEGER NOT NULL DEFAULT 1 CHECK (normalize IN (0, 1)),
  term INTEGER NOT NULL DEFAULT 0,
  last_number INTEGER NOT NULL DEFAULT 0,
  unlanded TEXT NOT NULL DEFAULT 'stack' CHECK (unlanded IN ('stack', 'wait', 'ignore')),
  fence_remote TEXT,
  unfenced INTEGER NOT NULL DEFAULT 0 CHECK (unfenced IN (0, 1))
) STRICT;

-- What each grant moves, one row a repository; why it is a table of its own, PostgreSQL's says.
CREATE TABLE counter (
  repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
  turn INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  floor_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TRIGGER repository_has_a_counter AFTER INSERT ON repository
BEGIN INSERT INTO counter (repository_id) VALUES (NEW.id); END;
INSERT INTO repository (id, canonical, name) VALUES (0, '', '');

CREATE TABLE checkout (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repository_id INTEGER NOT NULL REFERENCES repository (id),
  host_id TEXT NOT NULL,
  common_dir TEXT NOT NULL,
  UNIQUE (host_id, common_dir)
) STRICT;

CREATE TABLE worker (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  host_id TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  pid INTEGER,
  pid_namespace TEXT NOT NULL,
  start_ticks INTEGER,
  capabilities TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(capabilities)),
  heartbeat INTEGER NOT NULL CHECK (heartbeat IN (0, 1)),
  registered_ms INTEGER NOT NULL,
  retired_ms INTEGER
) STRICT;
CREATE INDEX worker_host ON worker (host_id, boot_id) WHERE retired_ms IS NULL;

CREATE TABLE queue (
  name TEXT PRIMARY KEY,
  paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  wait_max_ms INTEGER NOT NULL DEFAULT 3600000 CHECK (wait_max_ms > 0),
  overtake_limit INTEGER NOT NULL DEFAULT 20 CHECK (overtake_limit > 0),
  overtake_ms INTEGER NOT NULL DEFAULT 600000 CHECK (overtake_ms > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_limit (
  kind TEXT NOT NULL CHECK (kind IN ('queue', 'key', 'agent')),
  key TEXT NOT NULL,
  maximum INTEGER NOT NULL CHECK (maximum >= 0),
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- What changes while a task lives, and nothing else: each update of a row touches all its indexes.
-- `needed` moves whenever another task's need of this one comes or goes; PostgreSQL's completion
-- tells by it that its reading of the dependencies is old.
-- No foreign keys on task, lease and scope: their checks would share-lock repository and worker
-- rows outside the lock order; ids come from the same transaction that read the rows.
CREATE TABLE task (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  repository_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'needs_person', 'reconciling', 'blocked', 'quarantined', 'succeeded', 'failed', 'cancelled')),
  due INTEGER NOT NULL CHECK (due IN (0, 1)),
  run_at_ms INTEGER NOT NULL,
  needs_left INTEGER NOT NULL DEFAULT 0 CHECK (needs_left >= 0),
  needed INTEGER NOT NULL DEFAULT 0,
  waiting_on INTEGER,
  parked_fence INTEGER,
  parked_ms INTEGER,
  agent TEXT,
  capabilities TEXT CHECK (capabilities IS NULL OR json_valid(capabilities)),
  limit_key TEXT,
  unique_key TEXT,
  branch TEXT,
  effects TEXT NOT NULL CHECK (effects IN ('read-only', 'workspace', 'idempotent', 'brokered', 'unsafe', 'undeclared')),
  progress INTEGER NOT NULL CHECK (progress IN (0, 1)),
  globs INTEGER NOT NULL DEFAULT 0 CHECK (globs IN (0, 1)),
  epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  charged INTEGER NOT NULL DEFAULT 0 CHECK (charged >= 0),
  max_attempts INTEGER NOT NULL CHECK (max_attempts > 0),
  stage TEXT NOT NULL DEFAULT 'none' CHECK (stage IN ('none', 'submitted', 'unverified', 'verified', 'pushed', 'landed')),
  error_print TEXT,
  same_errors INTEGER NOT NULL DEFAULT 0,
  events INTEGER NOT NULL DEFAULT 0,
  queued_ms INTEGER NOT NULL,
  finished_ms INTEGER,
  CONSTRAINT task_waits_only_when_queued CHECK (waiting_on IS NULL OR status = 'queued'),
  CONSTRAINT task_finished_when_terminal CHECK ((finished_ms IS NOT NULL) = (status IN ('succeeded', 'failed', 'cancelled')))
) STRICT;
CREATE INDEX task_ready ON task (queue, repository_id, rank, id)
  WHERE status = 'queued' AND due = 1 AND needs_left = 0 AND waiting_on IS NULL;
CREATE INDEX task_due ON task (repository_id, run_at_ms, id) WHERE status = 'queued' AND due = 0;
CREATE INDEX task_waiting ON task (waiting_on, rank, id) WHERE waiting_on IS NOT NULL;
CREATE INDEX task_parked ON task (repository_id, parked_fence, id) WHERE parked_fence IS NOT NULL;
CREATE INDEX task_open ON task (repository_id, id) WHERE finished_ms IS NULL;
CREATE UNIQUE INDEX task_one_unfinished_per_branch ON task (repository_id, branch)
  WHERE branch IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX task_by_key ON task (repository_id, unique_key, id) WHERE unique_key IS NOT NULL;
CREATE UNIQUE INDEX task_one_unfinished_per_key ON task (queue, unique_key)
  WHERE unique_key IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled');

-- Invariant 6 by the database: terminal stays terminal, epochs and fences only grow, an ended lease
-- stays ended, and nothing of an unfinished task is deleted.
CREATE TRIGGER repository_only_grows BEFORE UPDATE OF term ON repository
WHEN NEW.term < OLD.term
BEGIN SELECT RAISE(ABORT, 'repository_only_grows'); END;
CREATE TRIGGER counter_only_grows BEFORE UPDATE OF fence ON counter
WHEN NEW.fence < OLD.fence
BEGIN SELECT RAISE(ABORT, 'counter_only_grows'); END;
CREATE TRIGGER task_deleted_only_when_terminal BEFORE DELETE ON task
WHEN OLD.status NOT IN ('succeeded', 'failed', 'cancelled')
BEGIN SELECT RAISE(ABORT, 'task_deleted_only_when_terminal'); END;
CREATE TRIGGER task_terminal_stays_terminal BEFORE UPDATE OF status ON task
WHEN OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'task_terminal_stays_terminal'); END;
CREATE TRIGGER task_epoch_only_grows BEFORE UPDATE OF epoch ON task
WHEN NEW.epoch < OLD.epoch
BEGIN SELECT RAISE(ABORT, 'task_epoch_only_grows'); END;

-- What was asked for: written once, changed only by a person's amendment.
CREATE TABLE submission (
  task_id INTEGER PRIMARY KEY REFERENCES task (id),
  repository_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  title TEXT NOT NULL,
  branch_words TEXT NOT NULL DEFAULT 'task',
  prompt TEXT NOT NULL,
  check_command TEXT,
  idempotency_key TEXT,
  strict INTEGER NOT NULL CHECK (strict IN (0, 1)),
  submitter TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  CONSTRAINT submission_one_number UNIQUE (repository_id, number)
) STRICT;

CREATE TABLE dependency (
  task_id INTEGER NOT NULL REFERENCES task (id),
  needs_id INTEGER NOT NULL REFERENCES task (id),
  PRIMARY KEY (task_id, needs_id),
  CHECK (task_id <> needs_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_needs ON dependency (needs_id, task_id);

CREATE TABLE task_scope (
  task_id INTEGER NOT NULL REFERENCES task (id),
  ord INTEGER NOT NULL,
  text TEXT NOT NULL,
  key TEXT NOT NULL,
  key_end TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('r', 'w')),
  pattern TEXT,
  ancestors TEXT NOT NULL CHECK (json_valid(ancestors)),
  widened INTEGER NOT NULL DEFAULT 0 CHECK (widened IN (0, 1)),
  PRIMARY KEY (task_id, ord)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('lease', 'reservation', 'hold', 'shadow')),
  repository_id INTEGER NOT NULL,
  task_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  worker_id INTEGER,
  token_hash TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  fence INTEGER NOT NULL,
  term INTEGER NOT NULL,
  ttl_ms INTEGER NOT NULL,
  granted_ms INTEGER NOT NULL,
  renewed_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  max_until_ms INTEGER NOT NULL,
  queue TEXT NOT NULL,
  agent TEXT NOT NULL,
  agent_kind TEXT NOT NULL DEFAULT '',
  limit_key TEXT,
  branch TEXT,
  label TEXT NOT NULL,
  workspace_id INTEGER,
  environment_id INTEGER,
  renew_request TEXT,
  ended_ms INTEGER,
  end_reason TEXT CHECK (end_reason IN ('completed', 'failed', 'released', 'asked', 'cancelled', 'lapsed', 'gone', 'rewound', 'forced', 'granted', 'landed', 'discarded')),
  end_digest TEXT,
  acknowledged_ms INTEGER,
  proof TEXT,
  result TEXT,
  drained INTEGER NOT NULL DEFAULT 0 CHECK (drained IN (0, 1)),
  CONSTRAINT lease_deadline_within_hold CHECK (expires_ms <= max_until_ms),
  CONSTRAINT lease_ended_with_reason CHECK ((ended_ms IS NULL) = (end_reason IS NULL))
) STRICT;
CREATE UNIQUE INDEX lease_one_per_epoch ON lease (task_id, epoch) WHERE kind = 'lease';
CREATE UNIQUE INDEX lease_one_live_per_task ON lease (task_id) WHERE kind = 'lease' AND ended_ms IS NULL;
CREATE UNIQUE INDEX lease_one_grant_per_fence ON lease (repository_id, fence) WHERE kind = 'lease' AND repository_id > 0;
CREATE UNIQUE INDEX lease_one_live_per_branch ON lease (repository_id, branch)
  WHERE kind = 'lease' AND ended_ms IS NULL AND branch IS NOT NULL AND repository_id > 0;
CREATE UNIQUE INDEX lease_one_live_per_workspace ON lease (workspace_id) WHERE ended_ms IS NULL AND workspace_id IS NOT NULL;
CREATE UNIQUE INDEX lease_one_live_per_environment ON lease (environment_id) WHERE ended_ms IS NULL AND environment_id IS NOT NULL;
CREATE UNIQUE INDEX lease_one_reservation_per_repository ON lease (repository_id) WHERE kind = 'reservation' AND ended_ms IS NULL;
CREATE INDEX lease_lapse ON lease (repository_id, expires_ms) WHERE ended_ms IS NULL;
CREATE INDEX lease_drain ON lease (repository_id, ended_ms, id) WHERE ended_ms IS NOT NULL AND drained = 0;
CREATE INDEX lease_live_by_queue ON lease (queue) WHERE kind = 'lease' AND ended_ms IS NULL;
CREATE INDEX lease_live_by_agent ON lease (agent_kind, agent) WHERE kind = 'lease' AND ended_ms IS NULL;
CREATE INDEX lease_live_by_key ON lease (limit_key) WHERE kind = 'lease' AND ended_ms IS NULL AND limit_key IS NOT NULL;
CREATE INDEX lease_by_task ON lease (task_id, id) WHERE kind <> 'lease' AND ended_ms IS NULL;

CREATE TRIGGER lease_stays_ended BEFORE UPDATE OF ended_ms, expires_ms ON lease
WHEN OLD.ended_ms IS NOT NULL AND (NEW.ended_ms IS NOT OLD.ended_ms OR NEW.expires_ms <> OLD.expires_ms)
BEGIN SELECT RAISE(ABORT, 'lease_stays_ended'); END;
CREATE TRIGGER lease_deleted_only_when_terminal BEFORE DELETE ON lease
WHEN EXISTS (SELECT 1 FROM task AS t WHERE t.id = OLD.task_id AND t.status NOT IN ('succeeded', 'failed', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'lease_deleted_only_when_terminal'); END;

-- A path is blocked exactly while its row is here.
CREATE TABLE scope (
  lease_id INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  repository_id INTEGER NOT NULL,
  task_id INTEGER NOT NULL,
  text TEXT NOT NULL,
  key TEXT NOT NULL,
  key_end TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('r', 'w')),
  pattern TEXT,
  ancestors TEXT NOT NULL,
  fence INTEGER NOT NULL,
  reserved_rank INTEGER,
  PRIMARY KEY (lease_id, ord)
) STRICT, WITHOUT ROWID;
CREATE INDEX scope_key ON scope (repository_id, key, mode);
CREATE INDEX scope_glob ON scope (repository_id, key) WHERE pattern IS NOT NULL;
CREATE UNIQUE INDEX scope_one_writer_per_key ON scope (repository_id, key)
  WHERE mode = 'w' AND pattern IS NULL AND reserved_rank IS NULL;

-- Invariant 2 by the database, for literal paths: globs are decided exactly by the model, under the
-- repository's lock. CROSS JOIN keeps the order of lookups (SQLite's own choice scanned the table).
CREATE TRIGGER scope_no_overlap BEFORE INSERT ON scope
WHEN NEW.pattern IS NULL AND NEW.reserved_rank IS NULL
BEGIN
  SELECT RAISE(ABORT, 'scope_no_overlap')
  FROM json_each(NEW.ancestors) AS a CROSS JOIN scope AS s INDEXED BY scope_key
  WHERE s.repository_id = NEW.repository_id AND s.key = a.value
    AND s.lease_id <> NEW.lease_id AND s.pattern IS NULL AND s.reserved_rank IS NULL
    AND (s.mode = 'w' OR NEW.mode = 'w');
  SELECT RAISE(ABORT, 'scope_no_overlap')
  FROM scope AS s INDEXED BY scope_key
  WHERE s.repository_id = NEW.repository_id AND s.key > NEW.key AND s.key < NEW.key_end
    AND s.lease_id <> NEW.lease_id AND s.pattern IS NULL AND s.reserved_rank IS NULL
    AND (s.mode = 'w' OR NEW.mode = 'w');
END;

CREATE TRIGGER scope_keeps_its_path
BEFORE UPDATE OF repository_id, key, key_end, mode, pattern, ancestors, reserved_rank ON scope
BEGIN SELECT RAISE(ABORT, 'scope_keeps_its_path'); END;

-- Results that have a commit, and whether they landed: the shadow of each is the lease here, for as long as
-- that hasn't ended. `landed` is the commit on `target` that has it, `trouble` why it can't
-- land, `given_up` that a person doesn't want it. `below` are the tasks on whose results it stands, the nearest first.
CREATE TABLE unlanded (
  task_id INTEGER PRIMARY KEY REFERENCES task (id),
  repository_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  lease_id INTEGER NOT NULL,
  branch TEXT NOT NULL,
  head TEXT NOT NULL,
  below TEXT NOT NULL CHECK (json_valid(below)),
  trouble TEXT,
  target TEXT,
  landed TEXT,
  given_up INTEGER NOT NULL DEFAULT 0 CHECK (given_up IN (0, 1))
) STRICT;
CREATE INDEX unlanded_branch ON unlanded (repository_id, branch) WHERE landed IS NULL;

-- What a shadow lies on, while it does: paths its result had for writing. Not in `scope`: it keeps nobody
-- out who starts on top of it.
CREATE TABLE shadow_scope (
  lease_id INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  repository_id INTEGER NOT NULL,
  task_id INTEGER NOT NULL,
  text TEXT NOT NULL,
  key TEXT NOT NULL,
  key_end TEXT NOT NULL,
  pattern TEXT,
  PRIMARY KEY (lease_id, ord)
) STRICT, WITHOUT ROWID;
CREATE INDEX shadow_scope_key ON shadow_scope (repository_id, key);
CREATE INDEX shadow_scope_glob ON shadow_scope (repository_id, key) WHERE pattern IS NOT NULL;

-- The result on whose commit a task's work began.
CREATE TABLE stand (
  task_id INTEGER PRIMARY KEY REFERENCES task (id),
  on_task INTEGER NOT NULL REFERENCES task (id),
  head TEXT NOT NULL,
  below TEXT NOT NULL CHECK (json_valid(below))
) STRICT;

-- Widenings are grants: kept, so that a completion can tell who took a path since its base.
CREATE TABLE widening (
  repository_id INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  lease_id INTEGER NOT NULL,
  task_id INTEGER NOT NULL,
  text TEXT NOT NULL,
  key TEXT NOT NULL,
  mode TEXT NOT NULL,
  pattern TEXT,
  PRIMARY KEY (repository_id, fence, ord)
) STRICT, WITHOUT ROWID;

CREATE TABLE workspace (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id INTEGER NOT NULL REFERENCES task (id),
  epoch INTEGER NOT NULL,
  host_id TEXT NOT NULL,
  path TEXT NOT NULL,
  branch TEXT NOT NULL,
  base TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'present', 'dirty', 'salvaged', 'quarantined', 'gone')),
  snapshot TEXT NOT NULL DEFAULT '{}',
  at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX workspace_one_per_path ON workspace (host_id, path) WHERE state <> 'gone';
CREATE INDEX workspace_by_task ON workspace (task_id, epoch);

CREATE TABLE salvage (
  task_id INTEGER NOT NULL REFERENCES task (id),
  epoch INTEGER NOT NULL,
  n INTEGER NOT NULL,
  ref TEXT,
  archive TEXT,
  files INTEGER NOT NULL,
  workspace_id INTEGER NOT NULL REFERENCES workspace (id),
  at_ms INTEGER NOT NULL,
  dropped_ms INTEGER,
  PRIMARY KEY (task_id, epoch, n)
) STRICT, WITHOUT ROWID;

-- The reference that a fenced remote has for a lease: on record before it is made there, so that
-- whoever ends the lease knows what to close. `oid` is its latest value that is known.
CREATE TABLE fence_ref (
  lease_id INTEGER NOT NULL,
  repository_id INTEGER NOT NULL,
  remote TEXT NOT NULL,
  oid TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('opening', 'open', 'closed')),
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (lease_id, remote)
) STRICT, WITHOUT ROWID;
CREATE INDEX fence_ref_open ON fence_ref (repository_id, lease_id) WHERE state <> 'closed';
CREATE TRIGGER fence_ref_stays_closed BEFORE UPDATE OF state ON fence_ref
WHEN OLD.state = 'closed' AND NEW.state <> 'closed'
BEGIN SELECT RAISE(ABORT, 'fence_ref_stays_closed'); END;

-- A side effect outside, announced before it is tried. While its outcome isn't known, the paths of
-- its lease stay taken after the lease has ended.
CREATE TABLE intent (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('publish')),
  repository_id INTEGER NOT NULL,
  task_id INTEGER NOT NULL,
  lease_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  target TEXT NOT NULL,
  facts TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  announced_ms INTEGER NOT NULL,
  settled_ms INTEGER,
  outcome TEXT CHECK (outcome IN ('done', 'failed', 'conflict')),
  response TEXT NOT NULL DEFAULT '',
  CONSTRAINT intent_settled_with_outcome CHECK ((settled_ms IS NULL) = (outcome IS NULL))
) STRICT;
CREATE INDEX intent_by_task ON intent (task_id, id);
CREATE INDEX intent_unsettled ON intent (repository_id, task_id) WHERE settled_ms IS NULL;
CREATE UNIQUE INDEX intent_one_unsettled_per_lease ON intent (lease_id) WHERE settled_ms IS NULL;
CREATE TRIGGER intent_settles_once BEFORE UPDATE ON intent
WHEN OLD.settled_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'intent_settles_once'); END;
CREATE TRIGGER intent_deleted_only_when_terminal BEFORE DELETE ON intent
WHEN OLD.settled_ms IS NULL
  OR EXISTS (SELECT 1 FROM task AS t WHERE t.id = OLD.task_id AND t.status NOT IN ('succeeded', 'failed', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'intent_deleted_only_when_terminal'); END;

CREATE TABLE event (
  task_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (task_id, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER event_is_append_only BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'event_is_append_only'); END;
CREATE TRIGGER event_deleted_only_when_terminal BEFORE DELETE ON event
WHEN EXISTS (SELECT 1 FROM task AS t WHERE t.id = OLD.task_id AND t.status NOT IN ('succeeded', 'failed', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'event_deleted_only_when_terminal'); END;

-- How many results came for a lease that weren't its live holder's. The first of them are events. Not in the
-- lease's row, which nobody but its holder, the clock and people change.
CREATE TABLE late_result (
  task_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  counted INTEGER NOT NULL,
  PRIMARY KEY (task_id, epoch)
) STRICT, WITHOUT ROWID;

-- The answers to requests, so that a retry gets the same one; they outlive every grant.
CREATE TABLE request (
  actor TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  answer TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (actor, request_id)
) STRICT, WITHOUT ROWID;
