#!/usr/bin/env bash
# shards.sh BUILD-FOLDER PROGRAM: the tests of ctest that run files of this program run all of its test cases.
set -euo pipefail
exec /usr/bin/python3 - "$@" <<'END'
import json, re, subprocess, sys
folder, program = sys.argv[1:]
shown = json.loads(subprocess.check_output(["ctest", "--test-dir", folder, "--show-only=json-v1"]))
def cases(*arguments):
    listed = subprocess.check_output([program, "--list-test-cases", "--no-colors", *arguments], text=True).splitlines()
    return {line for line in listed if not line.startswith(("[doctest]", "====="))}
shards = [test["command"] for test in shown["tests"] if program in test.get("command", []) and "--list-test-cases" not in test["command"]]
shards = [command[command.index(program) + 1:] for command in shards if any(word.startswith("--source-file") for word in command)]
missing = cases() - set().union(*(cases(*arguments) for arguments in shards))
empty = [arguments for arguments in shards if not cases(*arguments)]
if missing or empty or len(shards) < 2:
    sys.exit(f"{program}: {len(shards)} shards; not run: {sorted(missing)}; empty: {empty}")
print(f"{len(shards)} shards run all {len(cases())} cases")
END
