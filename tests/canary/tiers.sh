#!/usr/bin/env bash
# A test that takes longer than its tier allows is named, and others are not.
set -uo pipefail
here=$(dirname "$0")
file=$(mktemp)
trap 'rm -f "$file"' EXIT
# times UNIT'S-SECONDS UNIT'S-PROCESSOR-SECONDS OTHER'S-SECONDS TRIES
times() {
  printf '<testsuite><testcase name="unit_x" time="%s"><system-out>try_again: tries %s, processor time 0m%ss 0m0.100s
</system-out></testcase><testcase name="integration_y" time="%s"/></testsuite>' "$1" "$4" "$2" "$3" >"$file"
}
failed=0
export TIERS_WITHOUT_EXCEPTIONS=1
within() { times "$@" && "$here/../tiers" "$file" || failed=1; }
# beyond WORDS TIMES...
beyond() { times "${@:2}" && "$here/expect_failure.sh" "$1" "$here/../tiers" "$file" || failed=1; }
within 179 9.8 179 1
within 359 19.8 179 2
beyond "unit_x took 10.1 s of processor time, of 10:" 6 10.0 59 1
beyond "unit_x took 20.2 s of processor time, of 20:" 6 20.1 59 2
beyond "unit_x took 180.1 s of 180:" 180.1 1.0 59 1
beyond "integration_y took 180.1 s of 180:" 4 3.0 180.1 1
exit "$failed"
