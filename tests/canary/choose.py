#!/usr/bin/env python3
"""Tests of tests/choose, the selection for a run of scripts/test: fixed for a commit, complete over time, nothing of --full."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

path = str(Path(__file__).parents[1] / "choose")
loader = importlib.machinery.SourceFileLoader("choose", path)
choose = importlib.util.module_from_spec(importlib.util.spec_from_loader("choose", loader))
sys.dont_write_bytecode = True
loader.exec_module(choose)

quick = [("unit_a", {"unit"}), ("canary_a", {"canary"}), ("simulation_a", {"simulation"}), ("docs_a", {"docs"})]
core = [("integration_kill", {"integration", "core"})]
others = [(f"integration_{i}", {"integration"}) for i in range(10)] + [("docker_static", {"docker"}), ("dashboards_x", {"dashboards"})]
rest = [("model_view", {"model"}), ("full_containers", {"containers"}), ("full_x", {"full"})]
tests = quick + core + others + rest
failed = []


def names(pairs):
    return {name for name, _ in pairs}


def expect(what, holds):
    if not holds:
        failed.append(what)


always, drawn = choose.choose(tests, "abc123")
expect("what is quick, and the core, run every time", set(always) == names(quick + core))
expect("a third of the others is drawn", len(drawn) == 4 and set(drawn) <= names(others))
expect("a commit draws the same again", choose.choose(tests, "abc123") == (always, drawn))
expect("the order of the tests does not matter", set(choose.choose(tests[::-1], "abc123")[1]) == set(drawn))
draws = [frozenset(choose.choose(tests, f"commit-{i}")[1]) for i in range(60)]
expect("commits draw differently", len(set(draws)) > 30)
expect("nothing is never drawn", frozenset().union(*draws) == names(others))
expect("--all runs all but what --full keeps", choose.choose(tests, "all") == ([name for name, _ in tests[:-2]], []))
print("\n".join(failed) or "choose: ok")
sys.exit(1 if failed else 0)
