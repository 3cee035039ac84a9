/* How a group agrees on its views and on the state each of them starts from (docs/adr/0008): N devices over a log
 * that has one order. Appending a record and folding it is one step; devices act on it whenever they get to it, so
 * readers that lag are covered. A state is its stamp (lineage, step) and its history: which view applied each step,
 * as digits to base BASE. Two states are the same when their histories are.
 *
 * Checked: what is committed is part of the history of every view's target and never goes back; equal stamps mean equal
 * histories. scripts: tests/model/check.sh runs it; every rule of the fold has a mutation that must fail.
 *   NO_FENCE    SAVED counts although its view is over
 *   NO_GUARD    a view may start from less than what is committed
 *   NO_RESTAMP  an adopted state keeps its old lineage
 */
#ifndef N
#define N 3
#endif
#ifndef QUORUM
#define QUORUM 2
#endif
#ifndef LEAST
#define LEAST 2 /* devices of a view; the group of today always waits for all N, which is a part of this */
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
#define BASE 5
#define ALL ((1 << N) - 1)
#define BIT(d) (1 << (d))
#define NEWER(l1, s1, l2, s2) ((l1) > (l2) || ((l1) == (l2) && (s1) > (s2)))

/* what the log says, folded */
byte view = 1;
byte members[VIEWS + 1];
byte ready = 0; /* bit set */
byte ready_lineage[N]; byte ready_step[N]; byte ready_history[N];
byte target_step; byte target_history;
#ifdef NO_RESTAMP
byte target_lineage;
#endif
byte committed_lineage = 0; byte committed_step = 0; byte committed_history = 0;
byte saved = 0; /* bit set, of one stamp: the newest that somebody saved */
byte saved_lineage = 0; byte saved_step = 0; byte saved_history = 0;

/* who has offered its gradient: view * (STEPS + 1) + step */
byte offered[(VIEWS + 1) * (STEPS + 1)];

/* devices */
bool up[N]; bool inside[N]; bool given_up[N];
byte in_view[N];
byte lineage[N]; byte step[N]; byte history[N];
byte disk_lineage[N]; byte disk_step[N]; byte disk_history[N];
#if CRASHES < 255
byte crashes = 0;
#endif

hidden byte i, count, prefix;
hidden byte best_lineage, best_step, best_history;
hidden byte any, holder;

inline count_bits(set) {
  count = 0; i = 0;
  do
  :: i < N -> if :: (set & BIT(i)) -> count++ :: else fi; i++
  :: else -> break
  od
}

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

proctype Device(byte d) {
end:
  do
  /* a round: everybody offers, and whoever has all offers applies; some may never get that far */
  :: atomic {
       up[d] && inside[d] && !given_up[d] && step[d] < STEPS &&
       !(offered[in_view[d] * (STEPS + 1) + step[d]] & BIT(d)) ->
       offered[in_view[d] * (STEPS + 1) + step[d]] = offered[in_view[d] * (STEPS + 1) + step[d]] | BIT(d)
     }
  :: atomic {
       up[d] && inside[d] && !given_up[d] && step[d] < STEPS &&
       offered[in_view[d] * (STEPS + 1) + step[d]] == members[in_view[d]] ->
       history[d] = history[d] * BASE + in_view[d]; step[d]++; lineage[d] = in_view[d];
       assert(SAME(0, 1) && SAME(0, 2) && SAME(1, 2))
     }
  /* a checkpoint, then the record about it */
  :: atomic {
       up[d] && step[d] > 0 && NEWER(lineage[d], step[d], disk_lineage[d], disk_step[d]) ->
       disk_lineage[d] = lineage[d]; disk_step[d] = step[d]; disk_history[d] = history[d]
     }
  :: atomic {
       up[d] && inside[d] && disk_step[d] > 0 && disk_lineage[d] == lineage[d] && disk_step[d] == step[d] &&
#ifndef NO_FENCE
       in_view[d] == view &&
#endif
       NEWER(disk_lineage[d], disk_step[d], committed_lineage, committed_step) ->
       if
       :: saved_lineage == disk_lineage[d] && saved_step == disk_step[d] && saved_history == disk_history[d] ->
          saved = saved | BIT(d)
       :: else ->
          saved_lineage = disk_lineage[d]; saved_step = disk_step[d]; saved_history = disk_history[d]; saved = BIT(d)
       fi;
       count_bits(saved);
       if
       :: count >= QUORUM ->
          check_extends(saved_history, saved_step);
          committed_lineage = saved_lineage; committed_step = saved_step; committed_history = saved_history; saved = 0
       :: else
       fi
     }
  /* for whatever reason it gives its view up, and says so */
  :: atomic {
       up[d] && view < VIEWS && !(ready & BIT(d)) ->
       given_up[d] = true; ready = ready | BIT(d);
       ready_lineage[d] = lineage[d]; ready_step[d] = step[d]; ready_history[d] = history[d]
     }
  /* anybody who is ready may close the next view; the first record that fits wins */
  :: atomic {
       up[d] && view < VIEWS && (ready & BIT(d)) ->
       count_bits(ready);
       if
       :: count < LEAST -> skip
       :: else ->
          any = false; i = 0;
          do
          :: i < N ->
             if
             :: (ready & BIT(i)) && (!any || NEWER(ready_lineage[i], ready_step[i], best_lineage, best_step)) ->
                best_lineage = ready_lineage[i]; best_step = ready_step[i]; best_history = ready_history[i]; any = true
             :: else
             fi;
             i++
          :: else -> break
          od;
          if
#ifndef NO_GUARD
          :: NEWER(committed_lineage, committed_step, best_lineage, best_step) -> skip
#endif
          :: else ->
             check_extends(best_history, best_step);
             view++; members[view] = ready; ready = 0; saved = 0; saved_lineage = 0; saved_step = 0; saved_history = 0;
             target_step = best_step; target_history = best_history;
#ifdef NO_RESTAMP
             target_lineage = best_lineage;
#endif
             for (i : 0 .. (N - 1)) { ready_lineage[i] = 0; ready_step[i] = 0; ready_history[i] = 0 }
          fi;
          best_lineage = 0; best_step = 0; best_history = 0
       fi
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
          in_view[d] = view; inside[d] = true; given_up[d] = false
       :: else
       fi
     }
  /* power is lost; the disk is not */
#if CRASHES < 255
  :: atomic { up[d] && crashes < CRASHES -> crashes++;
#else
  :: atomic { up[d] ->
#endif
       up[d] = false; inside[d] = false; given_up[d] = true; lineage[d] = 0; step[d] = 0; history[d] = 0 }
  :: atomic {
       !up[d] ->
       up[d] = true; ready = ready & ~BIT(d); /* a new session: what the old one said is void */
       lineage[d] = disk_lineage[d]; step[d] = disk_step[d]; history[d] = disk_history[d]
     }
  od
}

init {
  atomic {
    byte k = 0;
    members[1] = ALL;
    do
    :: k < N -> in_view[k] = 1; inside[k] = true; up[k] = true; run Device(k); k++
    :: else -> break
    od
  }
}
