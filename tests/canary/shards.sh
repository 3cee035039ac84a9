#!/usr/bin/env bash
# shards.sh BUILD-FOLDER PROGRAM...: checks that ctest's tests of parts of these programs run all of their cases, each once.
set -euo pipefail
exec /usr/bin/python3 - "$@" <<'END'
import fnmatch, json, subprocess, sys
import xml.etree.ElementTree as tree

folder, *programs = sys.argv[1:]
shown = json.loads(subprocess.check_output(["ctest", "--test-dir", folder, "--show-only=json-v1"]))


def runs(arguments, file):
    """True if doctest runs the cases of that file with these arguments."""
    [(option, _, patterns)] = [word.partition("=") for word in arguments]
    matched = any(fnmatch.fnmatch(file, pattern) for pattern in patterns.split(","))
    return matched if option == "--source-file" else not matched if option == "--source-file-exclude" else None


wrong = []
commands = [test.get("command", []) for test in shown["tests"]]
for program in programs:
    shards = [words[4:] for words in commands if words[:1] != [] and words[0].endswith("setpriv") and words[3:4] == [program]]
    listed = tree.fromstring(subprocess.check_output([program, "--list-test-cases", "--reporters=xml"]))
    files = {case.get("filename") for case in listed.iter("TestCase")}
    for file in files:
        times = sum(runs(arguments, file) for arguments in shards)
        if times != 1:
            wrong.append(f"{program} runs the cases of {file} {times} times")
    wrong += [f"{program} runs nothing with {arguments}" for arguments in shards if not any(runs(arguments, file) for file in files)]
    if not files or len(shards) < 2:
        wrong.append(f"{program}: {len(files)} files, {len(shards)} tests")
print("\n".join(wrong) or f"{len(programs)} programs: all cases, each once")
sys.exit(1 if wrong else 0)
END
