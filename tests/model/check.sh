#!/usr/bin/env bash
# The protocol of views and states, exhaustively within bounds, and its mutations, which must fail:
#   tests/model/check.sh            about a minute; RIVULET_FULL=1: larger bounds, minutes
# Ends with 0 only if every variant ends as it should. Needs spin and a C compiler.
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/view_change.pml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
bad=0

# variant holds|fails NAME DEFINE...
variant() {
  local expected=$1 name=$2 found=unclear ended=0 states
  shift 2
  spin -a "$@" "$model" >spin.log || { cat spin.log; exit 1; }
  cc -O2 -DSAFETY -DHC4 -DVECTORSZ=4096 -DMEMLIM=6000 -o pan pan.c 2>cc.log || { cat cc.log; exit 1; }
  ./pan -m400000 >pan.log 2>&1 || ended=$?
  if grep --quiet --extended-regexp 'max search depth too small|out of memory|search incomplete|aborted' pan.log; then found=incomplete; fi
  states=$(awk '/states, stored/ { print $1; exit }' pan.log)
  # Nothing counts but what the checker says itself: a crash or another kind of error is neither.
  if [[ $found == unclear && $ended == 0 && -n $states ]]; then
    if grep --quiet 'errors: 0$' pan.log; then found=holds; fi
    if grep --quiet 'assertion violated' pan.log; then found=fails; fi
  fi
  printf '%-10s %-44s %s states\n' "$found" "$name" "${states:-?}"
  [[ $found == "$expected" ]] || { bad=1; echo "  expected: $expected"; tail -5 pan.log; }
}

variant holds "2 views, 2 steps, any crashes" -DVIEWS=2 -DSTEPS=2
variant holds "3 views, 1 step, any crashes" -DVIEWS=3 -DSTEPS=1
variant fails "SAVED of a view that is over counts" -DVIEWS=3 -DSTEPS=1 -DNO_FENCE
variant fails "a view starts from less than is committed" -DVIEWS=3 -DSTEPS=1 -DNO_GUARD
variant fails "an adopted state keeps its lineage" -DVIEWS=4 -DSTEPS=1 -DCRASHES=0 -DNO_RESTAMP
variant fails "SAVED of what was not adopted counts" -DVIEWS=3 -DSTEPS=1 -DNO_LINEAGE
variant holds "a disk is lost, 3 views, 1 step, 1 crash" -DVIEWS=3 -DSTEPS=1 -DCRASHES=1 -DDISKS=1
variant holds "views leave some out, 2 views, 2 steps" -DVIEWS=2 -DSTEPS=2 -DLEAVES_OUT
variant fails "... and start from less than is committed" -DVIEWS=3 -DSTEPS=1 -DLEAVES_OUT -DNO_GUARD
variant holds "views of all devices, 3 views, 1 step" -DVIEWS=3 -DSTEPS=1 -DLEAST=3
if [[ ${RIVULET_FULL-} == 1 ]]; then
  variant holds "views of all devices, 3 views, 2 steps, 1 crash" -DVIEWS=3 -DSTEPS=2 -DLEAST=3 -DCRASHES=1
  variant holds "views leave some out, 3 views, 1 step" -DVIEWS=3 -DSTEPS=1 -DLEAVES_OUT
  variant holds "4 views, 1 step, no crash" -DVIEWS=4 -DSTEPS=1 -DCRASHES=0
  variant holds "3 views, 2 steps, no crash" -DVIEWS=3 -DSTEPS=2 -DCRASHES=0
  variant holds "a disk is lost, 3 views, 1 step, 2 crashes" -DVIEWS=3 -DSTEPS=1 -DCRASHES=2 -DDISKS=1
  variant holds "a quorum of one, 3 views, 1 step" -DVIEWS=3 -DSTEPS=1 -DQUORUM=1
fi
exit "$bad"
