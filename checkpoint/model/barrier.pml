/*
 * Rows, barriers, alignment, snapshot, decision, commit and recovery, end to end.
 *
 *   source 0 ──┬─▶ counter 0 ──┐
 *              ╳               ├─▶ sink ─▶ what readers see
 *   source 1 ──┴─▶ counter 1 ──┘
 *
 * Each source has two rows; row r of source s is bit 2s+r of a mask and goes to
 * counter (s+r) mod 2. A counter's state is the mask of the rows it has counted. Each
 * process has one place to stand: every step is atomic and changes globals only, so a
 * crash at any moment is one more step.
 *
 * README.md says what is left out. Faults to be found are planted by -D macros.
 */

#ifndef PERIODIC
#define PERIODIC 2      /* checkpoints begun beside the last one */
#endif
#ifndef SAVEPOINTS
#define SAVEPOINTS 0
#endif
#ifndef CRASHES
#define CRASHES 1       /* attempts that die */
#endif
#ifndef EXPIRES
#define EXPIRES 1       /* checkpoints given up by timeout */
#endif
#ifndef CONCURRENT
#define CONCURRENT 2    /* max_concurrent */
#endif

#define IDS  (PERIODIC + SAVEPOINTS + CRASHES + EXPIRES + 1)
#define ROOM 4          /* of a channel */
#define ALL  15         /* every row */

#define BIT(i)          (1 << (i))
#define AT(id, i)       ((id) * 2 + (i))

mtype = { row, barrier, none, pending, completed, aborted };

/* Sources. */
byte pos[2];            /* rows read */
byte partial[2];        /* rows read and not yet sent: the local aggregate */
byte sent[2];           /* newest checkpoint whose barrier was sent */
byte trigger[2];        /* newest trigger; an older one that was not taken is lost */

/* Channels: source s to counter c is 2s+c; counter c to the sink is c. */
chan toCounter[4] = [ROOM] of { mtype, byte };
chan toSink[2] = [ROOM] of { mtype, byte };

/* Counters 0 and 1, the sink is 2. Aligners: checkpoint in hand, channels that have its
   barrier, newest that aligned. Under at-least-once, channels per checkpoint. */
byte counted[2];
byte current[3];
byte arrived[3];
byte last[3];
byte seen[3 * (IDS + 1)];

/* The sink: rows since the last barrier, the rows of each segment, the segments that it
   holds, and the decision it knows of. A dead attempt's sink may go on as a zombie. */
byte open;
byte segment[IDS + 1];
byte held;
byte told;
byte zombieHeld;
byte zombieTold;

/* Where the sink writes. */
byte visible;           /* rows */
byte marker;            /* segments, by id */
byte newest;            /* segment made visible */

/* Snapshots by checkpoint, and the acks. */
byte snapPos[2 * (IDS + 1)];
byte snapCounted[2 * (IDS + 1)];
byte snapHeld[IDS + 1];
byte acks[IDS + 1];     /* sources 0, 1; counters 2, 3; sink 4 */

/* The metastore. */
mtype status[IDS + 1] = none;
bool savepoint[IDS + 1];
byte base;
byte lastID;

byte periodics = PERIODIC;
byte savepoints = SAVEPOINTS;
byte crashes = CRASHES;
byte expires = EXPIRES;
byte final;             /* the last checkpoint; 0: not begun in this attempt */
bool finished;

byte i, n, id;          /* for steps; zero between them */
byte before;

#define OFROW(s, r)     BIT(2 * (s) + (r))
#define COUNTER(s, r)   (((s) + (r)) % 2)

/* before becomes the rows that lie before checkpoint c's positions. */
inline rowsBefore(rc) {
  before = (BIT(snapPos[AT(rc, 0)]) - 1) | ((BIT(snapPos[AT(rc, 1)]) - 1) << 2)
}

/* snapshot keeps what a task put into checkpoint sn, and acknowledges. What comes late
   for a checkpoint that was given up is dropped. */
inline snapshot(sn, task, place, what) {
  if
  :: status[sn] == pending ->
     assert(!(acks[sn] & BIT(task)));    /* I7: once per task and checkpoint */
     acks[sn] = acks[sn] | BIT(task);
     place = what
  :: else
  fi
}

/* forget clears a checkpoint that nothing will read again: fewer states. */
inline forget(fg) {
  acks[fg] = 0; snapPos[AT(fg, 0)] = 0; snapPos[AT(fg, 1)] = 0;
  snapCounted[AT(fg, 0)] = 0; snapCounted[AT(fg, 1)] = 0; snapHeld[fg] = 0
}

/* ---- sources ---- */

inline flush(fs) {
  if
  :: partial[fs] & OFROW(fs, 0) -> toCounter[2 * (fs) + COUNTER(fs, 0)]!row(OFROW(fs, 0))
  :: else
  fi;
  if
  :: partial[fs] & OFROW(fs, 1) -> toCounter[2 * (fs) + COUNTER(fs, 1)]!row(OFROW(fs, 1))
  :: else
  fi;
  partial[fs] = 0
}

#define SPACE(s) (len(toCounter[2 * (s)]) < ROOM - 1 && len(toCounter[2 * (s) + 1]) < ROOM - 1)

proctype Source(byte s) {
end:
  do
  :: atomic { pos[s] < 2 && SPACE(s) ->
       partial[s] = partial[s] | OFROW(s, pos[s]);
       pos[s]++;
       if
       :: flush(s)
       :: pos[s] < 2                     /* it stays in the local aggregate for now */
       fi }
  :: atomic { trigger[s] > sent[s] && SPACE(s) ->
       sent[s] = trigger[s];
#ifdef FAULT_BARRIER_BEFORE_FLUSH
       toCounter[2 * s]!barrier(sent[s]);
       toCounter[2 * s + 1]!barrier(sent[s]);
       flush(s);
#else
       flush(s);                         /* I11 */
       toCounter[2 * s]!barrier(sent[s]);
       toCounter[2 * s + 1]!barrier(sent[s]);
#endif
       snapshot(sent[s], s, snapPos[AT(sent[s], s)], pos[s]) }
  od
}

/* ---- aligners ---- */

#ifdef AT_LEAST_ONCE
#define HELD(t, ch) false
#else
#ifdef FAULT_READS_HELD
#define HELD(t, ch) false
#else
#define HELD(t, ch) (current[t] > last[t] && (arrived[t] & BIT(ch)))
#endif
#endif

/* arrive takes the barrier c of channel ch; n becomes 1 when c has aligned. */
inline arrive(to, via, cp) {
  n = 0;
  if
  :: cp <= last[to]                        /* I4 */
#ifdef AT_LEAST_ONCE
  :: cp > last[to] ->
     seen[(to) * (IDS + 1) + cp] = seen[(to) * (IDS + 1) + cp] | BIT(via);
     if
     :: seen[(to) * (IDS + 1) + cp] == 3 -> n = 1; last[to] = cp; seen[(to) * (IDS + 1) + cp] = 0
     :: else
     fi
#else
  :: cp > last[to] && cp < current[to]       /* I4 */
  :: cp > last[to] && cp >= current[to] ->
     if
     :: cp > current[to] -> current[to] = cp; arrived[to] = 0   /* I5 */
     :: else
     fi;
     arrived[to] = arrived[to] | BIT(via);
     if
#ifdef FAULT_NOT_ALIGNED
     :: true -> n = 1; last[to] = cp; current[to] = 0; arrived[to] = 0
#else
     :: arrived[to] == 3 -> n = 1; last[to] = cp; current[to] = 0; arrived[to] = 0
     :: else
#endif
     fi
#endif
  fi
}

/* ---- counters ---- */

inline count(ctr, bits) {
#ifndef AT_LEAST_ONCE
  assert(!(counted[ctr] & bits));          /* each row once */
#endif
  if
  :: counted[ctr] & bits                   /* again: the sum is too large, the row is not new */
  :: else -> toSink[ctr]!row(bits)
  fi;
  counted[ctr] = counted[ctr] | bits
}

#define FROM(s, c) (nempty(toCounter[2 * (s) + c]) && !HELD(c, s) && len(toSink[c]) < ROOM)

inline take(src, me) {
  if
  :: toCounter[2 * (src) + me]?row(id) -> count(me, id)
  :: toCounter[2 * (src) + me]?barrier(id) ->
     arrive(me, src, id);
     if
     :: n == 1 ->
        toSink[me]!barrier(id);
        snapshot(id, 2 + me, snapCounted[AT(id, me)], counted[me])
     :: else
     fi
  fi;
  id = 0; n = 0
}

proctype Counter(byte c) {
end:
  do
  :: atomic { FROM(0, c) -> take(0, c) }
  :: atomic { FROM(1, c) -> take(1, c) }
  od
}

/* ---- sink ---- */

/* commit makes segment c visible, once, whoever asks. */
inline commit(sg) {
  if
#ifndef FAULT_NO_MARKER
  :: marker & BIT(sg)                     /* a marker row says so */
#endif
  :: else ->
#ifndef AT_LEAST_ONCE
     assert(!(visible & segment[sg]));   /* I10: no row twice */
#endif
     visible = visible | segment[sg];
     marker = marker | BIT(sg);
#ifndef FAULT_NO_MARKER
     assert(sg > newest);                 /* in barrier order */
#endif
     newest = sg;
#ifndef AT_LEAST_ONCE
     rowsBefore(base);
     assert((visible & ~before & ALL) == 0); /* never more than is decided */
     before = 0
#endif
  fi
}

/* first makes i the oldest segment in set. */
#ifdef FAULT_NEWEST_SEGMENT_FIRST
inline first(set) { i = IDS; do :: set & BIT(i) -> break :: else -> i-- od }
#else
inline first(set) { i = 1; do :: set & BIT(i) -> break :: else -> i++ od }
#endif

/* UPTO is the set of ids up to c. */
#define UPTO(c) (BIT((c) + 1) - 1)

inline takeSink(sc) {
  if
  :: toSink[sc]?row(id) -> open = open | id
  :: toSink[sc]?barrier(id) ->
     arrive(2, sc, id);
     if
     :: n == 1 ->
        segment[id] = open;
        open = 0;
        held = held | BIT(id);
#ifdef FAULT_COMMIT_BEFORE_DECISION
        told = id;
#endif
        snapshot(id, 4, snapHeld[id], held)
     :: else
     fi
  fi;
  id = 0; n = 0
}

proctype Sink() {
end:
  do
  :: atomic { nempty(toSink[0]) && !HELD(2, 0) -> takeSink(0) }
  :: atomic { nempty(toSink[1]) && !HELD(2, 1) -> takeSink(1) }
  :: atomic { held & UPTO(told) ->
       first(held & UPTO(told)); commit(i); held = held & ~BIT(i); i = 0 }
  :: atomic { zombieHeld & UPTO(zombieTold) ->
       first(zombieHeld & UPTO(zombieTold)); commit(i); zombieHeld = zombieHeld & ~BIT(i); i = 0;
       if :: zombieHeld == 0 -> zombieTold = 0 :: else fi }
  od
}

/* ---- coordinator and metastore; decide.pml has their details ---- */

/* n becomes how many checkpoints, savepoints aside, are pending. */
inline countPending() {
  n = 0; i = 1;
  do
  :: i <= lastID -> n = n + (status[i] == pending && !savepoint[i]); i++
  :: else -> break
  od;
  i = 0
}

inline begin(sp) {
  lastID++;
  status[lastID] = pending;
  savepoint[lastID] = sp;
  trigger[0] = lastID;
  trigger[1] = lastID
}

/* check asserts what a complete checkpoint must be. */
inline check(ck) {
  assert(acks[ck] == 31);
  rowsBefore(ck);
#ifdef AT_LEAST_ONCE
  assert((before & ~(snapCounted[AT(ck, 0)] | snapCounted[AT(ck, 1)])) == 0); /* no row lost */
#else
  assert((snapCounted[AT(ck, 0)] | snapCounted[AT(ck, 1)]) == before);       /* each row once */
  assert((snapCounted[AT(ck, 0)] & snapCounted[AT(ck, 1)]) == 0);
#endif
  id = visible; i = 1;
  do
  :: i <= ck -> id = id | (((snapHeld[ck] >> i) & 1) * segment[i]); i++
  :: else -> break
  od;
  assert((before & ~id) == 0);           /* and its output is there or in its segments */
#ifndef AT_LEAST_ONCE
  assert(ck < base || id == before);     /* a savepoint may end after a newer checkpoint */
#endif
  id = 0; i = 0; before = 0
}

inline supersede(by) {
  i = 1;
  do
  :: i < by ->
     if
     :: status[i] == pending && !savepoint[i] ->
        status[i] = aborted; forget(i);
#ifdef FAULT_SUPERSEDED_SEGMENT_DROPPED
        held = held & ~BIT(i);
#endif
     :: i == base -> forget(i)
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

inline decide(dc) {
  check(dc);
  status[dc] = completed;
  if
#ifdef FAULT_SAVEPOINT_COMMITS
  :: savepoint[dc] -> told = dc
#else
  :: savepoint[dc] -> forget(dc)         /* moves nothing, commits nothing */
#endif
  :: else ->
     assert(dc > base);
     supersede(dc);
     base = dc;
     told = dc
  fi
}

#define READY(c) (status[c] == pending && acks[c] == 31)

/* crash: everything of the attempt is gone but what is in flight to the target; the next
   one starts from the base. */
inline crash() {
  zombieHeld = held & UPTO(told);
  if :: zombieHeld != 0 -> zombieTold = told :: else -> zombieTold = 0 fi;
  i = 1;
  do
  :: i <= lastID ->
     if :: status[i] == pending -> status[i] = aborted; forget(i) :: else fi;
     i++
  :: else -> break
  od;
#ifdef FAULT_LATEST_ROW
  id = lastID;
#else
  id = base;
#endif
  i = 0;
  do
  :: i < 4 -> do :: len(toCounter[i]) > 0 -> toCounter[i]?_,_ :: len(toCounter[i]) == 0 -> break od; i++
  :: else -> break
  od;
  do :: len(toSink[0]) > 0 -> toSink[0]?_,_ :: len(toSink[0]) == 0 -> break od;
  do :: len(toSink[1]) > 0 -> toSink[1]?_,_ :: len(toSink[1]) == 0 -> break od;
  i = 0;
  do
  :: i < 2 ->
     pos[i] = snapPos[AT(id, i)]; partial[i] = 0; sent[i] = lastID; trigger[i] = lastID;
     counted[i] = snapCounted[AT(id, i)];
     i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < 3 ->
     current[i] = 0; arrived[i] = 0; last[i] = 0;
     i++
  :: else -> break
  od;
#ifdef AT_LEAST_ONCE
  i = 0;
  do
  :: i < 3 * (IDS + 1) -> seen[i] = 0; i++
  :: else -> break
  od;
#endif
  open = 0; held = snapHeld[id]; told = id; final = 0;
  i = 0; id = 0
}

proctype Coordinator() {
  do
  :: atomic { !finished && periodics > 0 && final == 0 ->
       countPending();
       if
       :: n < CONCURRENT -> begin(false)
       :: else
       fi;
       periodics--; n = 0 }
  :: atomic { !finished && savepoints > 0 && final == 0 -> savepoints--; begin(true) }
  :: atomic { !finished && final == 0 && pos[0] == 2 && pos[1] == 2 -> /* every source has reported its end */
       periodics = 0; savepoints = 0;
       begin(false); final = lastID }
  :: atomic { expires > 0 && lastID > 0 && status[lastID] == pending ->
       expires--; status[lastID] = aborted; forget(lastID);
       if :: final == lastID -> final = 0 :: else fi }
  :: atomic { expires > 0 && lastID > 1 && status[lastID - 1] == pending ->
       expires--; status[lastID - 1] = aborted; forget(lastID - 1) }
  :: atomic { lastID > 0 && READY(lastID) -> decide(lastID) }
  :: atomic { lastID > 1 && READY(lastID - 1) -> decide(lastID - 1) }
  :: atomic { lastID > 2 && READY(lastID - 2) -> decide(lastID - 2) }
  :: atomic { !finished && crashes > 0 -> crashes--; crash() }
  :: atomic { !finished && final != 0 && status[final] == completed && (held & UPTO(final)) == 0 ->
       finished = true }
  :: finished -> break
  od
}

init {
  atomic {
    run Source(0); run Source(1); run Counter(0); run Counter(1); run Sink(); run Coordinator()
  }
  /* Every loop above uses up a budget, so each run comes to rest: then the job has
     finished, and readers see every row. */
  timeout;
  assert(finished && visible == ALL)
}
