#!/usr/bin/env bash
# A build in a pipe prints a line from time to time, not one per file. A failed one prints the compiler's output and fails.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/common.sh

cmake() { # replaces the real one
  local i
  for ((i = 1; i <= 384; ++i)); do printf '[%d/384] Building CXX object %d.o\n' "$i" "$i"; done
  if [[ ${fails-} == yes ]]; then
    printf 'FAILED: 384.o\n384.cpp:7: error: planted\nninja: build stopped\n'
    return 1
  fi
}
wrong() {
  printf '%s\n' "$*" | head -n 20 >&2
  exit 1
}

shown=$(compile_targets release rivulet 2>&1)
(($(wc --lines <<<"$shown") <= 2)) || wrong "384 files are as many lines: $shown"
[[ $shown == "built "*" of 384 parts, "* ]] || wrong "no progress is shown: $shown"
if shown=$(fails=yes compile_targets release rivulet 2>&1); then wrong "a build that fails ends with 0"; fi
[[ $shown == *"384.cpp:7: error: planted"* ]] || wrong "the compiler's words are not shown: $shown"
[[ $shown != *"Building CXX"* ]] || wrong "what was built before is shown: $shown"

# A line every N seconds, by the clock.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
shown=$(for i in 1 2 3 4; do
  printf '[%d/4] Building\n' "$i"
  sleep 0.7
done | as_progress 1)
(($(wc --lines <<<"$shown") >= 2)) || wrong "a build of some seconds shows one line: $shown"
