"""Runs of `rivulet simulate` and the evaluation of their output."""

import csv
import json
import pathlib
import subprocess
import tempfile

from processes import BUILD, BenchError


def simulate(*options, **sets):
    """Runs a simulation. Returns its summary, and its tables by name."""
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder:
        command = [BUILD / "rivulet", "simulate", *options, "--csv", folder, "--json"]
        for key, value in sets.items():
            command += ["--set", f"{key.replace('__', '.')}={value}"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=900)
        if done.returncode != 0:
            raise BenchError(f"rivulet simulate failed: {done.stderr.strip().splitlines()[-1]}")
        tables = {}
        for file in pathlib.Path(folder).glob("*.csv"):
            with open(file, encoding="utf-8") as lines:
                tables[file.stem] = list(csv.DictReader(lines))
        return json.loads(done.stdout.strip().splitlines()[-1]), tables


def print_table(title, heads, lines):
    print(f"\n{title}\n\n| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |", flush=True)


def holds(tables, level):
    since = None
    for line in tables["accuracy"]:
        if float(line["accuracy"]) < level:
            since = None
        elif since is None:
            since = float(line["second"])
    return since
