"""The two sides of a comparison. Each starts its processes for a case; they are measured from outside."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import struct
import tempfile
import time
import urllib.error
import urllib.request

from processes import BUILD, MNIST, ROOT, BenchError, Child, busy_seconds, free_port, wait_until

BATCH = 64


@dataclasses.dataclass(frozen=True)
class Case:
    """What the devices of a side do. Without `agree` each trains alone; without `kafka` rows come from memory."""

    model: str
    devices: int
    agree: bool = True
    kafka: bool = True


class OurDevice:
    """One `rivulet run`. `inside` wraps the command, for example to run it in a network namespace."""

    def __init__(self, case, index, run, settings=(), more=(), inside=list):
        self._port = free_port()
        name = run.name if case.agree else f"{run.name}-{index}"
        group = case.devices if case.agree else 1
        command = [BUILD / "rivulet", "run", "--config", ROOT / "bench" / "device.toml", "--id", f"device-{index}"]
        command += [
            "--devices",
            group,
            "--data-dir",
            run.folder / f"device-{index}",
            "--http",
            f"127.0.0.1:{self._port}",
        ]
        command += ["--set", f"job.name={name}", "--set", f"model.name={case.model}"]
        if case.kafka:
            command += ["--brokers", run.kafka.brokers, "--topic", run.topic, "--partitions", index]
        else:
            command += ["--set", "source.type=file", "--set", f"source.path={MNIST}", "--set", "source.repeat=true"]
        command += [word for setting in settings for word in ("--set", setting)]
        self.child = Child(inside([*command, *more]), run.folder / f"device-{index}.log")

    def _page(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError):
            return ""  # does not listen yet

    def rows(self):
        found = re.search(r"^rivulet_rows_trained_total(?:\{[^}]*\})? (\S+)$", self._page("/metrics"), re.MULTILINE)
        return float(found.group(1)) if found else 0

    def _status(self, key):
        return json.loads(self._page("/api/v1/status") or "{}").get(key)

    def first_step(self):
        return self._status("first_step_s")

    def world(self):
        """Devices of the formed group; 0 or None before."""
        return self._status("world")

    def held_out_accuracy(self):
        return self._status("held_out_accuracy")


class RivalDevice:
    """One rank of bench/rival. `inside` wraps the command, for example to run it in a network namespace."""

    def __init__(self, case, index, run, flags=(), inside=list):
        self._progress = run.folder / f"rank-{index}.progress"
        command = [run.python, ROOT / "bench" / "rival" / "rank.py", "--rank", index, "--world", case.devices]
        command += ["--store", f"127.0.0.1:{run.port}", "--model", case.model, "--batch", BATCH]
        command += ["--progress", self._progress]
        command += [] if case.agree else ["--no-ddp"]
        if case.kafka:
            command += ["--brokers", run.kafka.brokers, "--topic", run.topic, "--partition", index]
        else:
            command += ["--no-kafka"]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self.child = Child(inside([*command, *flags]), run.folder / f"rank-{index}.log", env=environment)

    def waits_for_rows(self):
        """Whether it has joined its group and started its consumer."""
        return self._progress.exists()

    def _read(self):
        with contextlib.suppress(FileNotFoundError, struct.error):
            return struct.unpack("3d", self._progress.read_bytes())
        return (0, 0, 0)

    def rows(self):
        return self._read()[2]

    def first_step(self):
        return self._read()[0]


@dataclasses.dataclass
class Run:
    """Parameters shared by the devices of one measurement."""

    kafka: object
    python: str
    folder: pathlib.Path
    name: str
    topic: str
    port: int = dataclasses.field(default_factory=free_port)


class Side:
    """One side; `start(case, index, run)` starts a device."""

    def __init__(self, start, kafka, python=""):
        self._start, self._kafka, self._python = start, kafka, python

    def measure(self, case, seconds):
        """Starts the devices of the case, waits for their first steps and measures them for `seconds`. Returns a sample."""
        with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
            name = pathlib.Path(folder).name.lower().replace("_", "-")
            run = Run(self._kafka, self._python, pathlib.Path(folder), name, self._kafka.topic)
            devices = []
            for index in range(case.devices):
                devices.append(self._start(case, index, run))
                stack.callback(devices[-1].child.close)
            wait_until(lambda: self._all_train(devices), 120, "first step of all devices")
            time.sleep(min(1, seconds / 2))  # allocators, caches and client queues settle
            sample = look_at(devices, seconds)
            if case.kafka:
                self._check_streams(devices)
            return sample

    @staticmethod
    def _all_train(devices):
        for device in devices:
            device.child.check_running()
        return all(device.rows() >= 10 * BATCH for device in devices)

    def _check_streams(self, devices):
        """Raises BenchError if a stream ended, because it would have limited the rate."""
        for index, device in enumerate(devices):
            device.child.check_running()
            if device.rows() > self._kafka.rows[index] - BATCH:
                raise BenchError(f"partition {index} ended after {device.rows():.0f} rows: the measurement needs more")


def counts_of(devices):
    return sum(device.rows() for device in devices), sum(device.child.cpu_seconds() for device in devices)


def look_at(devices, seconds):
    began, busy = time.monotonic(), busy_seconds()
    rows, cpu = counts_of(devices)
    time.sleep(seconds)
    rows_then, cpu_then = counts_of(devices)
    wall, busy = time.monotonic() - began, busy_seconds() - busy
    rows, cpu = rows_then - rows, cpu_then - cpu
    if rows <= 0:
        raise BenchError("no rows were trained")
    pss = [device.child.pss_bytes() for device in devices]
    return {
        "rows_per_s": rows / wall,
        "cpu_us_per_row": 1e6 * cpu / rows,
        "step_ms": 1e3 * wall * BATCH * len(devices) / rows,
        "pss_mib": sum(total for total, _ in pss) / len(devices) / 2**20,
        "pss_without_cuda_mib": sum(total - cuda for total, cuda in pss) / len(devices) / 2**20,
        "first_step_s": max(device.first_step() for device in devices),
        "other_cores": max(0.0, (busy - cpu) / wall),  # the broker and other programs
    }


def all_sides(kafka, rival_python=""):
    """Returns the sides by name; only Rivulet's without a Python for the rival."""
    sides = {"ours": Side(OurDevice, kafka)}
    if rival_python:
        for name, flags in {"rival": [], "rival-batch": ["--batch-scheduling"]}.items():
            sides[name] = Side(
                lambda case, index, run, flags=flags: RivalDevice(case, index, run, flags), kafka, rival_python
            )
    return sides
