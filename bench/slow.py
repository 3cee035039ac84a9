"""Two devices on links of 10 Mbit/s: how fast, for how many bytes a step, and how good after the same number of rows?

Rows come from memory, so that the links carry nothing but what the devices tell each other. Rates and bytes are those
of the middle four fifths of the steps; bytes are what the kernel sent, headers and the control topic included.
"""

import contextlib
import ctypes
import dataclasses
import functools
import json
import pathlib
import subprocess
import tempfile
import threading
import time

from processes import BUILD, MNIST, ROOT, BenchError, Helper, wait_until
from sides import BATCH, Case, OurDevice, RivalDevice, Run

MBIT = 10
CASE = Case("lenet5", 2, kafka=False)
STEPS = 100  # of a run
CLONE_NEWNET = 0x40000000
OURS = {"ours": [], "ours-sum": ["sync.collective=sum"]}  # the default gathers
RIVALS = {
    "rival": [],
    "rival-fp16": ["--hook", "fp16"],
    "rival-powersgd2": ["--hook", "powersgd2"],
    "rival-powersgd1": ["--hook", "powersgd1"],
}


@dataclasses.dataclass(frozen=True)
class Node:
    """One end of a link."""

    space: str
    address: str

    def command(self, words):
        return ["ip", "netns", "exec", self.space, *words]

    def link(self):
        """Name and bytes sent so far."""
        words = ["ip", "-n", self.space, "-j", "-s", "link", "show"]
        shown = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        link = next(link for link in shown if link["ifname"] != "lo")
        return link["ifname"], link["stats64"]["tx"]["bytes"]

    def inside(self, work):
        """What `work` returns when it is called in this network."""
        results = []

        def body():
            with open(f"/run/netns/{self.space}") as space:
                if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) != 0:
                    return
            results.append(work())

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if not results:
            raise BenchError(f"cannot look into the network {self.space}")
        return results[0]


class Links:
    """Namespaces with shaped links, and a real Kafka outside of them."""

    def __init__(self, folder):
        self._helper = Helper([BUILD / "bench_links", CASE.devices, MBIT], folder)
        self.brokers, *nodes = self._helper.line.split()
        self.nodes = [Node(*node.split("=")) for node in nodes]

    def close(self):
        self._helper.close()


class OurEnd(OurDevice):
    """Its status page is on its own loopback."""

    def __init__(self, index, run, node, steps, settings):
        self._node = node
        self._state = run.folder / f"device-{index}" / "final.state"
        more = ["--brokers", run.kafka.brokers, "--partitions", index, "--peer-bind", node.address]
        more += ["--stop-after", f"rounds={steps}"]
        super().__init__(CASE, index, run, settings, more, node.command)

    def _page(self, path):
        return self._node.inside(lambda: super(OurEnd, self)._page(path))

    def accuracy(self):
        command = [BUILD / "rivulet", "evaluate", "--config", ROOT / "bench" / "device.toml", "--json"]
        command += ["--set", "job.devices=1", self._state, MNIST]
        ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(ran.stdout.splitlines()[-1])["accuracy"]


class RivalEnd(RivalDevice):
    def __init__(self, index, run, node, steps, flags):
        self._run, self._snapshots = run, run.folder / "snapshots"
        self._snapshots.mkdir(exist_ok=True)
        more = ["--store", f"{run.kafka.nodes[0].address}:29500", "--interface", node.link()[0], "--mnist", MNIST]
        more += ["--rows", steps * BATCH, "--snapshots", self._snapshots]
        super().__init__(CASE, index, run, [*more, *flags], node.command)

    def accuracy(self):
        command = [self._run.python, ROOT / "bench" / "rival" / "evaluate.py", self._snapshots, CASE.model, MNIST]
        ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True)
        return json.loads(ran.stdout)[-1][1]


@dataclasses.dataclass(frozen=True)
class Look:
    """When, after how many steps of a device, and what its link had carried then."""

    seconds: float
    steps: float
    sent: int

    @staticmethod
    def at(device, node, steps):
        """Once the device has made so many. Looking at the link takes a while, too: the middle of it counts."""
        wait_until(lambda: device.rows() >= steps * BATCH, 120, f"step {steps}", every=0.003)
        began, rows = time.monotonic(), device.rows()
        sent = node.link()[1]
        return Look((began + time.monotonic()) / 2, (rows + device.rows()) / 2 / BATCH, sent)


def measure_side(start, links, python, steps):
    """Starts both ends with `start`, and looks at the first one's steps and bytes."""
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        name = pathlib.Path(folder).name.lower().replace("_", "-")
        run = Run(links, python, pathlib.Path(folder), name, "rows")
        devices = []
        for index, node in enumerate(links.nodes):
            devices.append(start(index, run, node, steps))
            stack.callback(devices[-1].child.close)
        first = Look.at(devices[0], links.nodes[0], steps // 10)
        last = Look.at(devices[0], links.nodes[0], steps * 9 // 10)
        for device in devices:
            device.child.wait(60)
        made, took = last.steps - first.steps, last.seconds - first.seconds
        return {
            "rows_per_s": made * CASE.devices * BATCH / took,
            "step_ms": 1e3 * took / made,
            "kb_per_step": (last.sent - first.sent) / made / 1e3,
            "accuracy": devices[0].accuracy(),
        }


def side_names():
    return [*OURS, *RIVALS]


def all_sides(python):
    """By name, what starts an end of it."""
    sides = {name: functools.partial(OurEnd, settings=settings) for name, settings in OURS.items()}
    if python:
        sides |= {name: functools.partial(RivalEnd, flags=flags) for name, flags in RIVALS.items()}
    return sides


def measure_slow(python, number, steps=STEPS):
    """One round: a sample for each side, in turns; who begins changes. Without a Python for the rival only ours."""
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        links = Links(folder)
        stack.callback(links.close)
        sides = list(all_sides(python).items())
        begin = number % len(sides)
        return {name: measure_side(start, links, python, steps) for name, start in sides[begin:] + sides[:begin]}
