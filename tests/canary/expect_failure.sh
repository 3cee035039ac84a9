#!/bin/sh
# expect_failure.sh WORDS PROGRAM...: passes if the program fails and prints WORDS. Proves that a check detects
# failures.
words=$1
shift
output=$("$@" 2>&1)
status=$?
printf '%s\n' "$output"
if [ "$status" -eq 0 ]; then
  echo "expect_failure: ended with 0, but must fail" >&2
  exit 1
fi
case $output in
  *"$words"*) exit 0 ;;
esac
echo "expect_failure: failed with $status, without the output: $words" >&2
exit 1
