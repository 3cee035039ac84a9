#!/usr/bin/env python3
"""Tests of tests/verdicts: which failures are repeated and which never, and that the output of a failure is shown."""
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

verdicts = Path(__file__).parents[1] / "verdicts"
wrong = []


def case(name, why="Failed", output=""):
    failure = f'<failure message="{escape(why)}"/>' if why else ""
    return f'<testcase name="{name}" time="1.5" status="{"fail" if why else "run"}">{failure}<system-out>{escape(output)}</system-out></testcase>'


def ask(option, *cases):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(f'<testsuite>{"".join(cases)}</testsuite>')
        file.flush()
        return subprocess.run([verdicts, option, file.name], capture_output=True, text=True)


def again(expected, *cases):
    """Expected: the names that run again, or None if a failure is final."""
    done = ask("--again", *cases)
    found = done.stdout.split() if done.returncode == 0 else None
    if found != expected:
        wrong.append(f"{cases}: {found}, not {expected}: {done.stderr}")


late = "tests/x.cpp:1: FATAL ERROR: REQUIRE( came ) is NOT correct!"
good = case("integration_good", why="")
again(["integration_a"], good, case("integration_a", output=late))
again(["integration_a", "docker_static"], case("integration_a", why="Timeout"), case("docker_static"))
for never in ("x.cpp:7: ERROR: CHECK( digests(a) == digests(b) ) is NOT correct!", "ERROR: CHECK( books.trained == 5 )",
              "==1==ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
              "x.h:1:2: runtime error: signed integer overflow", "rivulet: bug: worker.cpp:1: check(a) failed: b",
              "terminate called after throwing", "the ledger does not balance: 3 rows", "the state digests differ: a, b",
              "FATAL ERROR: test case CRASHED: SIGSEGV", "row 7 was trained twice"):
    again(None, case("integration_a", output=f"{late}\n{never}\nand more"))
again(None, case("integration_a", why="SEGFAULT"))
again(None, case("integration_a", why="Subprocess aborted"))
again(None, case("unit_a", output=late))
again(None, case("conformance_a", output=late), case("integration_b", output=late))

shown = ask("--words", good, case("integration_a", output="\n".join(f"line {i}" for i in range(100))), case("unit_b", output="other words")).stdout
for words in ("-- integration_a: Failed", "line 99", "line 60", "-- unit_b", "other words"):
    if words not in shown:
        wrong.append(f"the output of a failure lacks {words}: {shown}")
if "line 59" in shown or "good" in shown:
    wrong.append(f"too many words: {shown}")
print("\n".join(wrong) or "verdicts: ok")
sys.exit(1 if wrong else 0)
