"""Groups that change their size: Rivulet, PyTorch's elastic agent, and PyTorch's reconfigure over Gloo, in one scenario.

Three devices train on live streams. One is killed for good, another is added, one is told to leave. Everything is observed from
outside: the step and the size of the group, of every device.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from processes import BUILD, ROOT, BenchError, Child, free_port, wait_until

RIVAL = ROOT / "bench" / "rival" / "elastic.py"
BATCH, LEAST, MOST = 64, 2, 4
RATE = 800  # rows/s of each stream
CALM = 20  # steps between events
PATIENCE = 90  # s
INTERVAL = 0.005  # s between looks
SAVED_EVERY = 1  # s, on both sides

# Timeouts of the agent, the shortest that whole seconds allow. By default a device that is gone costs 15 s (three missed beats
# of 5 s), and every group waits 30 s for further devices.
RENDEZVOUS = "is_host=0,keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=1,join_timeout=120"


class OurMember:
    def __init__(self, index, run):
        self._url = f"http://127.0.0.1:{free_port()}"
        command = [BUILD / "rivulet", "run", "--config", ROOT / "bench" / "device.toml", "--id", f"device-{index}"]
        command += ["--devices", f"{LEAST}-{MOST}", "--wanted", 3, "--data-dir", run.folder / f"device-{index}"]
        command += ["--http", self._url.removeprefix("http://"), "--set", f"job.name={run.topic}"]
        command += ["--brokers", run.kafka.brokers, "--topic", run.topic, "--partitions", index]
        command += ["--set", f"checkpoint.every.interval={SAVED_EVERY}s"]
        self.child = Child(command, run.folder / f"device-{index}.log")

    def look(self):
        """Returns the step and the size of the group; (0, 0) before."""
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/status", timeout=5) as answer:
                page = json.loads(answer.read())
        except (urllib.error.URLError, OSError):
            return 0, 0
        return page.get("steps") or 0, page.get("world") or 0


class RivalMember:
    """A worker, or the agent that starts it. `words` is the command before the arguments of elastic.py."""

    def __init__(self, index, run, words, way, more=()):
        self._progress = run.folder / f"progress-{index}"
        command = [*words, RIVAL, way, "--brokers", run.kafka.brokers, "--topic", run.topic]
        command += ["--partition", index, "--batch", BATCH, "--progress", self._progress, *more]
        # Agents that share the store with their workers let a second group read the addresses of the first one, and hang.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                       "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        self.child = Child(command, run.folder / f"member-{index}.log", env=environment, start_new_session=True)

    def look(self):
        with contextlib.suppress(FileNotFoundError, struct.error):
            return struct.unpack("2d", self._progress.read_bytes())
        return 0, 0


class Store:
    """The key-value store of PyTorch's members, in a process of its own: in the first member it would die with it."""

    def __init__(self, run):
        self.address = f"127.0.0.1:{free_port()}"
        self._child = Child([run.python, RIVAL, "store", "--store", self.address], run.folder / "store.log")
        wait_until(lambda: (run.folder / "store.log").read_text().strip(), 30, "store")

    def close(self):
        self._child.close()


def agent(index, run):
    words = [run.python, "-m", "torch.distributed.run", "--nnodes", f"{LEAST}:{MOST}", "--nproc-per-node", 1]
    words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", run.store.address, "--rdzv-id", run.topic]
    words += ["--rdzv-conf", RENDEZVOUS, "--monitor-interval", 0.1, "--max-restarts", 100]
    more = ["--checkpoint", run.folder / "state", "--every", SAVED_EVERY, "--deadline", 30]
    return RivalMember(index, run, words, "restart", more)


def reconfigured(index, run):
    return RivalMember(index, run, [run.python], "reconfigure", ["--store", run.store.address, "--least", LEAST])


WAYS = {"ours": OurMember, "torchrun": agent, "reconfigure": reconfigured}


@dataclasses.dataclass
class Run:
    kafka: object
    python: str
    folder: pathlib.Path
    topic: str
    store: object = None


class Watched:
    """The members, and what a thread has seen of each: [time, step, size], whenever one of them changed."""

    def __init__(self, start, run):
        self._start, self._run = start, run
        self._members, self.seen, self._ends = {}, {}, False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def add(self, index):
        self.seen[index] = [(time.monotonic(), 0, 0)]
        self._members[index] = self._start(index, self._run)

    def _watch(self):
        while not self._ends:
            for index, member in list(self._members.items()):
                step, world = member.look()
                if self.seen[index][-1][1:] != (step, world) and world:
                    self.seen[index].append((time.monotonic(), step, world))
            time.sleep(INTERVAL)

    def kill(self, index):
        """With all its processes, as a machine that loses its power."""
        member = self._members.pop(index)
        for pid in family(member.child.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        member.child.close()

    def leave(self, index):
        """Returns the exit code after SIGTERM, and the time until the exit."""
        began, member = time.monotonic(), self._members[index]
        os.kill(member.child.pid, 15)
        code = member.child.ended(PATIENCE)
        self._members.pop(index, None)
        return code, time.monotonic() - began

    def train(self, indices, steps=CALM):
        """Waits until these are a group and have made so many steps."""
        for index in indices:
            since = len(self.seen[index])

            def done(index=index, since=since):
                self._members[index].child.check_running()
                return sum(world == len(indices) for _, _, world in self.seen[index][since:]) > steps

            wait_until(done, PATIENCE, f"{steps} steps of a group of {len(indices)}")

    def close(self):
        self._ends = True
        self._thread.join()
        for index in list(self._members):
            self.kill(index)


def family(pid):
    """Returns this process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            found += [int(child) for child in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    return found


def change_of(seen, began, until):
    """Returns the longest time without a step from `began` on, and the steps that were lost, of one survivor."""
    before = [(when, step) for when, step, _ in seen if when <= began][-1:]
    after = [(when, step) for when, step, _ in seen if began < when <= until]
    line = before + after
    gap = max((b[0] - a[0] for a, b in zip(line, line[1:])), default=until - began)
    lost = max((a[1] - b[1] for a, b in zip(line, line[1:])), default=0)
    return gap, max(0, lost)


EVENTS = ("killed for good", "added", "stopped by SIGTERM")


def scenario(watched):
    """Returns for each event the gap of the others, and the steps that they lost."""
    changes = {}

    def event(name, work, others, group):
        watched.train(others)
        began = time.monotonic()
        result = work()
        watched.train(group)
        parts = [change_of(watched.seen[index], began, time.monotonic()) for index in others if index in group]
        gap, lost = max(gap for gap, _ in parts), max(lost for _, lost in parts)
        changes[name] = {"gap": gap, "steps": lost, "rows": lost * BATCH * len(others)}
        return result

    for index in range(3):
        watched.add(index)
    watched.train([0, 1, 2])
    event(EVENTS[0], lambda: watched.kill(2), [0, 1, 2], [0, 1])
    event(EVENTS[1], lambda: watched.add(3), [0, 1], [0, 1, 3])
    code, took = event(EVENTS[2], lambda: watched.leave(1), [0, 1, 3], [0, 3])
    changes[EVENTS[2]] |= {"code": code, "exit": took}
    return changes


@contextlib.contextmanager
def streams(kafka, topic):
    """Feeds all partitions while it is open."""
    command = [str(word) for word in kafka.feed_command([RATE] * MOST, topic=topic)]
    feed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        feed.kill()
        feed.wait()


def measure(way, kafka, python, topic):
    with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder, contextlib.ExitStack() as stack:
        run = Run(kafka, python, pathlib.Path(folder), topic)
        if way != "ours":
            run.store = Store(run)
            stack.callback(run.store.close)
        stack.enter_context(streams(kafka, topic))
        watched = Watched(WAYS[way], run)
        stack.callback(watched.close)
        try:
            return scenario(watched)
        except BenchError as fault:
            logs = "".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in run.folder.glob("*.log"))
            raise BenchError(f"{way}: {fault}\n{logs}") from fault
