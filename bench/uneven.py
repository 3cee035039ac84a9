"""Time to a sustained accuracy on four live streams of 100, 50, 20 and 5 rows/s.

A sitting is a set of sides that run at the same time on the same rows. It uses about one core, which every round measures.
All sides together would use two, which delays those with the most steps.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

from batching import RATES, all_batchings, best_fixed, held_since, learning_rate
from processes import MNIST, ROOT, BenchError, Child, busy_seconds, wait_until
from sides import Case, OurDevice, RivalDevice, Run

CASE = Case("lenet5", len(RATES))
# Seconds between evaluations of the held-out rows (0.3 s of CPU each); a device of ours uses a separate thread.
LOOKS = {"ours": 2, "ours-default": 2, "ours-1s": 4, "ours-fixed": 10, "ours-64": 10, "rival-tick": 2, "rival-64": 10}
SITTINGS = [["ours", "rival-tick"], ["ours-1s", "ours-fixed", "ours-64", "rival-64", "ours-default"]]
SECONDS, QUICK_SECONDS = 240, 20  # length of the streams in each sitting


def our_sides():
    """Returns the batch policy of each group of ours; "ours" has the same strict tick as the rival."""
    ticks = {"ours": "tick-exact", "ours-default": "tick", "ours-1s": "tick-1s"}
    return {**ticks, "ours-fixed": best_fixed(), "ours-64": "fixed-64"}


def settings_of(batching):
    return [*all_batchings()[batching].settings, f"train.optimizer.lr={learning_rate(batching)}"]


def rival_sides():
    return {
        "rival-tick": ["--tick", 0.1, "--lr", learning_rate("tick-exact")],
        "rival-64": ["--batch", 64, "--lr", learning_rate("fixed-64")],
    }


def side_names():
    return [name for sitting in SITTINGS for name in sitting]


class OurGroup:
    """A group of Rivulet devices; one of them reports its held-out accuracy."""

    def __init__(self, run, stack, settings, every, seed):
        self._scores = []
        settings = [*settings, f"job.seed={seed}"]
        looks = [f"evaluate.held_out.path={MNIST}", f"evaluate.held_out.every={every}s"]
        self.devices = [
            OurDevice(CASE, index, run, settings + (looks if index == 0 else [])) for index in range(CASE.devices)
        ]
        for device in self.devices:
            stack.callback(device.child.close)

    def is_ready(self):
        return all(device.world() == CASE.devices for device in self.devices)

    def look(self):
        accuracy = self.devices[0].held_out_accuracy()
        if accuracy is not None:
            self._scores.append((time.time(), accuracy))

    def scores(self):
        return self._scores


class RivalGroup:
    """A group of the rival. Its first rank saves its parameters once per second; they are evaluated after the streams."""

    def __init__(self, run, stack, flags, every, seed):
        self._run, self._every, self._snapshots = run, every, run.folder / "snapshots"
        self._snapshots.mkdir()
        flags = [*flags, "--seed", seed, "--snapshots", self._snapshots]
        self.devices = [RivalDevice(CASE, index, run, flags) for index in range(CASE.devices)]
        for device in self.devices:
            stack.callback(device.child.close)

    def is_ready(self):
        """Whether all consumers run. Rows are sent, and steps made, only then."""
        for device in self.devices:
            device.child.check_running()
        return all(device.waits_for_rows() for device in self.devices)

    def look(self):
        pass

    def scores(self):
        command = [self._run.python, ROOT / "bench" / "rival" / "evaluate.py", self._snapshots, CASE.model, MNIST]
        command += [self._every]
        return json.loads(subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True).stdout)


def groups_of(names, kafka, python, topic, seed, folder, stack):
    def run_of(name):
        own = pathlib.Path(folder) / name
        own.mkdir()
        return Run(kafka, python, own, f"uneven-{os.getpid()}-{name}-{seed}", topic)

    groups = {}
    for name in names:
        if name in our_sides():
            groups[name] = OurGroup(run_of(name), stack, settings_of(our_sides()[name]), LOOKS[name], seed)
        elif python:
            groups[name] = RivalGroup(run_of(name), stack, rival_sides()[name], LOOKS[name], seed)
    return groups


def topics_of(number):
    """Returns the topics of a round, one for each sitting."""
    return [f"uneven-{number}-{sitting}" for sitting in range(len(SITTINGS))]


def measure_uneven(kafka, python, topics, seconds, seed):
    """Measures one round. Returns a sample for each side; only ours without a Python for the rival."""
    samples = {}
    for names, topic in zip(SITTINGS, topics, strict=True):

        def start(folder, stack, names=names, topic=topic):
            return groups_of(names, kafka, python, topic, seed, folder, stack)

        samples |= measure_sitting(start, kafka, topic, seconds, seed)
    return samples


def measure_sitting(start, kafka, topic, seconds, seed):
    """Measures the groups that `start(folder, stack)` returns by name. Returns a sample for each."""
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        groups = start(folder, stack)
        for name, group in groups.items():
            wait_until(group.is_ready, 180, f"group of {name}")
        cpu = {name: cpu_of(group) for name, group in groups.items()}
        busy = busy_seconds()
        began, arrived = play(kafka, topic, groups, seconds, seed, folder)
        took = time.time() - began
        cpu = {name: cpu_of(group) - cpu[name] for name, group in groups.items()}
        others = max(0.0, busy_seconds() - busy - sum(cpu.values()))
        used = {name: sum(device.rows() for device in group.devices) / arrived for name, group in groups.items()}
        for group in groups.values():
            for device in group.devices:
                device.child.close()
        return {
            name: {
                **learned(group, began, seconds),
                "used": used[name],
                "cores": cpu[name] / took,
                "other_cores": others / took,
            }
            for name, group in groups.items()
        }


def cpu_of(group):
    return sum(device.child.cpu_seconds() for device in group.devices)


def learned(group, began, seconds):
    scores = [(when - began, accuracy) for when, accuracy in group.scores() if when <= began + seconds]
    return {
        "good_after_s": held_since(scores, seconds),
        "cap_s": seconds,
        "best": max((score for _, score in scores), default=0.0),
        "end": scores[-1][1] if scores else 0.0,
    }


def play(kafka, topic, groups, seconds, seed, folder):
    """Plays the streams. Returns the start time and the number of rows."""
    log = pathlib.Path(folder) / "feed.log"
    command = kafka.feed_command(RATES, "--seconds", seconds, "--seed", seed, topic=topic)
    feeder = Child(command, log)
    began = time.time()
    try:
        while time.time() < began + seconds:
            for group in groups.values():
                for device in group.devices:
                    device.child.check_running()
                group.look()
            time.sleep(0.5)
        feeder.wait(30)
    finally:
        feeder.close()
    time.sleep(1.5)  # the last rows
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    if not lines:
        raise BenchError(f"rivulet feed: {log.read_text()[-1000:]}")
    return began, json.loads(lines[-1])["records"]
