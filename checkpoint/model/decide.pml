/*
 * Decision, abort, commit and the change of owner: the coordinator of attempt 1, the
 * metastore, object storage and the sinks; and, from any moment on, attempt 2, while
 * attempt 1 goes on as a zombie that knows nothing of it.
 *
 * Of a checkpoint only its parts matter here: TASKS of them, each an object and an ack.
 * barrier.pml has the rows. Each atomic block is one step, and one transaction where it
 * touches the rows of the metastore. README.md says what is left out. Faults to be found
 * are planted by -D macros.
 */

#ifndef PERIODIC
#define PERIODIC 2      /* checkpoints of attempt 1; attempt 2 takes one */
#endif
#ifndef SAVEPOINTS
#define SAVEPOINTS 0    /* of attempt 1 */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef CONCURRENT
#define CONCURRENT 2    /* max_concurrent */
#endif
#ifndef LOST
#define LOST 1          /* transactions whose answer is lost, applied or not; failed writes of a manifest */
#endif
#ifndef EXPIRES
#define EXPIRES 0       /* checkpoints given up by timeout */
#endif
#ifndef REPEATS
#define REPEATS 1       /* acks that arrive again */
#endif
#ifndef ROLLBACKS
#define ROLLBACKS 0     /* attempt 2 may start from an older checkpoint than the base */
#endif

#define IDS   (PERIODIC + SAVEPOINTS + ATTEMPTS - 1 + LOST)
#define EVERY 3         /* both tasks */
#define BIT(i) (1 << (i))

mtype = { none, pending, completed, aborted };           /* a row's status */

/* The metastore: the job's row, the rows of checkpoints. */
byte attempt = 1;
byte base;
byte lastID;
mtype status[IDS + 1] = none;
byte owner[IDS + 1];    /* the attempt that began it */
bool savepoint[IDS + 1];
bool commitsOpen[IDS + 1];

/* Object storage. */
byte manifest[IDS + 1]; /* the attempt that wrote it; 0: none */
byte object[IDS + 1];   /* by task */

/* Tasks: acks sent. The network may deliver them at any time, and again. */
byte acked[IDS + 1];

/* Coordinators, by attempt. Of sets, bit i is checkpoint i; savepoints are in none. */
bool alive[3];
bool restored[3];       /* what the base left uncommitted is committed */
byte inDoubt[3];        /* set: a decision was sent, its outcome is not known yet */
byte toCommit[3];       /* set: completed, commits not closed */
byte stray[3];          /* set: rows that their coordinator does not know */
byte newest[3];         /* newest known to be completed */
byte pendings[3];       /* how many are pending */

/* Where sinks write: everything up to this barrier is visible. */
byte visible;

byte periodics[3];
byte savepoints = SAVEPOINTS;
byte lost = LOST;
byte expires = EXPIRES;
byte repeats = REPEATS;
byte rollbacks = ROLLBACKS;

/* stale: the row names a newer attempt; this one stops quietly. */
#ifdef FAULT_NO_FENCE
#define STALE(a) false
#else
#define STALE(a) (attempt != a)
#endif

/* A task's part of a checkpoint: its object, then its ack. It may come at any time, long
   after the checkpoint was given up or the attempt replaced. */
proctype Part(byte id; byte task) {
  atomic { object[id] = object[id] | BIT(task); acked[id] = acked[id] | BIT(task) }
}

/* becomeCompleted is the decision moment. */
inline becomeCompleted(me, id) {
  assert(owner[id] == attempt && me == attempt);            /* I8: none of a stale attempt */
  assert(acked[id] == EVERY && object[id] == EVERY);        /* every ack, durable (I7) */
  assert(manifest[id] == me);                               /* written before (I8) */
  assert(status[id] == pending);
  status[id] = completed;
  if
  :: savepoint[id]
  :: else ->
     assert(id > base);                                     /* the base only goes forward */
     base = id;
     commitsOpen[id] = true
  fi
}

/* makeVisible is a sink's commit of every segment up to barrier upTo. The target knows
   what it has. */
inline makeVisible(upTo) {
  assert(status[upTo] == completed && !savepoint[upTo]);    /* I10: after the decision */
  if
  :: upTo > visible ->
     x = visible + 1;
     do
     :: x < upTo ->
        assert(!(status[x] == completed && !savepoint[x])); /* no barrier is overtaken */
        x++
     :: else -> break
     od;
     x = 0;
     visible = upTo
  :: else
  fi
}

/* kept: nothing of a completed checkpoint is missing (I9). */
inline kept(cp) {
  assert(status[cp] != completed || (object[cp] == EVERY && manifest[cp] == owner[cp]))
}

/* restoreSinks: restored sinks commit all that the base left uncommitted, in order, and the rows
   are closed. */
inline restoreSinks(upTo) {
  if :: upTo > visible -> visible = upTo :: else fi;
  x = 1;
  do
  :: x <= upTo -> commitsOpen[x] = false; x++
  :: else -> break
  od;
  x = 0
}

#define OLDER(set, id) ((set) & (BIT(id) - 1))
#define SUPERSEDED(id) (!save && newest[me] > id)

#ifdef FAULT_ACKS_COUNTED
#define WHOLE (acks >= 2)
#else
#define WHOLE (got == EVERY)
#endif

/* One decision at a time, its answer included: no checkpoint is decided while another's
   decision is in flight or in doubt, be it older or newer. */
#if defined(FAULT_NO_TURN)
#define TURN true
#elif defined(FAULT_OLDER_BESIDE_NEWER)
#define TURN (save || !OLDER(inDoubt[me], id))
#else
#define TURN (save || !(inDoubt[me] & ~BIT(id)))
#endif

#ifdef FAULT_COMMIT_OVERTAKES
#define COMMIT_TURN true
#else
#define COMMIT_TURN (!OLDER(toCommit[me], id))
#endif

/* The life of one checkpoint, in its coordinator. */
proctype Checkpoint(byte me; byte id; bool save) {
  byte got, acks, tries, x;

collect:
  if
  :: !alive[me] -> goto gone
  :: atomic { (acked[id] & 1) && !(got & 1) -> got = got | 1; acks++ }; goto collect
  :: atomic { (acked[id] & 2) && !(got & 2) -> got = got | 2; acks++ }; goto collect
  :: atomic { repeats > 0 && (acked[id] & got) -> repeats--; acks++ }; goto collect
  :: WHOLE
  :: atomic { expires > 0 -> expires-- }; goto abort
  :: SUPERSEDED(id) -> goto abort
  fi;

  /* The manifest: created if absent. */
  if
  :: !alive[me] -> goto gone
  :: atomic { alive[me] && manifest[id] == 0 -> manifest[id] = me }
  :: atomic { lost > 0 -> lost-- }; goto abort
  fi;

decide:
  if
  :: !alive[me] -> goto gone
  :: SUPERSEDED(id) -> goto abort
  :: atomic { alive[me] && !SUPERSEDED(id) && TURN ->
       if :: save :: else -> inDoubt[me] = inDoubt[me] | BIT(id) fi }
  fi;
again:
#ifdef FAULT_FENCE_EXISTS
  /* The fence is looked at first and decides later. */
  if
  :: STALE(me) -> alive[me] = false; goto gone
  :: else
  fi;
  atomic { becomeCompleted(me, id) }; goto complete;
#else
  atomic {
    if
    :: STALE(me) -> alive[me] = false; goto gone
    :: else ->
       if
       :: becomeCompleted(me, id); goto complete
       :: lost > 0 -> lost--; becomeCompleted(me, id)   /* done, and nobody hears */
       :: lost > 0 -> lost--                            /* not done, and nobody hears */
       fi
    fi
  };
#endif

  /* The outcome is unknown: it is read back under the row's lock. */
#ifdef FAULT_GUESSED_NOT_DONE
  goto objects;
#endif
#ifdef FAULT_GUESSED_DONE
  goto complete;
#endif
  atomic {
    if
    :: STALE(me) -> alive[me] = false; goto gone
    :: !STALE(me) && status[id] == completed -> goto complete
    :: !STALE(me) && status[id] == pending && tries == 0 -> tries++; goto again
    :: !STALE(me) && status[id] == pending && tries > 0 -> goto abort
    fi
  };

abort:
  atomic {
    if
    :: STALE(me) -> alive[me] = false; goto gone
    :: !STALE(me) && status[id] == completed -> goto complete /* it was decided after all */
    :: !STALE(me) && status[id] != completed -> status[id] = aborted;
       if
       :: true
       :: lost > 0 -> lost--; goto abort                 /* nobody hears: once more */
       fi
    fi
  };
objects:
  atomic {
    inDoubt[me] = inDoubt[me] & ~BIT(id);
    if :: save :: else -> pendings[me]-- fi;
    object[id] = 0;
    if :: manifest[id] == me -> manifest[id] = 0 :: else fi;
    kept(id)
  };
  /* A late ack releases what its task wrote, while the attempt lives. */
end:
  do
  :: atomic { alive[me] && object[id] != 0 -> object[id] = 0 }
  od;

complete:
  atomic {
    kept(id);
    inDoubt[me] = inDoubt[me] & ~BIT(id);
    if
    :: save -> goto gone                                 /* it commits nothing */
    :: else -> pendings[me]--; toCommit[me] = toCommit[me] | BIT(id);
       if :: newest[me] < id -> newest[me] = id :: else fi
    fi
  };
  if
  :: !alive[me] -> goto gone
  :: atomic { alive[me] && restored[me] && COMMIT_TURN } /* notified: from here on a zombie's sink commits too */
  fi;
  atomic { makeVisible(id) };
  atomic {
    if
    :: STALE(me) -> alive[me] = false
    :: else -> commitsOpen[id] = false; toCommit[me] = toCommit[me] & ~BIT(id)
    fi
  };
gone:
  skip
}

/* insert gives out an id. Where its answer is lost the row is a stray; the next begin
   finds it, one below its own id. */
inline insert(save) {
  lastID++;
  assert(status[lastID] == none);                        /* I1 */
  status[lastID] = pending; owner[lastID] = me; savepoint[lastID] = save
}

inline begin(save) {
  insert(save);
  if
  :: !save -> periodics[me]--; pendings[me]++
  :: save -> savepoints--
  fi;
  run Part(lastID, 0); run Part(lastID, 1); run Checkpoint(me, lastID, save)
}

/* giveUpStrays ends the rows of old attempts and of begins that nobody heard of. */
inline giveUpStrays(condition) {
  x = 1;
  do
  :: x <= lastID ->
     if
     :: status[x] == pending && (condition) ->
        status[x] = aborted;
        object[x] = 0; manifest[x] = 0
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0
}

proctype Coordinator(byte me) {
  byte x, start;

  /* What a start does: one transaction that takes the row and returns its base. */
  if
  :: me == 1 -> alive[1] = true; restored[1] = true
  :: else ->
     atomic {
       attempt = me; alive[me] = true;
       start = base;
       if
       :: rollbacks > 0 && base > 1 ->
          x = 1;
          do
          :: x < base && status[x] == completed -> break
          :: x < base - 1 -> x++
          :: x == base - 1 -> x = 0; break
          od;
          if
          :: x > 0 && !commitsOpen[base] -> rollbacks--; base = x; start = x   /* its commits are closed */
          :: else
          fi;
          x = 0
       :: true
       fi;
#ifdef FAULT_LATEST_ROW
       start = lastID;
#endif
       assert(start == base);
       assert(start == 0 || status[start] == completed);
       if :: start > 0 -> kept(start) :: else fi
     };
     /* Rows left pending by others, and their objects. */
     atomic { giveUpStrays(owner[x] != me) };
     /* The restored sinks commit up to the base; then those rows are closed. */
     atomic {
       if
       :: start > 0 && commitsOpen[start] -> restoreSinks(start)
       :: else
       fi;
       restored[me] = true
     }
  fi;

end:
  do
  :: atomic { alive[me] && periodics[me] > 0 && pendings[me] < CONCURRENT ->
       if
       :: STALE(me) -> alive[me] = false
       :: else ->
          giveUpStrays(stray[me] & BIT(x));
          stray[me] = 0;
          if
          :: begin(false)
          :: lost > 0 -> lost--; insert(false); stray[me] = stray[me] | BIT(lastID)
          fi
       fi }
  :: atomic { alive[me] && me == 1 && savepoints > 0 ->
       if
       :: STALE(me) -> alive[me] = false
       :: else -> begin(true)
       fi }
  od
}

init {
  byte x;
  atomic {
    periodics[1] = PERIODIC; periodics[2] = 1;
    run Coordinator(1);
    if :: ATTEMPTS == 2 -> run Coordinator(2) :: else fi
  }
  /* Every loop above uses up a budget, so each run comes to rest. */
  timeout;
  atomic {
    assert(alive[attempt]);
    x = 1;
    do
    :: x <= lastID ->
       kept(x);
       assert(status[x] != pending || (stray[attempt] & BIT(x)));
       assert(!(status[x] == completed && !savepoint[x]) || (visible >= x && !commitsOpen[x]));
       /* An abort leaks nothing; what a zombie writes late, the next start finds. */
       assert(!(status[x] == aborted && owner[x] == attempt) || (object[x] == 0 && manifest[x] == 0) || (stray[attempt] & BIT(x)));
       x++
    :: else -> break
    od;
#if LOST + EXPIRES == 0
    assert(base > 0)                     /* where nothing fails, something is decided */
#endif
  }
}
