#!/usr/bin/env bash
# try_again.sh PROGRAM: of the cases of deadlines.cpp only one whose every failure is a deadline ends with 75, and only that is
# tried twice.
set -uo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# ends CODE TRIES CASE
ends() {
  local status=0 tries
  "$(dirname "$0")/../support/try_again" "$program" --test-case="$3" >"$folder/out" 2>&1 || status=$?
  tries=$(grep --count 'doctest version' "$folder/out")
  if ((status != $1 || tries != $2)); then
    echo "$3: ended with $status after $tries tries, not with $1 after $2"
    cat "$folder/out"
    failed=1
  fi
}

ends 0 1 "passes"
ends 75 2 "a deadline"
ends 1 1 "a deadline that was expected*"
ends 1 1 "a deadline and a finding"
ends 1 1 "a look*"
ends 1 1 "a note*"
ends 1 1 "rows that do not come"
ends 1 1 "rows too many"
ends 0 1 "rows that come late"
ends 1 1 "an exception*"
ends 1 1 "words*"
# What passes the second time passes.
printf '#!/bin/sh\n[ -e %s/once ] && exit 0\ntouch %s/once\nexit 75\n' "$folder" "$folder" >"$folder/second"
chmod +x "$folder/second"
TRIED_AGAIN=$folder/list "$(dirname "$0")/../support/try_again" "$folder/second" 2>/dev/null || { echo "the second try did not count"; failed=1; }
grep --quiet --line-regexp second "$folder/list" || { echo "a second try was not written down"; failed=1; }
exit "$failed"
