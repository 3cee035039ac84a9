"""Runs the commands of one page in order, as a reader with a separate terminal for each that does not end."""
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass

from place import make_desk, processes

LIMIT_S = 360  # ends hangs; a slow machine is no error
ASSIGNS = re.compile(r"^(?:export )?(\w+)=")
SERVES = re.compile(r"^rivulet (run(?!.*(--stop-after|--dry-run))|broker|feed .*--repeat)")
WATCHES = re.compile(r"^rivulet top(?!.*--count)|^kcat -C(?!.* -e)")
DEVICE = re.compile(r"^rivulet run")
BROKER = re.compile(r"bootstrap\.servers=(\S+)")
PORT = re.compile(r'http="?[\d.]+:(\d+)')


class Wrong(Exception):
    """A command did not behave as its page describes; with its output."""


@dataclass
class Service:
    """A process in a separate terminal until the page is done, or a command ends it."""
    command: str
    process: processes.Running
    awaited: bool = False  # was ready


class Typist:
    def __init__(self, page, folder, programs, show=False):
        self.page, self.show = page, show
        self.desk = make_desk(folder / "desk")
        self.logs = folder
        self.kept = ""  # variables set by the page
        self.services, self.started = [], 0
        self.environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(self.desk), "LC_ALL": "C.UTF-8"}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Ends all processes of a failed page."""
        for one in self.services:
            one.process.signal(signal.SIGKILL)
            one.process.ended(10)

    def take_file(self, block):
        (self.desk / block.file).write_text(block.text)

    def bash(self, command):
        return ["bash", "-euo", "pipefail", "-c", self.kept + command]

    def type(self, command, code=0):
        """Output of a command that ends by itself."""
        said = ""
        started = time.monotonic()
        killed = self.newest_device() if command.startswith("kill ") else None
        if killed:
            command = command.replace("PID", str(killed.process.pid))
        if "ADDRESS" in command:
            command = command.replace("ADDRESS", self.broker_address())
        if ASSIGNS.match(command):
            self.assign(command)
        elif SERVES.match(command):
            self.serve(command)
        else:
            self.wait_for_services()
            if WATCHES.match(command):
                self.watch(command)
            else:
                said = self.run(command, code)
        if killed:
            killed.ended(10)
        print(f"{time.monotonic() - started:5.1f} s  {self.page}: {command}", flush=True)
        return said

    def typed(self, command):
        return subprocess.run(self.bash(command), cwd=self.desk, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL)

    def run(self, command, code=0):
        done, until = self.typed(command), time.monotonic() + 20
        # New devices save their first state after a second: a reader repeats the command.
        while done.returncode != code and "error: no checkpoint in" in done.stderr and time.monotonic() < until:
            time.sleep(0.5)
            done = self.typed(command)
        if self.show:
            print(done.stdout + done.stderr)
        if command.startswith("rivulet stop"):
            self.wait_for_ends()
        if done.returncode != code:
            raise Wrong(f"{command}\nended with {done.returncode}: {(done.stdout + done.stderr)[-3000:]}{self.what_services_say()}")
        return done.stdout

    def newest_device(self):
        return [one.process for one in self.services if DEVICE.match(one.command) and one.process.code is None][-1]

    def broker_address(self):
        """Output of the newest `rivulet broker`."""
        process = [one.process for one in self.services if one.command.startswith("rivulet broker")][-1]
        return processes.until(lambda: BROKER.findall(process.tail()) or None, 20)[0]

    def assign(self, command):
        name = ASSIGNS.match(command)[1]
        self.kept += self.run(f"{command}; declare -p {name}")

    def serve(self, command):
        self.services.append(Service(command, self.start(command)))

    def start(self, command):
        self.started += 1
        return processes.Running(command, self.bash("exec " + command), self.environment, self.logs / f"{self.started}.log", cwd=self.desk)

    def watch(self, command):
        """Checks a command that runs until Ctrl-C once."""
        watching = self.start(command)
        processes.until(lambda: watching.tail().strip() or None, 20)
        watching.signal(signal.SIGINT)
        if watching.ended(10) not in (0, 130, -signal.SIGINT):
            raise Wrong(f"{command}\nended with {watching.code}: {watching.tail()}")

    def wait_for_services(self):
        """Waits until newly started devices are ready, as a reader does."""
        for one in self.services:
            if not one.awaited and DEVICE.match(one.command):
                try:
                    processes.until(lambda one=one: self.ready(one), 30)
                except TimeoutError:
                    raise Wrong(f"{one.command}\nwas never ready: {one.process.tail()}") from None
            one.awaited = True

    @staticmethod
    def ready(one):
        if one.process.code is not None:
            raise Wrong(f"{one.command}\nended with {one.process.code}: {one.process.tail()}")
        port = PORT.findall(one.process.tail(100_000))
        return bool(port) and processes.get(f"http://127.0.0.1:{port[-1]}/readyz")[0] == 200

    def wait_for_ends(self):
        """For devices that are ending."""
        for one in self.services:
            if DEVICE.match(one.command):
                one.process.ended(10)

    def what_services_say(self):
        return "".join(f"\n--- {one.command}: {one.process.code}\n{one.process.tail()}" for one in self.services)

    def finish(self):
        """Running processes end successfully on request; killed ones may have failed."""
        running = [one.process for one in self.services if one.process.code is None]
        ended = [one for one in self.services if one.process.code not in (None, 0, -signal.SIGKILL)]
        codes = processes.stop(running)
        wrong = {name: code for name, code in codes.items() if code != 0}
        if wrong or ended:
            raise Wrong(f"{self.page}: exit code not 0: {wrong or ended}{self.what_services_say()}")
