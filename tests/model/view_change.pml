/* How a group agrees on its views and on the state each of them starts from (docs/adr/0008, docs/adr/0062): N devices
 * over a log that has one order. Appending a record and folding it is one step; devices act on it whenever they get to
 * it, so readers that lag are covered. A state is its stamp (lineage, step) and its history: which view applied each
 * step, as digits to base BASE. Two states are the same when their histories are.
 *
 * Checked: what is committed is part of the history of every view's target and never goes back; equal stamps mean equal
 * histories; no view below LEAST trains. tests/model/check.sh runs it; every rule has a mutation that must fail.
 *   NO_FENCE    SAVED counts although its view is over
 *   NO_GUARD    a view may start from less than what is committed
 *   NO_RESTAMP  an adopted state keeps its old lineage
 *   NO_LINEAGE  SAVED counts although its state was neither applied nor adopted in its view
 *   NO_LEAST    a view may be smaller than LEAST
 *
 * The fold decides who of those that are ready is in a view, and from whose state it starts, by rules that no safety
 * depends on: places, cool-down, accusations, pairs that cannot connect, READYs to be repeated. These options replace
 * them by free choice. Whatever such rules come to be, the result is one of the choices.
 *   LEAVES_OUT  a view may be closed without some who are ready
 *   HELLO_OWN   a HELLO voids the READY of its own device only
 *   ANY_TARGET  a view may start from any READY's state that is not older than what is committed
 * FIRST is how many devices the first view has: the others join later. NO_JOINER claims that none of those saves what
 * gets committed. That must fail, too, or nothing would have been shown of them.
 * Simulated, it prints every record and what the fold comes to with it: tests/simulation/sync_model_test.cpp folds the
 * same records with the product's fold and compares. SIMULATION adds records that come too late or from a session that
 * is over, and calm times, without which few rounds would ever end. DISKS says how many disks may be lost.
 */
#ifndef N
#define N 3
#endif
#ifndef QUORUM
#define QUORUM 2
#endif
#ifndef LEAST
#define LEAST 2 /* devices of a view; a fixed size: N. A view below QUORUM trains and commits nothing */
#endif
#ifndef FIRST
#define FIRST N
#endif
#ifndef VIEWS
#define VIEWS 3
#endif
#ifndef STEPS
#define STEPS 1
#endif
#ifndef CRASHES
#define CRASHES 255 /* 255: no limit */
#endif
#ifndef DISKS
#define DISKS 0
#endif
#ifndef BASE
#define BASE 5 /* more than VIEWS */
#endif
#ifndef HISTORY
#define HISTORY byte /* holds BASE to the power of STEPS */
#endif
#define BIT(d) (1 << (d))
#define SIZE(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1)) /* of a bit set; N <= 4 */
#define NEWER(l1, s1, l2, s2) ((l1) > (l2) || ((l1) == (l2) && (s1) > (s2)))
#define PLACE(l, s) ((l) * (STEPS + 1) + (s)) /* of a stamp, in the order of stamps */
#define PLACES ((VIEWS + 1) * (STEPS + 1))

#ifdef SIMULATION
bool calm = true;
#define WORTH_SAYING(d) \
  (!calm || (NEWER(disk_lineage[d], disk_step[d], committed_lineage, committed_step) && \
             !(saved[PLACE(disk_lineage[d], disk_step[d])] & BIT(d))))
#else
#define calm false
#define WORTH_SAYING(d) true
#endif

#ifdef HELLO_OWN /* nobody asks for READYs again, so they may be repeated at any time */
#define READY_IS_SAID(d) ((ready & BIT(d)) && ready_lineage[d] == lineage[d] && ready_step[d] == step[d])
#else
#define READY_IS_SAID(d) (ready & BIT(d))
#endif
#ifdef NO_GUARD
#define SERVES(d) true
#else
#define SERVES(d) (!NEWER(committed_lineage, committed_step, ready_lineage[d], ready_step[d]))
#endif

/* what the log says, folded */
byte view = 0;
byte members[VIEWS + 1];
byte ready = 0; /* bit set: READYs that count: said after the last HELLO of anybody; HELLO_OWN: of the same device */
byte ready_lineage[N]; byte ready_step[N]; HISTORY ready_history[N];
byte target_step; HISTORY target_history;
#ifdef NO_RESTAMP
byte target_lineage;
#else
hidden byte target_lineage; /* nobody goes by it: printed only */
#endif
hidden byte holders;
byte committed_lineage = 0; byte committed_step = 0; HISTORY committed_history = 0;
byte saved[PLACES]; /* bit sets: who has saved a state of that stamp in this view */

/* who has offered its gradient */
byte offered[PLACES];

/* devices */
bool up[N]; bool inside[N]; bool given_up[N];
byte in_view[N];
byte lineage[N]; byte step[N]; HISTORY history[N];
byte disk_lineage[N]; byte disk_step[N]; HISTORY disk_history[N];
#if CRASHES < 255
byte crashes = 0;
#endif
#if DISKS > 0
byte disks_lost = 0;
#endif

hidden byte i, j, fit; hidden HISTORY prefix;
hidden byte best_lineage, best_step; hidden HISTORY best_history;
hidden byte any, holder, counts;
hidden byte committed_by; /* who is known to have the committed state: for what is printed, and NO_JOINER */

/* the committed history is how `h` of `s` steps begins */
inline check_extends(h, s) {
  prefix = h; i = s;
  do
  :: i > committed_step -> prefix = prefix / BASE; i--
  :: else -> break
  od;
  assert(s >= committed_step && prefix == committed_history)
}

#define SAME(a, b) (step[a] == 0 || lineage[a] != lineage[b] || step[a] != step[b] || history[a] == history[b])

/* The fold: one inline for each record. `present`: it is of its device's last session, not of the one before.
 * Each says in `counts` whether the record changed anything. */

inline conclude() {
  printf("so %d view %d members %d target %d %d %d holders %d committed %d %d %d ready %d\n", counts, view,
         members[view], target_lineage, target_step, target_history, holders, committed_lineage, committed_step,
         committed_history, ready)
}

inline forget_ready(d) { ready_lineage[d] = 0; ready_step[d] = 0; ready_history[d] = 0 }

/* A new session: what the old one said is void, and nobody's READY counts until it is said again. */
inline fold_hello(d) {
  counts = true;
#ifdef HELLO_OWN
  ready = ready & ~BIT(d); forget_ready(d);
#else
  ready = 0;
  for (i : 0 .. (N - 1)) { forget_ready(i) }
#endif
  printf("HELLO %d\n", d); conclude()
}

inline fold_ready(d, present, v, l, s, h) {
  counts = (present && (v) == view + 1);
  if
  :: counts -> ready = ready | BIT(d); ready_lineage[d] = l; ready_step[d] = s; ready_history[d] = h
  :: else
  fi;
  printf("READY %d %d %d %d %d %d\n", d, present, v, l, s, h); conclude()
}

inline fold_saved(d, present, v, l, s, h) {
  counts = (present && NEWER(l, s, committed_lineage, committed_step) && !(saved[PLACE(l, s)] & BIT(d))
#ifndef NO_FENCE
            && (v) == view
#endif
#if !defined(NO_LINEAGE) && !defined(NO_RESTAMP)
            && (l) == (v)
#endif
  );
  if
  :: counts ->
     saved[PLACE(l, s)] = saved[PLACE(l, s)] | BIT(d);
     if
     :: SIZE(saved[PLACE(l, s)]) >= QUORUM ->
        check_extends(h, s);
        committed_lineage = l; committed_step = s; committed_history = h; committed_by = saved[PLACE(l, s)];
#ifdef NO_JOINER
        assert(committed_by < BIT(FIRST));
#endif
        for (i : 0 .. PLACE(l, s)) { saved[i] = 0 }
     :: else
     fi
  :: else /* one more disk with the committed state: whom the group waits for if all others have lost it */
#ifdef SIMULATION
     counts = (present && (v) == view && (l) == (v) && (l) == committed_lineage && (s) == committed_step &&
               (h) == committed_history && !(committed_by & BIT(d)));
     if
     :: counts -> committed_by = committed_by | BIT(d)
     :: else
     fi
#endif
  fi;
  printf("SAVED %d %d %d %d %d %d\n", d, present, v, l, s, h); conclude()
}

/* the best of the READYs that count for this view, or any of them, and who holds it */
inline find_target() {
  any = false; i = 0; holder = 0;
  do
  :: i < N ->
     if
     :: (fit & BIT(i)) && SERVES(i) && (!any || NEWER(ready_lineage[i], ready_step[i], best_lineage, best_step)) ->
        best_lineage = ready_lineage[i]; best_step = ready_step[i]; best_history = ready_history[i]; any = true;
        holder = BIT(i)
     :: (fit & BIT(i)) && any && ready_lineage[i] == best_lineage && ready_step[i] == best_step ->
        holder = holder | BIT(i)
#ifdef ANY_TARGET
     :: true /* passed over; if all are, it is as if this CLOSE had never been written */
#else
     :: else
#endif
     fi;
     i++
  :: else -> break
  od
}

inline fold_close(d, present, v) {
  fit = ready;
#ifdef LEAVES_OUT
  for (i : 0 .. (N - 1)) {
    if
    :: i != (d) -> fit = fit & ~BIT(i)
    :: true
    fi
  }
#endif
  counts = (present && (v) == view + 1 && (fit & BIT(d))
#ifndef NO_LEAST
            && SIZE(fit) >= LEAST
#endif
  );
  if
  :: counts -> find_target(); counts = any
  :: else
  fi;
  printf("CLOSE %d %d %d\n", d, present, v);
  if
  :: counts ->
     view++; members[view] = fit; ready = 0;
     target_lineage = best_lineage; target_step = best_step; target_history = best_history; holders = holder;
     for (i : 0 .. (N - 1)) { forget_ready(i) }
     for (i : 0 .. (PLACES - 1)) { saved[i] = 0 }
  :: else
  fi;
  conclude();
  if
  :: counts -> check_extends(best_history, best_step)
  :: else
  fi;
  best_lineage = 0; best_step = 0; best_history = 0
}

/* What is left of views that nobody is in any more decides nothing. Forgetting it leaves a fifth of the states. */
inline forget_views() {
#ifdef SIMULATION
  skip /* it counts steps, not states */
#else
  d_step {
    fit = 0; /* bit v: somebody may still train in view v */
    for (i : 0 .. (N - 1)) { fit = fit | ((inside[i] && !given_up[i]) << in_view[i]) }
    for (i : 1 .. (view - 1)) {
      members[i] = members[i] * (fit >> i & 1);
      for (j : 0 .. STEPS) { offered[PLACE(i, j)] = offered[PLACE(i, j)] * (fit >> i & 1) }
    }
    fit = 0
  }
#endif
}

proctype Device(byte d) {
end:
  do
  /* a round: everybody offers, and a device that has all offers applies; some may never get that far */
  :: atomic {
       up[d] && inside[d] && !given_up[d] && step[d] < STEPS && !(offered[PLACE(in_view[d], step[d])] & BIT(d)) ->
       offered[PLACE(in_view[d], step[d])] = offered[PLACE(in_view[d], step[d])] | BIT(d)
     }
  :: atomic {
       up[d] && inside[d] && !given_up[d] && step[d] < STEPS &&
       offered[PLACE(in_view[d], step[d])] == members[in_view[d]] ->
       history[d] = history[d] * BASE + in_view[d]; step[d]++; lineage[d] = in_view[d];
       assert(SIZE(members[in_view[d]]) >= LEAST);
       assert(SAME(0, 1) && SAME(0, 2) && SAME(1, 2))
     }
  /* a checkpoint, then the record about it: what is on the disk may be older than what the device holds, and the
   * view may be over */
  :: atomic {
       up[d] && step[d] > 0 && NEWER(lineage[d], step[d], disk_lineage[d], disk_step[d]) ->
       disk_lineage[d] = lineage[d]; disk_step[d] = step[d]; disk_history[d] = history[d]
     }
  :: atomic {
       up[d] && inside[d] && disk_step[d] > 0 &&
#ifdef NO_RESTAMP
       disk_lineage[d] == lineage[d] && disk_step[d] == step[d] &&
#endif
       WORTH_SAYING(d) ->
       fold_saved(d, true, in_view[d], disk_lineage[d], disk_step[d], disk_history[d])
     }
  /* for whatever reason it gives its view up, and says so */
  :: atomic {
       up[d] && view < VIEWS && !READY_IS_SAID(d) && (!calm || given_up[d] || ready != 0) ->
       given_up[d] = true;
       fold_ready(d, true, view + 1, lineage[d], step[d], history[d]); forget_views()
     }
  /* anybody who is ready may close the next view; the first record that fits wins */
  :: atomic {
       up[d] && view < VIEWS && (ready & BIT(d)) ->
       fold_close(d, true, view + 1); forget_views()
     }
  /* it reads that there is a new view: the target comes from a member that lives and has it */
  :: atomic {
       up[d] && in_view[d] < view && (members[view] & BIT(d)) ->
       holder = false; i = 0;
       do
       :: i < N ->
          if
          :: (members[view] & BIT(i)) && up[i] && step[i] == target_step && history[i] == target_history -> holder = true
          :: else
          fi;
          i++
       :: else -> break
       od;
       if
       :: holder ->
          step[d] = target_step; history[d] = target_history;
#ifdef NO_RESTAMP
          lineage[d] = target_lineage;
#else
          lineage[d] = view;
#endif
          in_view[d] = view; inside[d] = true; given_up[d] = false; forget_views()
       :: else
       fi
     }
  /* power is lost; the disk is not, or is */
#if CRASHES < 255
  :: atomic { up[d] && !calm && crashes < CRASHES -> crashes++;
#else
  :: atomic { up[d] ->
#endif
       up[d] = false; inside[d] = false; given_up[d] = true; in_view[d] = 0;
       lineage[d] = 0; step[d] = 0; history[d] = 0; forget_views() }
#if DISKS > 0
  :: atomic {
       !up[d] && disks_lost < DISKS && disk_step[d] > 0 ->
       disks_lost++; disk_lineage[d] = 0; disk_step[d] = 0; disk_history[d] = 0
     }
#endif
  :: atomic {
       !up[d] ->
       up[d] = true; in_view[d] = view; /* whatever was closed so far, was closed with an older session */
       lineage[d] = disk_lineage[d]; step[d] = disk_step[d]; history[d] = disk_history[d];
       fold_hello(d)
     }
  od
}

#ifdef SIMULATION
proctype Weather() {
  byte hour;
end:
  do
  :: atomic { hour = (hour + 1) % 60; calm = hour < 30 }
  od
}

/* What was on its way when its session or its view ended, and what nobody should have said. None of it counts. */
proctype Strays() {
  byte d, s, v;
end:
  do
  :: atomic {
       select(d : 0 .. (N - 1)); select(s : 1 .. STEPS); select(v : 1 .. view);
       if
       :: fold_ready(d, false, view + 1, view, s, 0)
       :: fold_ready(d, true, v, 0, 0, 0)
       :: fold_ready(d, true, view + 2, 0, 0, 0)
       :: fold_saved(d, false, view, view, s, 0)
       :: fold_saved(d, true, view - 1, view - 1, s, 0)
       :: fold_saved(d, true, view, view - 1, s, 0)
       :: fold_close(d, false, view + 1)
       :: fold_close(d, true, view + 2)
       :: fold_close(d, true, view - 1)
       fi
     }
  od
}
#endif

init {
  atomic {
    byte k;
    for (k : 0 .. (FIRST - 1)) { fold_hello(k) }
    for (k : 0 .. (FIRST - 1)) { fold_ready(k, true, 1, 0, 0, 0) }
    fold_close(0, true, 1);
    for (k : 0 .. (N - 1)) {
      up[k] = k < FIRST; /* who joins has yet to start */
      if
      :: members[1] & BIT(k) ->
         in_view[k] = 1; inside[k] = true;
#ifndef NO_RESTAMP
         lineage[k] = 1
#endif
      :: else
      fi;
      run Device(k)
    }
#ifdef SIMULATION
    run Strays();
    run Weather()
#endif
  }
}
