"""A user's setup: JSON rows in a topic of `rivulet broker`, a file from `rivulet config init --from-topic`, `rivulet run`."""

import json
import pathlib
import subprocess
import time

from processes import BenchError, Helper

PATIENCE = 600  # s; a run that takes longer hangs


class Job:
    """A topic with a partition for each device, on a private broker."""

    def __init__(self, program, name, folder, stack, partitions=1, more=()):
        self.name, self._program, self._folder = name, pathlib.Path(program).resolve(), pathlib.Path(folder)
        topics = [word for topic in (f"{name}:{partitions}", *more) for word in ("--topic", topic)]
        broker = Helper([self._program, "broker", "--job", name, *topics, "--until-eof"], folder)
        stack.callback(broker.close)
        self.brokers = broker.line.removeprefix("bootstrap.servers=")

    def configure(self, target, *settings):
        # `rivulet broker` creates the control topic of this job name; that of `config init` has none.
        settings = [f"job.name={self.name}", *settings]
        command = [self._program, "config", "init", "--from-topic", self.name, "--target", target]
        command += ["--brokers", self.brokers, *(word for setting in settings for word in ("--set", setting))]
        (self._folder / "device.toml").write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)

    def command(self, folder, *more):
        config = self._folder / "device.toml"
        return [self._program, "run", "--config", config, "--json", "--data-dir", folder, *more]

    def run_alone(self, rows, *more, prefix=(), patience=PATIENCE):
        """Returns the summary after `rows` trained rows."""
        return self.run_group([rows], *more, prefix=prefix, patience=patience)[0]

    def run_group(self, rows, *more, prefix=(), share=1, patience=PATIENCE):
        """Returns the summaries of devices with a partition each, after `share` of all rows is trained."""
        devices = []
        for i, _ in enumerate(rows):
            one = ["--id", f"device-{i}", "--partitions", str(i), "--devices", str(len(rows))] if len(rows) > 1 else []
            command = [*prefix, *self.command(self.data(i), "--http", "off", *one, *more)]
            command += ["--stop-after", f"rows={int(share * sum(rows))}"]
            with open(self.log(i), "wb") as log:
                devices.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log))
        try:
            return [self._summary(i, device, patience) for i, device in enumerate(devices)]
        finally:
            for device in devices:
                device.kill()
                device.wait()

    def _summary(self, i, device, patience):
        try:
            said, _ = device.communicate(timeout=patience)
        except subprocess.TimeoutExpired as late:
            raise BenchError(f"{self.name}: rivulet run did not end in time") from late
        if device.returncode != 0:
            raise BenchError(f"{self.name}: rivulet run ended with {device.returncode}: {self.log(i).read_text()[-1000:]}")
        return json.loads(said.splitlines()[-1])

    def data(self, i=0):
        return self._folder / f"data-{i}"

    def log(self, i=0):
        return self._folder / f"run-{i}.log"

    def produce(self, rows, partition=0, topic=None, rate=None):
        """Produces lines in order, compressed because the embedded broker keeps about 5 MB."""
        command = ["kcat", "-P", "-b", self.brokers, "-t", topic or self.name, "-p", str(partition), "-z", "lz4"]
        kcat = subprocess.Popen([*command, "-X", f"linger.ms={5 if rate else 50}"], stdin=subprocess.PIPE)
        if not rate:
            kcat.communicate(rows)
        else:
            began = time.monotonic()
            for i, line in enumerate(rows.splitlines(keepends=True)):
                time.sleep(max(0, began + i / rate - time.monotonic()))
                kcat.stdin.write(line)
                kcat.stdin.flush()
            kcat.communicate()
        if kcat.returncode != 0:
            raise BenchError(f"kcat ended with {kcat.returncode}")
