#!/bin/sh
# expect_failure.sh WORDS PROGRAM...: good when the program fails and says WORDS; all else is a failure, because
# a guard that does not bite guards nothing.
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
echo "expect_failure: failed with $status, but never said: $words" >&2
exit 1
