#!/usr/bin/env bash
# Checks that every commit in docs/EVIDENCE.md is an ancestor of the checked-out commit. In a shallow clone, which lacks
# history, reports that and checks only the form of the rows.
set -euo pipefail
cd "$(dirname "$0")/../.."

# findings FILE: errors in its rows, one per line.
findings() {
  local rows=0 row commit shallow
  shallow=$(git rev-parse --is-shallow-repository)
  while IFS='|' read -r _ row commit _; do
    rows=$((rows + 1))
    read -r commit <<<"$commit"
    if [[ ! $commit =~ ^[0-9a-f]{7,40}$ ]]; then
      echo "the row of ${row// /} names '$commit', which is not a commit"
    elif [[ $shallow == false ]] && ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
      echo "the row of ${row// /} names $commit, which is not in the history"
    fi
  done < <(grep --extended-regexp '^\| [0-9]{4}-' "$1")
  if ((rows == 0)); then echo "no row was found"; fi
}

# finds WORDS ROW...: a file with these rows has a finding that contains WORDS; empty: no finding.
finds() {
  local words=$1 found
  shift
  found=$(findings <(printf '%s\n' '| date | commit | result |' '|---|---|---|' "$@"))
  if [[ -z $words && -n $found || $found != *"$words"* ]]; then
    echo "in $*: found '$found', not '$words'"
    failed=1
  fi
}

failed=0
head=$(git rev-parse --short=12 HEAD)
finds '' "| 2026-11-24 | $head | passed |"
finds 'no row was found'
finds "names '$head+changes-12345678', which is not a commit" "| 2026-11-24 | $head+changes-12345678 | passed |"
if [[ $(git rev-parse --is-shallow-repository) == false ]]; then
  finds 'names 00000badbad0, which is not in the history' "| 2026-11-24 | 00000badbad0 | passed |"
else
  echo "a shallow clone: cannot check whether the commits are in the history (git fetch --unshallow)"
fi
found=$(findings docs/EVIDENCE.md)
if [[ -n $found ]]; then sed 's#^#docs/EVIDENCE.md: #' <<<"$found" && failed=1; fi
exit "$failed"
