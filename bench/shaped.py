"""Rows per second and bytes at the interface of devices on shaped links in network namespaces.

Rows come from memory, so the links carry only the devices' exchanges, except for the side that ships its rows. Bytes are
counted by the kernel, including headers and the control topic.
"""

import contextlib
import ctypes
import dataclasses
import json
import pathlib
import subprocess
import tempfile
import threading
import time

from processes import BUILD, MNIST, ROOT, BenchError, Child, Helper, wait_until
from sides import BATCH, Case, OurDevice, RivalDevice, Run

MODEL = "lenet5"
ROWS = 51_200  # rows of a run, of all devices
ROW_BYTES = 785
CLONE_NEWNET = 0x40000000


@dataclasses.dataclass(frozen=True)
class Node:
    """One end of a link."""

    space: str
    address: str

    def command(self, words):
        return ["ip", "netns", "exec", self.space, *words]

    def link(self):
        """Returns the interface's name and the bytes sent so far."""
        words = ["ip", "-n", self.space, "-j", "-s", "link", "show"]
        shown = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        link = next(link for link in shown if link["ifname"] != "lo")
        return link["ifname"], link["stats64"]["tx"]["bytes"]

    def inside(self, work):
        """Calls `work` in this network namespace and returns its result."""
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
            raise BenchError(f"cannot enter the network namespace {self.space}")
        return results[0]


class Links:
    """Namespaces with shaped links, and a real Kafka outside them."""

    def __init__(self, folder, devices, mbit):
        self._helper = Helper([BUILD / "bench_links", devices, mbit], folder)
        self.brokers, *nodes = self._helper.line.split()
        self.nodes = [Node(*node.split("=")) for node in nodes]

    def set_rate(self, mbit):
        """Sets the rate of all links."""
        self._helper.tell(mbit)

    def close(self):
        self._helper.close()


class OurEnd(OurDevice):
    """A Rivulet device; its status page is on the loopback of its namespace."""

    def __init__(self, case, index, run, node, settings, rows):
        self._node, self._state = node, run.folder / f"device-{index}" / "final.state"
        more = ["--brokers", run.kafka.brokers, "--partitions", index if case.agree else 0]
        more += ["--peer-bind", node.address]
        if rows:
            more += ["--stop-after", f"rows={rows}"]
        super().__init__(case, index, run, settings, more, node.command)

    def _page(self, path):
        return self._node.inside(lambda: super(OurEnd, self)._page(path))

    def accuracy(self):
        """Returns the accuracy of its final state."""
        command = [BUILD / "rivulet", "evaluate", "--config", ROOT / "bench" / "device.toml", "--json"]
        command += ["--set", "job.devices=1", self._state, MNIST]
        ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(ran.stdout.splitlines()[-1])["accuracy"]

    def close(self):
        self.child.close()


class RivalEnd(RivalDevice):
    def __init__(self, case, index, run, node, flags, rows):
        self._run, self._case, self._snapshots = run, case, run.folder / "snapshots"
        self._snapshots.mkdir(exist_ok=True)
        more = ["--store", f"{run.kafka.nodes[0].address}:29500", "--interface", node.link()[0], "--mnist", MNIST]
        if rows:
            more += ["--rows", rows // case.devices, "--snapshots", self._snapshots]
        super().__init__(case, index, run, [*more, *flags], node.command)

    def accuracy(self):
        command = [self._run.python, ROOT / "bench" / "rival" / "evaluate.py", self._snapshots, self._case.model, MNIST, 1e9]
        ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True)
        return json.loads(ran.stdout)[-1][1]

    def close(self):
        self.child.close()


class Shipper:
    """Sends its rows and trains nothing. The last one also runs the trainer, outside the links."""

    def __init__(self, case, index, run, node):
        topics = [f"{run.name}-{i}" for i in range(case.devices)]
        command = [run.python, ROOT / "bench" / "rival" / "ship.py", "--rank", index, "--world", case.devices]
        command += ["--brokers", run.kafka.brokers, "--topic", topics[index], "--mnist", MNIST]
        self.child = Child(node.command([str(word) for word in command]), run.folder / f"ship-{index}.log")
        self._trainer = None
        if index == case.devices - 1:
            trainer = Run(run.kafka, run.python, run.folder, run.name, ",".join(topics))
            self._trainer = RivalDevice(Case(case.model, 1, agree=False), 0, trainer)

    def rows(self):
        return self._trainer.rows() if self._trainer else 0

    def close(self):
        self.child.close()
        if self._trainer:
            self._trainer.child.close()


@dataclasses.dataclass(frozen=True)
class Side:
    """`start(case, index, run, node, learning_rate, seed, rows)` starts an end. It ends after `rows` rows of all ends; None: at
    close()."""

    name: str
    start: object
    agree: bool = True  # False: each device trains alone
    seconds_to_settle: float = 2
    slowest: float = 0  # Mbit/s; the side is skipped on slower links, where a step takes too long
    learns: bool = True  # whether its accuracy is measured
    period: int = 1  # steps between exchanges, if fixed: a measurement starts and ends with an exchange


def our_side(name, settings, **more):
    def start(case, index, run, node, rate, seed, rows):
        given = [f"train.optimizer.lr={rate}", f"job.seed={seed}"]
        return OurEnd(case, index, run, node, [*settings, *given], rows)

    return Side(name, start, **more)


def rival_side(name, *flags, **more):
    def start(case, index, run, node, rate, seed, rows):
        return RivalEnd(case, index, run, node, [*flags, "--lr", rate, "--seed", seed], rows)

    return Side(name, start, **{"slowest": 1.0, **more})


def local_side(steps, **more):
    return rival_side(f"rival, post-local SGD {steps}", "--local-steps", steps, period=steps, **more)


def shipper_side():
    return Side("rows to one trainer", lambda case, index, run, node, *_: Shipper(case, index, run, node), learns=False)


AGREE_BY_AUTO = ["sync.policy=auto", "compression.policy=auto", "sync.collective=auto"]
DEFAULTS = [*AGREE_BY_AUTO, "checkpoint.every.interval=30s"]
OURS, ALONE, SHIPPED = "ours, default settings", "ours, each alone", "rows to one trainer"
WAITING = "ours, no overlap"
SIDES = [
    our_side(OURS, DEFAULTS, seconds_to_settle=30),
    our_side(WAITING, [*DEFAULTS, "sync.overlap=never"], seconds_to_settle=15, learns=False),
    our_side(ALONE, ["checkpoint.every.interval=30s"], agree=False, learns=False),
    our_side("ours, dense", ["sync.collective=sum"], slowest=10),
    rival_side("rival", "--hook", "none", slowest=10),
    rival_side("rival, fp16", "--hook", "fp16", slowest=10),
    rival_side("rival, PowerSGD 4", "--hook", "powersgd4"),
    rival_side("rival, PowerSGD 2", "--hook", "powersgd2"),
    rival_side("rival, PowerSGD 1", "--hook", "powersgd1", slowest=0),
    local_side(4),
    local_side(10, slowest=0),
    local_side(32, slowest=0),  # the maximum number of local steps of ours
    shipper_side(),
]
GIVEN_TIME = 300  # seconds until all have made a step, and again until two more


def rows_of(ends):
    """Returns the trained rows of all ends. Shippers train only through the last one."""
    rows = [end.rows() for end in ends]
    if not all(rows) and not isinstance(ends[0], Shipper):
        raise BenchError("a device does not report its rows")
    return sum(rows)


def wait_for_period(end, period):
    """Waits for the next exchange of an end that exchanges every `period` steps."""
    if period > 1:
        past = end.rows() // (period * BATCH)
        wait_until(lambda: end.rows() // (period * BATCH) > past, GIVEN_TIME, "next exchange", every=0.005)


@dataclasses.dataclass(frozen=True)
class Look:
    """Time, trained rows of all devices, and bytes sent over their links."""

    seconds: float
    rows: float
    sent: int

    @staticmethod
    def at(devices, nodes):
        """Reads the counters. Reading takes time, so the middle counts."""
        began, rows = time.monotonic(), rows_of(devices)
        sent = sum(node.link()[1] for node in nodes)
        return Look((began + time.monotonic()) / 2, (rows + rows_of(devices)) / 2, sent)


@contextlib.contextmanager
def started(side, links, python, rate, seed, rows=None):
    """Starts the side's ends, one on each link."""
    case = Case(MODEL, len(links.nodes), agree=side.agree, kafka=False)
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        name = pathlib.Path(folder).name.lower().replace("_", "-")
        run = Run(links, python, pathlib.Path(folder), name, "rows")
        ends = []
        for index, node in enumerate(links.nodes):
            ends.append(side.start(case, index, run, node, rate, seed, rows))
            stack.callback(ends[-1].close)
        yield ends


def measure_rate(side, links, python, rate, seed, seconds):
    """Measures a settled side for `seconds`, or until each end has made two steps."""
    with started(side, links, python, rate, seed) as ends:
        steps = 2 * len(ends) * BATCH

        def have(rows):
            for end in ends:
                end.child.check_running()
            return sum(end.rows() for end in ends) >= rows

        wait_until(lambda: have(steps), GIVEN_TIME, f"step of {side.name}")
        time.sleep(side.seconds_to_settle)
        wait_for_period(ends[0], side.period)
        first = Look.at(ends, links.nodes)
        time.sleep(seconds)
        wait_until(lambda: have(first.rows + steps), GIVEN_TIME, f"two more steps of {side.name}")
        wait_for_period(ends[0], side.period)
        last = Look.at(ends, links.nodes)
    rows, sent = last.rows - first.rows, last.sent - first.sent
    return {
        "rows_per_s": rows / (last.seconds - first.seconds),
        "bytes_per_step": sent / (rows / BATCH),
        "edge_ratio": sent / (rows * ROW_BYTES),
    }


def wait_for_rows(ends):
    def all_have():
        for end in ends:
            end.child.check_running()
        return all(end.rows() for end in ends)

    wait_until(all_have, GIVEN_TIME, "first rows of each device")


STREAMS = [100, 50, 20, 5]  # rows/s of each device
BUDGET = 0.1  # of the group's stream, in equal parts


def measure_budget(links, python, seconds, windows):
    """Returns for each window the largest share of its budget that a device sent, counted at its interface."""

    def start(case, index, run, node, *_):
        given = ["batch.policy=stream", "batch.max_wait=100ms", "train.optimizer.lr=0.01", "checkpoint.every.interval=30s"]
        given += [*AGREE_BY_AUTO, f'sync.budget="{BUDGET} of stream"', f"source.rate={STREAMS[index]}"]
        return OurEnd(case, index, run, node, given, None)

    side = Side("budget", start)
    used = []
    with started(side, links, python, 0, 0) as ends:
        wait_for_rows(ends)
        for _ in range(windows):
            rows, sent = rows_of(ends), [node.link()[1] for node in links.nodes]
            time.sleep(seconds)
            for end in ends:
                end.child.check_running()
            may = BUDGET * ROW_BYTES * (rows_of(ends) - rows) / len(ends)
            used.append(max(node.link()[1] - before for node, before in zip(links.nodes, sent, strict=True)) / may)
            print(f"  {seconds} s: {used[-1]:.2f} of the budget", flush=True)
    return used


CHANGES = {0: 100, 5: 10, 10: 1, 15: 100}  # Mbit/s, from that second on
CHANGING_SECONDS, CHANGING_RATE, CHANGING_HOLDS = 40, 500, 0.95  # rows/s of a device; share of the held-out rows


def measure_changing(way, links, held_out, rate, seed):
    """Measures the seconds from the first steps to the sustained target accuracy at the first device, or None. Rows arrive at
    the rate of the simulated devices; a delayed device trains its backlog at full speed."""

    def start(case, index, run, node, *_):
        given = [f"train.optimizer.lr={rate}", f"job.seed={seed}", f"source.rate={CHANGING_RATE}"]
        given += ["batch.policy=fixed", f"batch.rows={BATCH}", f"batch.max={BATCH}", f"buffer.rows={4 * BATCH}"]
        given += [f"{key}={value}" for key, value in way.items()]
        if index == 0:
            given += [f"evaluate.held_out.path={held_out}", "evaluate.held_out.every=500ms"]
        return OurEnd(case, index, run, node, given, None)

    links.set_rate(CHANGES[0])
    with started(Side("changing", start), links, None, rate, seed) as ends:
        wait_for_rows(ends)
        began, holds, left = time.monotonic(), None, dict(CHANGES)
        rows, sent = rows_of(ends), sum(node.link()[1] for node in links.nodes)
        while (now := time.monotonic() - began) < CHANGING_SECONDS:
            for second in [second for second in left if second <= now]:
                links.set_rate(left.pop(second))
            if (ends[0].held_out_accuracy() or 0) < CHANGING_HOLDS:
                holds = None
            elif holds is None:
                holds = now
            time.sleep(0.1)
        rows, sent = rows_of(ends) - rows, sum(node.link()[1] for node in links.nodes) - sent
        return {"holds": holds, "accuracy": ends[0].held_out_accuracy(), "bytes_per_step": sent / (rows / BATCH), "rows": rows}


def measure_accuracy(side, links, python, rate, seed):
    """Returns the accuracy after ROWS rows, of the first device; all have the same state."""
    with started(side, links, python, rate, seed, ROWS) as ends:
        for end in ends:
            end.child.wait(GIVEN_TIME)
        return {"accuracy": ends[0].accuracy()}
