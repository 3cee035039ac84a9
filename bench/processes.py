"""Processes of a comparison: starts them, measures them through /proc, ends them. Also the real Kafka that they read."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Removed from the environment: Rivulet warns about unknown RIVULET_ variables.
GIVEN_BUILD = os.environ.pop("RIVULET_BUILD", "")
BUILD = pathlib.Path(GIVEN_BUILD or ROOT / "build" / "release")
MNIST = ROOT / "examples" / "mnist" / "data"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CUDA_FILES = ("/nvidia/", "libtorch_cuda", "libc10_cuda", "/triton/")


class BenchError(Exception):
    """A failed comparison; the message is shown to the user."""


FAULTS = (BenchError, OSError, subprocess.CalledProcessError)


def sentence_of(fault):
    """Formats one of FAULTS for the user."""
    if isinstance(fault, subprocess.CalledProcessError):
        words = fault.stderr.decode(errors="replace") if isinstance(fault.stderr, bytes) else fault.stderr or ""
        return f"{fault.cmd[0]} ended with {fault.returncode}. {words[-1000:].strip()}".strip()
    if isinstance(fault, OSError) and fault.filename:
        return f"{fault.filename}: {fault.strerror}"
    return str(fault)


def need_programs(*names):
    """Builds the programs from this code; a build directory given in RIVULET_BUILD is used as it is."""
    if not GIVEN_BUILD:
        for command in (["scripts/setup", "--for", "tests"], ["scripts/build", *names]):
            if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
                raise BenchError(f"{command[0]} failed: see its output above")
    for name in names:
        if not (BUILD / name).is_file():
            raise BenchError(f"{BUILD / name} does not exist")


def rival_python():
    given = os.environ.pop("RIVULET_RIVAL_PYTHON", "")
    if given:
        return given
    made = subprocess.run([ROOT / "bench" / "rival" / "setup"], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        raise BenchError("bench/rival/setup failed: see its output above")
    return made.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Child:
    """One process whose output goes to a file. close() kills it, as does the end of this process."""

    def __init__(self, command, log, **options):
        self.log, self._name = pathlib.Path(log), command[0]
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *(str(word) for word in command)],
                stdout=output,
                stderr=subprocess.STDOUT,
                **options,
            )
        self.pid = self._process.pid
        self._proc = pathlib.Path("/proc") / str(self.pid)

    def check_running(self):
        if self._process.poll() is not None:
            words = self.log.read_text(errors="replace")[-2000:]
            raise BenchError(f"{self._name} ended with {self._process.returncode}:\n{words}")

    def cpu_seconds(self):
        fields = (self._proc / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def pss_bytes(self):
        """Returns the proportional set size: the total, and the part in CUDA files."""
        total = cuda = 0
        in_cuda = False
        for line in (self._proc / "smaps").read_text().splitlines():
            if line.startswith("Pss:"):
                size = 1024 * int(line.split()[1])
                total += size
                cuda += size if in_cuda else 0
            elif not line.split(maxsplit=1)[0].endswith(":"):
                in_cuda = any(name in line for name in CUDA_FILES)
        return total, cuda

    def wait(self, seconds):
        """Waits until it ends by itself, without an error."""
        if self.ended(seconds) != 0:
            self.check_running()

    def ended(self, seconds):
        """Waits until it ends, and returns its exit code."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired as late:
            raise BenchError(f"{self._name} did not end within {seconds} s") from late

    def close(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def busy_seconds():
    """Returns the CPU time of all processes since boot."""
    with open("/proc/stat") as stat:
        fields = [int(word) for word in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS_PER_SECOND  # without idle and iowait


def wait_until(done, seconds, what, every=0.05):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            raise BenchError(f"no {what} within {seconds} s")
        time.sleep(every)


class Helper:
    """A program of this directory that prints one `line` when it is ready, and runs until its standard input ends."""

    def __init__(self, command, folder):
        log = pathlib.Path(folder) / "helper.log"
        with open(log, "wb") as errors:
            self._process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self.pid = self._process.pid
        self.line = self._process.stdout.readline().decode().strip()
        if not self.line:
            self.close()
            raise BenchError(f"{command[0]}: {log.read_text()}")

    def tell(self, line):
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def close(self):
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()


class Kafka:
    """A real broker. `rows`: rows per partition of its first topic. `more`: topics with the same number of partitions."""

    def __init__(self, folder, topic, partitions, more=()):
        self.topic, self.rows = topic, [0] * partitions
        self._helper = Helper([BUILD / "bench_kafka", *(f"{name}:{partitions}" for name in [topic, *more])], folder)
        self.brokers = self._helper.line

    def feed_command(self, rates, *more, topic=None):
        rates = ",".join(str(rate) for rate in rates)
        command = [BUILD / "rivulet", "feed", MNIST, "--brokers", self.brokers, "--topic", topic or self.topic]
        return [*command, "--rates", rates, "--repeat", "--json", *more]

    def fill(self, wanted):
        """Produces MNIST, partition by partition, until partition i has at least wanted[i] rows."""
        for partition, rows in enumerate(wanted):
            while self.rows[partition] < rows:
                self._play(partition, rows - self.rows[partition])

    def _play(self, partition, rows):
        rate = 100_000  # rows/s: more than a broker on two cores accepts; the accepted rows are counted
        rates = [rate if i == partition else 0 for i in range(len(self.rows))]
        blocks = ["linger.ms=20", "batch.size=1000000", "acks=1"]
        more = [word for block in blocks for word in ("--property", block)]
        command = self.feed_command(rates, "--seconds", f"{rows / rate + 0.05:.2f}", *more)
        played = subprocess.run([str(word) for word in command], capture_output=True, check=False)
        if played.returncode != 0:
            raise BenchError(f"rivulet feed: {played.stderr.decode()[-1000:]}")
        self.rows[partition] += json.loads(played.stdout.splitlines()[-1])["per_partition"][partition]

    def close(self):
        self._helper.close()
