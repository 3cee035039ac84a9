"""Four streams of 100, 50, 20 and 5 rows/s: who learns how soon? All sides read the same rows at the same time, live.

Together they need a small part of two cores, so they do not wait for each other; the broker and the feeder are shared.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

from processes import MNIST, ROOT, BenchError, Child, wait_until
from sides import Case, OurDevice, RivalDevice, Run

RATES = [100, 50, 20, 5]  # rows/s
GOOD = 0.9
CASE = Case("lenet5", len(RATES))
TICK = 0.1  # seconds
# Learning rates that served each way of making batches best where its stream was replayed without agreement.
OURS = ["batch.policy=stream", f"batch.tick={TICK}s", "train.optimizer.lr=0.01"]
OURS += [f"evaluate.held_out.path={MNIST}", "evaluate.held_out.every=1s"]
RIVALS = {
    "rival-tick": ["--tick", TICK, "--lr", 0.01],
    "rival-8": ["--batch", 8, "--lr", 0.01],
    "rival-64": ["--batch", 64, "--lr", 0.05],
}


def held_since(scores, cap):
    """Seconds from when on every later score is good; `cap` when the last one is not, or there is none."""
    since = cap
    for seconds, accuracy in sorted(scores, reverse=True):
        if accuracy < GOOD:
            return since
        since = seconds
    return since


class OurGroup:
    def __init__(self, run, stack):
        self._scores = []
        self.devices = [OurDevice(CASE, index, run, OURS) for index in range(CASE.devices)]
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
    def __init__(self, run, stack, flags):
        self._run, self._snapshots = run, run.folder / "snapshots"
        self._snapshots.mkdir()
        flags = [*flags, "--snapshots", self._snapshots]
        self.devices = [RivalDevice(CASE, index, run, flags) for index in range(CASE.devices)]
        for device in self.devices:
            stack.callback(device.child.close)

    def is_ready(self):
        """Rows come only when all have their consumer; nobody steps before."""
        for device in self.devices:
            device.child.check_running()
        return all(device.waits_for_rows() for device in self.devices)

    def look(self):
        pass

    def scores(self):
        command = [self._run.python, ROOT / "bench" / "rival" / "evaluate.py", self._snapshots, CASE.model, MNIST]
        return json.loads(subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True).stdout)


def measure_uneven(kafka, python, topic, seconds, seed):
    """One round: a sample for each side."""
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        groups = {}
        for name in ["ours", *RIVALS]:
            own = pathlib.Path(folder) / name
            own.mkdir()
            run = Run(kafka, python, own, f"uneven-{os.getpid()}-{seed}", topic)
            groups[name] = OurGroup(run, stack) if name == "ours" else RivalGroup(run, stack, RIVALS[name])
        for name, group in groups.items():
            wait_until(group.is_ready, 180, f"group of {name}")
        began, arrived = play(kafka, topic, groups, seconds, seed, folder)
        samples = {}
        for name, group in groups.items():
            used = sum(device.rows() for device in group.devices) / arrived
            scores = [(when - began, accuracy) for when, accuracy in group.scores()]
            samples[name] = {
                "good_after_s": held_since(scores, seconds),
                "used": used,
                "best": max((score for _, score in scores), default=0.0),
            }
        return samples


def play(kafka, topic, groups, seconds, seed, folder):
    """Plays the streams. When that began, and how many rows came."""
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
    time.sleep(1)  # the last rows
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    if not lines:
        raise BenchError(f"rivulet feed: {log.read_text()[-1000:]}")
    return began, json.loads(lines[-1])["records"]
