/* The lease protocol: workers, the store, the remote, and everything that goes wrong between them.
 *
 * A pause is Spin's interleaving: any process may stand still between two of its steps, for ever (a
 * crash) or until long after its lease is over (a zombie). A d_step is one transaction of the store
 * or one reference transaction of the remote. docs/model.md says which module each part stands for.
 *
 * Set by model/run: WORKERS, ROUNDS (claims a worker), TASKS, STEPS (things done with a lease), LEASES,
 * PUSHES, MAXT, and REMOTE, TRIES, TWIN, LATE, PERSON, RESTORE, SWEEP for the parts that take part.
 */
#define REQUESTS (WORKERS * ROUNDS)
#define TTL 2

#define MASK(t) ((t) == 0 -> 3 : (t))            /* #0 has the paths {a, b}, #1 {a}, #2 {b} */
#define OVERLAP(s, t) ((MASK(s) & MASK(t)) != 0)

/* a task's state */
#define QUEUED 0
#define RUNNING 1
#define RECONCILING 2
#define SUCCEEDED 3

/* a lease's fence reference, as the store has it */
#define NONE 0
#define OPENING 1
#define OPEN 2
#define CLOSED 3

/* what became of an announced push */
#define UNKNOWN 1
#define DONE 2
#define FAILED 3
#define CONFLICT 4

/* a push on its way */
#define SENT 1
#define TAKEN 2
#define REFUSED 3

/* ---- the store ---- */
byte now;                        /* its clock */
bit locked;                      /* the repository's row */
byte state[TASKS];
byte holds[TASKS];               /* the task's lease that hasn't ended; 0 without one */
byte epoch[TASKS];
byte done_by[TASKS];             /* the lease that completed it */
byte last;                       /* the highest lease id that was handed out */
byte fence, term;                /* the repository's counter of grants, and how often it was rewound */
byte task_of[LEASES + 1];
byte worker_of[LEASES + 1];      /* 0: the store doesn't know of this lease */
byte expires[LEASES + 1];
bit scoped[LEASES + 1];          /* its scope rows are there */
byte request[REQUESTS + 1];      /* the lease that answered it */
byte ref_state[LEASES + 1];      /* the row of its fence reference */
byte ref_oid[LEASES + 1];
byte intent[LEASES + 1];
byte want_old[LEASES + 1];       /* the intent: the branch before, the fence before and after */
byte want_fence[LEASES + 1];
byte want_next[LEASES + 1];

#define ENDED(l) (worker_of[l] == 0 || holds[task_of[l]] != l)
#define LIVE(l) (worker_of[l] != 0 && holds[task_of[l]] == l && now < expires[l])
#define GUARD(l, w) (holds[task_of[l]] == l && worker_of[l] == w && now < expires[l])

#ifdef REMOTE
/* ---- the remote ---- */
byte branch[TASKS];              /* the lease whose commit it is at */
byte ref[LEASES + 1];            /* the fence reference; 0: there is none */
byte push_state[PUSHES + 1];
byte push_lease[PUSHES + 1];
byte push_old[PUSHES + 1];
byte push_fence[PUSHES + 1];
byte push_next[PUSHES + 1];
byte pushes;
byte values[LEASES + 1];         /* makes each value of a fence reference a new one */
#ifdef TRIES
byte made_late[LEASES + 1];      /* a fence reference that is made whenever its push arrives; nobody waits for it */
#endif
#endif

/* ---- what only the properties look at ---- */
bit ready[LEASES + 1];           /* its claimer may hand it on */
bit told[TASKS];                 /* a worker was told that its completion was taken */
byte grants[REQUESTS + 1];       /* how many leases a request was answered with */
byte top_fence, top_term, top_epoch[TASKS];
#ifdef REMOTE
byte landed[LEASES + 1];         /* the fence value that came with the push that landed last */
#endif

/* A property is the name of a variable that is always false: Spin then prints the name. */
hidden byte one_live_holder, late_write_refused, one_grant_for_a_request, completion_kept,
  later_grant_has_larger_fence, epoch_never_reused, unknown_push_blocks, stale_push_refused,
  outcome_is_true, fence_value_on_record, never_ends_twice;
#ifdef RESTORE                               /* what a restored store has lost, it can't know */
#define KNOWN(property, condition) skip
#else
#define KNOWN(property, condition) HOLDS(property, condition)
#endif
#define HOLDS(property, condition) if :: (condition) :: else -> assert(property) fi

#define EPOCH_GAP 4

/* scratch inside of one d_step */
hidden byte x, y, v;

/* ---- transactions of the store ---- */

/* recovery: an announced push without an outcome makes its task wait until somebody has looked */
inline end_lease(l) {
  v = l; y = task_of[v];
  HOLDS(never_ends_twice, holds[y] == v && state[y] == RUNNING);
  holds[y] = 0;
  state[y] = (intent[v] == UNKNOWN -> RECONCILING : QUEUED);
  expires[v] = 0; v = 0; y = 0
}

/* claim, first part: lock the repository, end what ran out, drain what ended, see whether t is free */
inline enter(t, free) {
  d_step {
    locked == 0 -> locked = 1;
    x = 0;
    do
    :: x < TASKS ->
       if
       :: holds[x] != 0 && now >= expires[holds[x]] -> end_lease(holds[x])
       :: else
       fi;
       x++
    :: else -> break
    od;
    x = 1;
    do
    :: x <= last ->
       if
       :: scoped[x] && ENDED(x) && intent[x] != UNKNOWN -> scoped[x] = 0
       :: else
       fi;
       x++
    :: else -> break
    od;
    free = 1;
    x = 1;
    do
    :: x <= last ->
       if
       :: scoped[x] && OVERLAP(task_of[x], t) -> free = 0
       :: else
       fi;
       x++
    :: else -> break
    od;
    x = 0
  }
}

inline check_grant(l, t) {
  x = 1;
  do
  :: x < l ->
     HOLDS(one_live_holder, !(LIVE(x) && OVERLAP(task_of[x], t)));
     HOLDS(unknown_push_blocks, !(worker_of[x] != 0 && intent[x] == UNKNOWN && OVERLAP(task_of[x], t)));
     x++
  :: else -> break
  od;
  x = 0;
  KNOWN(completion_kept, !told[t]);
  HOLDS(later_grant_has_larger_fence, term > top_term || (term == top_term && fence > top_fence));
  HOLDS(epoch_never_reused, epoch[t] > top_epoch[t]);
  top_term = term; top_fence = fence; top_epoch[t] = epoch[t]
}

/* claim, second part: the kept answer of a request that was answered, else a grant; l is the answer.
   Between the two parts a holder may renew or end its lease: that takes no lock of the repository. */
inline grant(r, t, w, l, free) {
  d_step {
    l = 0;
    if
    :: request[r] != 0 ->
       if
       :: LIVE(request[r]) -> l = request[r]
       :: else                              /* the grant is over: never a second one */
       fi
    :: else ->
       if
       :: free && state[t] == QUEUED && last < LEASES ->
          last++; l = last; fence++;
          state[t] = RUNNING; holds[t] = l; epoch[t]++;
          task_of[l] = t; worker_of[l] = w; expires[l] = now + TTL; scoped[l] = 1;
          request[r] = l;
          grants[r]++;
          HOLDS(one_grant_for_a_request, grants[r] == 1);
          check_grant(l, t)
       :: else
       fi
    fi;
    free = 0;
    locked = 0
  }
}

inline renew(l, w, ok) {
  d_step {
    if
    :: GUARD(l, w) ->                       /* a renewal */
       HOLDS(late_write_refused, LIVE(l));
       expires[l] = now + TTL;
       ok = 1
    :: else -> ok = 0
    fi
  }
}

/* ok also where this very lease completed it before: a repeat gets the same answer */
inline complete(l, t, w, ok) {
  atomic {                                  /* the lease's row is locked, and then the clock is read */
    ok = (now < expires[l]);
    d_step {
      if
      :: ok && holds[t] == l && worker_of[l] == w ->
         HOLDS(late_write_refused, LIVE(l));
         HOLDS(never_ends_twice, state[t] == RUNNING);
         state[t] = SUCCEEDED; holds[t] = 0; expires[l] = 0; done_by[t] = l
      :: else -> ok = (done_by[t] == l)
      fi
    }
  }
}

inline release(l, w) {
  d_step {
    if
    :: GUARD(l, w) -> HOLDS(late_write_refused, LIVE(l)); end_lease(l)
    :: else
    fi
  }
}

#ifdef REMOTE
/* ---- reference transactions of the remote, and what is built of them ---- */

#define FRESH(l) values[l] = values[l] + 8
#define ASKED(v) (v + 1)                     /* what a fence moves to when its holder asks: known from v alone */
#define ON_RECORD(m) (IS(m, ref_oid[m]) || (intent[m] == UNKNOWN && (IS(m, want_next[m]) || IS(m, want_fence[m]))))
#define IS(m, v) (ref[m] == v || ref[m] == ASKED(v))

/* delete a fence reference that has one of two values, or what a question made of them; `found` is which.
   Another value came too late to be on record: it is deleted as it is read. */
inline close_ref(m, first, second, found, bad) {
  bad = 0;
  d_step {
    if :: ref[m] != 0 && IS(m, first) -> found = first; ref[m] = 0 :: else -> found = 0 fi
  }
  if
  :: found == 0 && second != 0 ->
     d_step { if :: IS(m, second) -> found = second; ref[m] = 0 :: else fi }
  :: else
  fi;
  if
  :: found == 0 ->
     d_step {                               /* that there is none is proved by making one */
       shown = ref[m];
#ifndef TRIES
       if
       :: shown != 0 -> KNOWN(fence_value_on_record, ON_RECORD(m))
       :: else
       fi
#endif
     };
     if
     :: shown != 0 -> d_step { if :: ref[m] == shown -> ref[m] = 0 :: else -> bad = 1 fi; shown = 0 }
     :: else
     fi
  :: else
  fi
}

/* make a lease's fence reference with the value o that was announced for it */
inline open_ref(l, o, ok) {
  d_step { if :: ref[l] == 0 || ref[l] == o -> ref[l] = o :: else -> shown = ref[l] fi };
  if
  :: shown != 0 ->                          /* a try that was cut short has made it */
     ok = (ref_state[l] == OPENING && ref_oid[l] == o);
     d_step { if :: ok && ref[l] == shown -> ref[l] = 0 :: else fi; shown = 0 };
     d_step { if :: ok && ref[l] == 0 -> ref[l] = o :: else -> ok = 0 fi }
  :: else
  fi
}

/* what became of the push of lease m, from what was found */
#define OUTCOME(m, found, tip) (found != 0 -> (found == want_fence[m] -> FAILED : DONE) : \
  (tip == m -> DONE : (tip == want_old[m] -> FAILED : CONFLICT)))

inline settle(m, next, outcome) {
  if
  :: intent[m] == UNKNOWN && want_next[m] == next ->
     intent[m] = outcome;
     KNOWN(outcome_is_true, (outcome != DONE || landed[m] == next) && (outcome != FAILED || landed[m] != next));
  :: else                                   /* settled is settled */
  fi
}

/* the value on record goes forward only: another process of the holder may have got further */
inline move_on(m, v, next, before) {
  if
  :: ref_oid[m] == before || ref_oid[m] == next -> ref_oid[m] = v
  :: else
  fi
}

/* the pushes of ended leases that nobody knows the outcome of: fence, read, settle */
inline recover_all() {
  m = 1;
  do
  :: d_step { m <= last && worker_of[m] != 0 && intent[m] == UNKNOWN && ENDED(m) -> p = want_next[m]; q = want_fence[m] };
     close_ref(m, q, p, found, bad);
     if
     :: bad -> skip                         /* stays as it is */
     :: else ->
        d_step { if :: ENDED(m) -> ref_state[m] = CLOSED :: else fi };
        tip = branch[task_of[m]];
        d_step {
          if
          :: intent[m] == UNKNOWN && ENDED(m) ->
             x = OUTCOME(m, found, tip);
             settle(m, p, x);
             if
             :: x != CONFLICT && state[task_of[m]] == RECONCILING -> state[task_of[m]] = QUEUED
             :: else
             fi;
             x = 0
          :: else
          fi
        }
     fi;
     d_step { m++; p = 0; q = 0; found = 0; tip = 0; bad = 0 }
  :: d_step { m <= last && !(worker_of[m] != 0 && intent[m] == UNKNOWN && ENDED(m)) -> m++ }
  :: m > last -> break
  od;
  m = 0
}

#ifdef RESTORE
/* once the store was rewound: close what leases left that it has lost, or knows an older value of */
inline close_unknown() {
  m = 1;
  do
  :: d_step { term > 0 && m <= LEASES && ref[m] != 0 && ENDED(m) -> p = ref[m] };
     d_step { if :: ref[m] == p -> ref[m] = 0 :: else fi; p = 0; m++ }
  :: d_step { term > 0 && m <= LEASES && !(ref[m] != 0 && ENDED(m)) -> m++ }
  :: term == 0 || m > LEASES -> break
  od;
  m = 0
}
#endif

/* a lease is ready once its own reference is there and those of ended leases are gone */
inline make_ready(l, w, t, ok) {
  recover_all();
  d_step {
    if
    :: GUARD(l, w) ->
       if
       :: ref_state[l] == NONE -> ref_state[l] = OPENING; ref_oid[l] = 1; values[l] = 1
       :: ref_state[l] == OPENING -> FRESH(l); ref_oid[l] = values[l]   /* a value of its own for each try */
       :: else
       fi;
       o = ref_oid[l]; ok = 1; old = ref_state[l]
    :: else -> ok = 0
    fi
  };
#ifdef RESTORE
  close_unknown();
#endif
  d_step {
    x = 1;
    do
    :: x <= last ->
       closing[x] = (worker_of[x] != 0 && ENDED(x) && (ref_state[x] == OPENING || ref_state[x] == OPEN));
       x++
    :: else -> break
    od;
    x = 0
  };
  if
  :: ok && old == OPENING -> open_ref(l, o, ok)
#ifdef TRIES
  :: d_step { ok && old == OPENING && made_late[l] == 0 -> made_late[l] = o; ok = 0 }   /* no answer */
#endif
  :: !(ok && old == OPENING)
  fi;
  old = 0;
  m = 1;
  do
  :: ok && m <= LEASES && closing[m] ->
     p = ref_oid[m];
     close_ref(m, p, 0, found, bad);
     d_step { ok = !bad; m++; found = 0; bad = 0; p = 0 }
  :: d_step { ok && m <= LEASES && !closing[m] -> m++ }
  :: !ok || m > LEASES -> break
  od;
  m = 0;
  if
  :: ok ->
     d_step {
       x = 1;
       do
       :: x <= LEASES ->
          if :: closing[x] && ENDED(x) -> ref_state[x] = CLOSED :: else fi;
          closing[x] = 0;
          x++
       :: else -> break
       od;
       x = 0
     };
     d_step {
       if
       :: GUARD(l, w) && (ref_state[l] == OPEN || ref_oid[l] == o) -> ref_state[l] = OPEN; ready[l] = 1
       :: else -> ok = 0
       fi
     };
     if
     :: !ok && !GUARD(l, w) -> close_ref(l, o, 0, found, bad); d_step { found = 0; bad = 0 }
     :: else
     fi
  :: else
  fi;
  o = 0
}

/* the holder asks what became of its own last push: the fence moves on, so that what is still under
   way can't land any more */
inline resolve(l, w, t, ok) {
  d_step { p = want_next[l]; q = want_fence[l]; found = 0 };
  d_step { if :: ref[l] != 0 && IS(l, q) -> found = q; ref[l] = ASKED(q) :: else fi };
  if
  :: found == 0 ->                          /* the older value first: a push that lands in between is met */
     d_step { if :: ref[l] != 0 && IS(l, p) -> found = p; ref[l] = ASKED(p) :: else fi }
  :: else
  fi;
  tip = branch[t];
  d_step {
    if
    :: GUARD(l, w) ->
       x = OUTCOME(l, found, tip);
       if :: found != 0 -> move_on(l, ASKED(found), p, q) :: else fi;
       settle(l, p, x);
       x = 0;
       ok = 1
    :: else -> ok = 0
    fi;
    p = 0; q = 0; found = 0; tip = 0
  }
}

/* lessor push: announced, sent, settled; `ok` is 0 where the lease turned out to be over */
inline push(l, w, t, ok) {
  ok = 1;
  if
  :: intent[l] == UNKNOWN -> resolve(l, w, t, ok)
  :: else
  fi;
  if :: ok -> make_ready(l, w, t, ok) :: else fi;
  o = ref_oid[l];
  old = branch[t];
  if
  :: ok && old != l && pushes < PUSHES ->
     d_step {
       if
       :: GUARD(l, w) && intent[l] != UNKNOWN && ref_state[l] == OPEN && ref_oid[l] == o && pushes < PUSHES ->
          HOLDS(late_write_refused, LIVE(l));
          FRESH(l);
          intent[l] = UNKNOWN; want_old[l] = old; want_fence[l] = o; want_next[l] = values[l];
          z = values[l];
          pushes++; s = pushes;
          push_lease[s] = l; push_old[s] = old; push_fence[s] = o; push_next[s] = z
       :: else -> ok = GUARD(l, w)
       fi
     };
     old = 0;
     if
     :: s != 0 ->
        push_state[s] = SENT;
        if
        :: push_state[s] == TAKEN ->
           d_step {
             if
             :: GUARD(l, w) -> move_on(l, z, z, o); settle(l, z, DONE)
             :: else -> ok = 0
             fi
           }
        :: push_state[s] == REFUSED ->
           d_step {
             if
             :: GUARD(l, w) -> settle(l, z, FAILED)
             :: else -> ok = 0
             fi
           }
        :: resolve(l, w, t, ok)              /* the answer never came: ask */
        :: ok = 0                            /* killed: nobody says what became of it */
        fi;
        s = 0; z = 0
     :: else
     fi
  :: else
  fi;
  d_step { old = 0; o = 0; s = 0; z = 0 }
}

/* one atomic reference transaction: the branch and the fence reference, each compared */
inline land(s) {
  d_step {
    x = push_lease[s];
    if
    :: branch[task_of[x]] == push_old[s] && ref[x] != 0 && ref[x] == push_fence[s] ->
       y = x + 1;
       do
       :: y <= LEASES ->
          HOLDS(stale_push_refused, !(ready[y] && OVERLAP(task_of[y], task_of[x])));
          y++
       :: else -> break
       od;
       y = 0;
       branch[task_of[x]] = x; ref[x] = push_next[s]; landed[x] = push_next[s];
#ifndef RESTORE                             /* intents are lost with the store */
       HOLDS(outcome_is_true, intent[x] == UNKNOWN && want_next[x] == push_next[s]);
#endif
       push_state[s] = TAKEN
    :: else -> push_state[s] = REFUSED
    fi;
    x = 0; s = 0
  }
}

#ifdef TRIES
inline make_late(m) {
  if :: ref[m] == 0 -> ref[m] = made_late[m] :: else fi;
  made_late[m] = 0
}
#endif

/* The remote's own processes: a push that was sent lands whenever it likes, or never. */
proctype Landing() {
  byte s;
  do
  :: d_step { pushes >= 1 && push_state[1] == SENT -> s = 1 } -> land(s)
#ifdef TRIES
  :: d_step { made_late[1] != 0 -> make_late(1) }
#if LEASES >= 2
  :: d_step { made_late[2] != 0 -> make_late(2) }
#endif
#endif
#if PUSHES >= 2
  :: d_step { pushes >= 2 && push_state[2] == SENT -> s = 2 } -> land(s)
#endif
#if PUSHES >= 3
  :: d_step { pushes >= 3 && push_state[3] == SENT -> s = 3 } -> land(s)
#endif
  od
}
#endif

/* ---- who takes part ---- */

proctype Worker(byte w) {
  byte round, r, t, l, k;
  bit ok;
#ifdef REMOTE
  byte m, p, q, found, tip, o, old, s, z, shown;
  bit bad;
  bit closing[LEASES + 1];
#endif
  do
  :: round < ROUNDS ->
     round++;
     r = (w - 1) * ROUNDS + round;
     do                                     /* ask until there is something */
     :: l == 0 ->
        if
        :: t = 0
#if TASKS > 1
        :: t = 1
#endif
#if TASKS > 2
        :: t = 2
#endif
        fi;
#ifdef REMOTE
        recover_all();
#endif
        enter(t, ok);
        grant(r, t, w, l, ok);
        if
        :: skip                             /* the answer arrives */
        :: l != 0 && k == 0 -> k = 1; l = 0 /* it is lost: asked again, with the same id */
        :: l != 0 -> l = 0; break           /* it is lost, and so is the worker */
        fi;
        if
        :: l != 0 -> t = task_of[l]
        :: l == 0 && request[r] != 0 && !LIVE(request[r]) -> break
        :: else
        fi
     :: else -> break
     od;
     k = 0; ok = (l != 0);
#ifdef REMOTE
     if
     :: ok ->
        make_ready(l, w, t, ok);
#ifdef TRIES
        if
        :: !ok -> make_ready(l, w, t, ok)    /* who gave it back was cut short: claimed again, with the same id */
        :: skip
        fi;
#endif
        if
        :: !ok -> release(l, w)             /* given back: nobody got it */
        :: else
        fi
     :: else
     fi;
#else
     if :: ok -> ready[l] = 1 :: else fi;
#endif
     do
     :: ok && k < STEPS ->
        k++;
        if
        :: renew(l, w, ok)
        :: complete(l, t, w, ok);
           if
           :: ok -> told[t] = 1             /* the answer arrives */
           :: ok -> complete(l, t, w, ok);  /* it is lost: said again */
              if
              :: ok -> told[t] = 1
              :: else
              fi
           :: else
           fi;
           break
        :: release(l, w); break
#ifdef REMOTE
        :: push(l, w, t, ok)
#endif
        fi
     :: else -> break
     :: break                               /* killed */
     od;
     k = 0;
     d_step { l = 0; t = 0; k = 0; r = 0; ok = 0 }
  :: else -> break
  od
}

proctype Clock() {
  do
#ifdef SWEEP                                 /* until nobody can go on holding */
  :: now < MAXT || (last > 0 && now < expires[last]) -> now++
#else
  :: now < MAXT -> now++
  :: else -> break
#endif
  od
}

#ifdef LATE
/* the network brings an old request once more, or a child of a dead worker goes on with its lease */
proctype Late() {
  byte l, r, t;
  bit ok;
  if
  :: r = 1
  :: r = ROUNDS + 1
  fi;
  request[r] != 0 -> l = request[r];
  t = task_of[l];
  if
  :: enter(t, ok); grant(r, t, worker_of[l], l, ok)
  :: complete(l, t, worker_of[l], ok)
  :: renew(l, worker_of[l], ok)
  fi
}
#endif

#if defined(TWIN) && defined(REMOTE)
/* a second process of one holder: two `lessor push` at once */
proctype Twin() {
  byte l, t, w;
  bit ok;
  byte m, p, q, found, tip, o, old, s, z, shown;
  bit bad;
  bit closing[LEASES + 1];
  ready[1] -> l = 1; t = task_of[1]; w = worker_of[1];
  push(l, w, t, ok)
}
#endif

#ifdef PERSON
/* releases a lease by force, once, whatever its holder does */
proctype Person() {
  byte t;
  do
  :: d_step { holds[t] != 0 -> end_lease(holds[t]) }; break
  :: t < TASKS - 1 -> t++
  :: break
  od
}
#endif

#ifdef RESTORE
byte b_state[TASKS], b_holds[TASKS], b_epoch[TASKS], b_done_by[TASKS], b_request[REQUESTS + 1], b_fence;
byte b_worker_of[LEASES + 1], b_expires[LEASES + 1], b_ref_state[LEASES + 1], b_ref_oid[LEASES + 1];
byte b_intent[LEASES + 1], b_old[LEASES + 1], b_before[LEASES + 1], b_next[LEASES + 1];
bit b_scoped[LEASES + 1];

/* a backup of one moment, put in the store's place at a later one; what was granted in between is lost */
proctype Backup() {
  d_step {
    b_fence = fence;
    x = 0;
    do
    :: x < TASKS ->
       b_state[x] = state[x]; b_holds[x] = holds[x]; b_epoch[x] = epoch[x]; b_done_by[x] = done_by[x]; x++
    :: else -> break
    od;
    x = 1;
    do
    :: x <= LEASES ->
       b_worker_of[x] = worker_of[x]; b_expires[x] = expires[x]; b_scoped[x] = scoped[x];
       b_ref_state[x] = ref_state[x]; b_ref_oid[x] = ref_oid[x]; b_intent[x] = intent[x];
       b_old[x] = want_old[x]; b_before[x] = want_fence[x]; b_next[x] = want_next[x]; x++
    :: else -> break
    od;
    x = 1;
    do
    :: x <= REQUESTS -> b_request[x] = request[x]; x++
    :: else -> break
    od;
    x = 0
  };
  d_step {
    locked == 0 && last > 0 -> term++; fence = b_fence;
    x = 0;
    do
    :: x < TASKS ->
       state[x] = b_state[x]; holds[x] = b_holds[x]; done_by[x] = b_done_by[x]; told[x] = 0;
       epoch[x] = (state[x] == SUCCEEDED -> b_epoch[x] : b_epoch[x] + EPOCH_GAP); x++
    :: else -> break
    od;
    x = 1;
    do
    :: x <= LEASES ->
       worker_of[x] = b_worker_of[x]; scoped[x] = b_scoped[x];
       expires[x] = (b_expires[x] < now -> b_expires[x] : now);
       ref_state[x] = b_ref_state[x]; ref_oid[x] = b_ref_oid[x]; intent[x] = b_intent[x];
       want_old[x] = b_old[x]; want_fence[x] = b_before[x]; want_next[x] = b_next[x];
       b_worker_of[x] = 0; b_expires[x] = 0; b_scoped[x] = 0; b_ref_state[x] = 0; b_ref_oid[x] = 0;
       b_intent[x] = 0; b_old[x] = 0; b_before[x] = 0; b_next[x] = 0; x++
    :: else -> break
    od;
    x = 1;
    do
    :: x <= REQUESTS -> request[x] = b_request[x]; grants[x] = (request[x] != 0); b_request[x] = 0; x++
    :: else -> break
    od;
    x = 0;
    do
    :: x < TASKS -> b_state[x] = 0; b_holds[x] = 0; b_epoch[x] = 0; b_done_by[x] = 0; x++
    :: else -> break
    od;
    b_fence = 0; x = 0
  }
}
#endif

#ifdef SWEEP
/* lessor sweep-stale, again and again */
proctype Sweeper() {
  byte m, p, q, found, tip, shown;
  bit bad;
  do
  :: enter(0, bad); locked = 0; bad = 0; recover_all()
  od
}
/* a push that nobody knows the outcome of is settled at last */
ltl settled { [] ((intent[1] == UNKNOWN) -> <> (intent[1] != UNKNOWN)) }
#endif

#ifdef KEPT
/* a completion whose holder was told that it was taken stands for ever */
ltl kept { [] (told[0] -> [] (state[0] == SUCCEEDED)) }
#endif

init {
  atomic {
    run Worker(1);
#if WORKERS > 1
    run Worker(2);
#endif
#if WORKERS > 2
    run Worker(3);
#endif
#ifdef LATE
    run Late();
#endif
#if defined(TWIN) && defined(REMOTE)
    run Twin();
#endif
#ifdef PERSON
    run Person();
#endif
#ifdef RESTORE
    run Backup();
#endif
#ifdef SWEEP
    run Sweeper();
#endif
#ifdef REMOTE
    run Landing();
#endif
    run Clock()
  }
}
