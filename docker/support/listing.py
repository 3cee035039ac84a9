"""The list of files with sizes, and the table that it must agree with."""
import csv
from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000
LARGE = 5 * MB  # above this a library needs a reason
GOALS = (("all files", None, 560 * MB), ("LibTorch", "LibTorch's wheel", 450 * MB))


@dataclass
class Listed:
    name: str
    origin: str
    kind: str
    size: int
    target: str


@dataclass
class Allowed:
    name: str
    size: int
    why: str


def measure(entries, root):
    """Licences are one line: there are many, and all are small."""
    listed = []
    licences = 0
    for entry in entries:
        place = root / entry.target
        if entry.kind == "licence":
            licences += place.stat().st_size
        elif entry.kind in ("program", "library", "certificates"):
            listed.append(Listed(Path(entry.target).name, entry.origin, entry.kind, place.stat().st_size, entry.target))
    listed.append(Listed("licences", "packages and wheels", "licence", licences, "usr/share/doc"))
    return sorted(listed, key=lambda one: (-one.size, one.name))


def sums(listed):
    return [(what, sum(one.size for one in listed if origin in (None, one.origin)), goal) for what, origin, goal in GOALS]


def show(listed):
    for one in listed:
        print(f"{one.size / MB:8.2f} MB  {one.name:28}  {one.origin}")
    for what, size, goal in sums(listed):
        print(f"{size / MB:8.2f} MB  {what} (goal: {goal // MB} MB)")


def keep(listed, root):
    """The list travels with the files."""
    lines = [f"{one.size}\t{one.target}\t{one.origin}\n" for one in listed]
    (root / "usr/share/doc/rivulet/files.tsv").write_text("".join(lines))


def read_table(path):
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if row and not row[0].startswith("#")]
    return {row[0]: Allowed(row[0], int(float(row[1]) * MB), row[2].strip() if len(row) > 2 else "") for row in rows}


def compare(listed, allowed):
    findings = []
    for one in listed:
        if one.name not in allowed:
            findings.append(f"{one.name} ({one.size / MB:.2f} MB, {one.origin}) is not in the table")
            continue
        limit = allowed[one.name]
        if one.size > limit.size:
            findings.append(f"{one.name} has {one.size / MB:.2f} MB; the table allows {limit.size / MB:.2f}")
        if one.size > LARGE and not limit.why:
            findings.append(f"{one.name} has {one.size / MB:.2f} MB and no reason in the table")
    names = {one.name for one in listed}
    findings += [f"{name} is in the table, but nothing needs it" for name in allowed if name not in names]
    findings += [f"{what}: {size / MB:.2f} MB are more than the goal of {goal / MB:.0f}"
                 for what, size, goal in sums(listed) if size > goal]
    return findings
