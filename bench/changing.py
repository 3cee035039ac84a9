"""Streams of machines with faults and changes, and whole runs on them. A row is a dictionary, a stream a list."""

import contextlib
import json
import math
import random
import tempfile

import moving
from job import Job

LAST = moving.LAST
BEFORE, BOTH = 11_000, 23_000  # rows before a change, and in total


def machines(seed, rows):
    """Yields rows of four sensors with their standardized values `z`, which determine the label."""
    chance = random.Random(seed)
    for _ in range(rows):
        z = [chance.gauss(0, 1) for _ in range(4)]
        yield z, {"temp": 60 + 5 * z[0], "rms": z[1], "flow": 1000 + 50 * z[2], "load": 0.4 + 0.1 * z[3]}


def worn(seed, rows):
    return [{**row, "state": "worn" if z[0] + z[1] * z[2] > 0 else "ok"} for z, row in machines(seed, rows)]


def spoiled(rows, what, seed):
    """Spoils readings in all but the last rows, which measure the accuracy."""
    chance, rows = random.Random(seed), [dict(row) for row in rows]
    last = len(rows) - LAST
    if what == "1e18":
        rows[last // 2]["temp"] = 1e18
    else:
        for row in rows[:last]:
            if chance.random() < 0.01:
                row["temp"] = float(what)
    return rows


def at_rest(seed):
    """A sensor that is constant, then decisive. Returns all rows, and the second part alone."""
    both = []
    for z, row in machines(seed, BOTH):
        rests = len(both) < BEFORE
        state = z[1] if rests else z[0] + 0.3 * z[1]
        both.append({**row, "temp": 20.0 if rests else row["temp"], "state": "worn" if state > 0 else "ok"})
    return both, both[BEFORE:]


def seasons(seed):
    """From 20 +- 0.02 to 35 +- 3; the label depends on the deviation from the season's mean."""
    both = []
    for z, row in machines(seed, BOTH):
        temp = 20 + 0.02 * z[0] if len(both) < BEFORE else 35 + 3 * z[0]
        both.append({**row, "temp": temp, "state": "worn" if z[0] + 0.3 * z[1] > 0 else "ok"})
    return both, both[BEFORE:]


def watts(seed, rows=12_000):
    """A regression target from 200 to 3 200."""
    for z, row in machines(seed, rows):
        load = 0.6 * z[3] + 0.3 * z[0] + 0.2 * z[1] * z[2]
        yield {**row, "target": 200 + 3000 / (1 + math.exp(-load))}


def temperature(seed, rows=12_000):
    for z, row in machines(seed, rows):
        yield {"rms": row["rms"], "flow": row["flow"], "load": row["load"], "target": 60 + 2 * z[1] - z[3] + 0.5 * z[2]}


def by_hand(rows):
    """Standardizes all columns with the mean and deviation of all rows."""
    rows = list(rows)
    for name in rows[0]:
        values = [row[name] for row in rows]
        mean = sum(values) / len(values)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        rows = [{**row, name: (row[name] - mean) / deviation} for row in rows]
    return rows


def faults(seed, rows=30_000):
    """One row in a hundred is a fault."""
    return [
        {**row, "state": "fault" if 0.8 * z[0] + 0.6 * z[1] > 2.33 else "ok"} for z, row in machines(seed, rows)
    ]


def inverted(rows, since):
    """Swaps the labels from row `since` on, so that every earlier model is wrong."""
    other = {"worn": "ok", "ok": "worn"}
    return [row if i < since else {**row, "state": other[row["state"]]} for i, row in enumerate(rows)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class Outcome:
    def __init__(self, job, summaries):
        self.own = [summary["devices"][0]["own"] for summary in summaries]
        self.hits = [moving.hits_of_decisions(job.data(), i) for i in range(len(summaries))]
        self.logs = [job.log(i).read_text() for i in range(len(summaries))]

    def accuracy(self, device=0):
        """Returns the accuracy on the last rows, each predicted before it was learned."""
        return 100 * sum(self.hits[device][-LAST:]) / LAST


def learned(program, streams, target, *settings, seed=1, share=1):
    """Runs a device for each stream, with a configuration generated from the first thousand rows of the first stream. If
    local steps may explode, which loses rows, `share` ends the run before all rows are trained."""
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        job = Job(program, "changes", folder, stack, len(streams))
        job.produce(lines(streams[0][:1000]))
        job.configure(target, f"job.seed={seed}", *settings)
        for i, rows in enumerate(streams):
            job.produce(lines(rows[1000:] if i == 0 else rows), i)
        return Outcome(job, job.run_group([len(rows) for rows in streams], share=share))
