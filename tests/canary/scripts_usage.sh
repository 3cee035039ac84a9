#!/usr/bin/env bash
# Scripts reject unknown arguments with their usage and exit code 2, and answer --help, before doing anything.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0
folder=scripts

# ends CODE STREAM SCRIPT WORD...: exits with that code, and prints the usage on that stream alone.
ends() {
  local code=$1 usage=$2 script=$3 out err status=0
  shift 3
  err=$(mktemp)
  out=$(timeout 20 "$folder/$script" "$@" 2>"$err") || status=$?
  if [[ $usage == err ]]; then out+=$(grep --count "$folder/$script" "$err"); else out=$(grep --count "$folder/$script" <<<"$out"); fi
  rm "$err"
  if ((status != code)) || [[ ! $out =~ ^[1-9]$ ]]; then
    echo "$folder/$script $*: ended with $status, not with $code and its usage"
    failed=1
  fi
}

for script in build figure format fuzz mutants pictures setup test tidy; do
  ends 0 out "$script" --help
  ends 2 err "$script" --bogus
done
ends 2 err figure 0
ends 2 err figure 10 20
ends 2 err fuzz --seconds
ends 2 err fuzz --executions none
ends 2 err fuzz no-such-target
ends 2 err fuzz fold --bogus
ends 2 err format --check --bogus
ends 2 err mutants no_such_mutation
ends 2 err setup extra words
ends 2 err setup --for build now
ends 2 err test --lane
ends 2 err test --lane no-such-lane
ends 2 err test --lane format no-such-lane
ends 2 err test --full now
ends 2 err test --all now
ends 2 err test --slow
ends 2 err test --fast
ends 2 err tidy --recent core/check.h
folder=dashboards
for script in check demo draw generate; do
  ends 0 out "$script" --help
  ends 2 err "$script" --bogus
done
ends 2 err check --prometheus
ends 2 err check --wait long
ends 2 err demo
ends 2 err demo /bin/true --past 0
ends 2 err draw --prometheus http://127.0.0.1:1
ends 2 err draw --seconds none folder
ends 2 err generate folder
exit "$failed"
