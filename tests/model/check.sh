#!/usr/bin/env bash
# The protocol of views and states, exhaustively within bounds, and its mutations, which must fail:
#   tests/model/check.sh            three minutes of processor time; RIVULET_FULL=1: larger bounds
# Ends with 0 only if every variant ends as it should. Needs spin, a C compiler and 4 GB of memory. Below a mutation are
# the counted records that lead to its error: HELLO device, CLOSE device present view, READY and SAVED device present
# view lineage step history.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$(dirname "$0")/view_change.pml" "$folder" # Spin writes the trail of an error beside the model
cd "$folder"
bad=0

# What the model asserts, as the checker prints it.
declare -A assertion=(
  [committed]='prefix==committed_history'
  [least]='members[in_view[d]]'
  [joiner]='committed_by<'
)

# Prints the records that counted on the way to the error.
show_trail() {
  spin -t "$@" view_change.pml >trail.log || return
  grep --quiet 'assertion violated' trail.log || return
  awk '$1 ~ /^(HELLO|READY|SAVED|CLOSE)$/ { sub(/^ +/, ""); record = $0 }
       $1 == "so" && $2 == 1 { print "    " record }' trail.log
}

# variant holds|committed|least|joiner NAME DEFINE...: no error, or that one
variant() {
  local expected=$1 name=$2 found=unclear ended=0 states kind violated
  shift 2
  rm -f ./*.trail
  spin -a "$@" view_change.pml >spin.log || { cat spin.log; exit 1; }
  cc -O2 -DSAFETY -DNOREDUCE -DVECTORSZ=4096 -DMEMLIM=6000 -o pan pan.c 2>cc.log || { cat cc.log; exit 1; }
  ./pan -m400000 >pan.log 2>&1 || ended=$?
  if grep --quiet --extended-regexp 'max search depth too small|out of memory|search incomplete|aborted' pan.log; then
    found=incomplete
  fi
  states=$(awk '/states, stored/ { print $1; exit }' pan.log)
  # Nothing counts but what the checker says itself: a crash or another kind of error is neither.
  if [[ $found == unclear && $ended == 0 && -n $states ]]; then
    if grep --quiet 'errors: 0$' pan.log; then found=holds; fi
    violated=$(grep --max-count=1 'assertion violated' pan.log || true)
    for kind in "${!assertion[@]}"; do
      if [[ $violated == *"${assertion[$kind]}"* ]]; then found=$kind; fi
    done
  fi
  printf '%-10s %-60s %s states\n' "$found" "$name" "${states:-?}"
  if [[ $found != "$expected" ]]; then
    bad=1
    echo "  expected: $expected"
    tail -5 pan.log
  elif [[ $found != holds ]]; then
    show_trail "$@" || { bad=1; echo "  no trail"; }
  fi
}

# Whatever is chosen by rules that no safety depends on. Views of one train, and commit nothing.
free=(-DQUORUM=2 -DLEAST=1 -DLEAVES_OUT -DHELLO_OWN -DANY_TARGET)

variant holds "fixed size, 3 views, any crashes" -DVIEWS=3 -DLEAST=3
variant holds "at least 2, 3 views, any crashes" -DVIEWS=3
variant holds "free choice, 3 views, any crashes" -DVIEWS=3 "${free[@]}"
variant holds "free choice, 2 views, 2 steps, any crashes" -DVIEWS=2 -DSTEPS=2 "${free[@]}"
variant holds "free choice, 4 views, no crash" -DVIEWS=4 -DCRASHES=0 "${free[@]}"
variant holds "free choice, 3 views, any crashes, a disk is lost" -DVIEWS=3 -DDISKS=1 "${free[@]}"
variant holds "free choice, 3 views, any crashes, one of 3 joins" -DVIEWS=3 -DFIRST=2 "${free[@]}"
variant holds "free choice, 3 views, 1 crash, two of 3 join" -DVIEWS=3 -DCRASHES=1 -DFIRST=1 "${free[@]}"

variant committed "SAVED of a view that is over counts" -DVIEWS=3 -DCRASHES=1 -DNO_FENCE
variant committed "a view starts from less than is committed" -DVIEWS=3 -DCRASHES=1 -DNO_GUARD
variant committed "an adopted state keeps its lineage" -DVIEWS=4 -DCRASHES=0 -DNO_RESTAMP
variant committed "SAVED of what was not adopted counts" -DVIEWS=3 -DCRASHES=1 -DNO_LINEAGE
variant committed "free choice, SAVED of a view that is over counts" -DVIEWS=3 -DCRASHES=1 -DNO_FENCE "${free[@]}"
variant committed "free choice, a view starts from less than is committed" -DVIEWS=3 -DCRASHES=1 -DNO_GUARD "${free[@]}"
variant committed "free choice, an adopted state keeps its lineage" -DVIEWS=4 -DCRASHES=0 -DNO_RESTAMP "${free[@]}"
variant committed "free choice, SAVED of what was not adopted counts" -DVIEWS=3 -DCRASHES=1 -DNO_LINEAGE "${free[@]}"
variant least "a view is smaller than allowed" -DVIEWS=2 -DCRASHES=0 -DNO_LEAST "${free[@]/LEAST=1/LEAST=2}"
variant joiner "no device that joins has committed states" -DVIEWS=3 -DCRASHES=1 -DFIRST=2 -DNO_JOINER "${free[@]}"

if [[ ${RIVULET_FULL-} == 1 ]]; then
  variant holds "free choice, 3 views, 2 steps, no crash" -DVIEWS=3 -DSTEPS=2 -DCRASHES=0 "${free[@]}"
  variant holds "free choice, 3 views, any crashes, all must save" -DVIEWS=3 "${free[@]/QUORUM=2/QUORUM=3}"
  variant holds "free choice, 3 views, any crashes, a quorum of one" -DVIEWS=3 "${free[@]/QUORUM=2/QUORUM=1}"
  variant holds "free choice, 4 devices, 2 views, 1 crash" -DN=4 -DVIEWS=2 -DCRASHES=1 "${free[@]}"
fi
exit "$bad"
