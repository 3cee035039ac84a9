#!/usr/bin/env bash
# A test that takes longer than its tier allows is named, and others are not.
set -uo pipefail
here=$(dirname "$0")
file=$(mktemp)
trap 'rm -f "$file"' EXIT
times() { printf '<testsuite><testcase name="unit_x" time="%s"/><testcase name="integration_y" time="%s"/></testsuite>' "$1" "$2" >"$file"; }
failed=0
times 4.9 59
TIERS_WITHOUT_EXCEPTIONS=1 "$here/../tiers" "$file" || failed=1
times 5.1 59
TIERS_WITHOUT_EXCEPTIONS=1 "$here/expect_failure.sh" "unit_x took 5.1 s of 5" "$here/../tiers" "$file" || failed=1
times 4.9 60.1
TIERS_WITHOUT_EXCEPTIONS=1 "$here/expect_failure.sh" "integration_y took 60.1 s of 60" "$here/../tiers" "$file" || failed=1
exit "$failed"
