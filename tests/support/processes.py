"""For tests in Python: paths of the tools from scripts/setup, groups of processes, requests for pages."""
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path


def cache():
    """As in scripts/common.sh."""
    named = os.environ.get("RIVULET_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rivulet"


def use_tools():
    """PATH with programs outside of packages, such as Prometheus, and those in sbin."""
    os.environ["PATH"] = f"{cache()}/tools/bin:{os.environ['PATH']}:/usr/sbin:/sbin"


class Running:
    """One process with its output in a file."""

    def __init__(self, name, command, environment, log, **more):
        self.name, self.log = name, log
        with open(log, "ab") as out:
            self.process = subprocess.Popen([str(part) for part in command], env=environment, stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL, start_new_session=True, **more)

    @property
    def code(self):
        return self.process.poll()

    def tail(self, count=2000):
        return self.log.read_bytes()[-count:].decode(errors="replace")

    def signal(self, number):
        if self.code is None:
            os.kill(self.process.pid, number)

    def ended(self, seconds):
        """Its exit code within N seconds, or None."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def stop(running, seconds=30):
    """Ends processes, the newest first; kills those that exceed the time. Name -> exit code, None if killed."""
    codes = {}
    for one in reversed(running):
        one.signal(signal.SIGTERM)
        codes[one.name] = one.ended(seconds)
        if codes[one.name] is None:
            one.signal(signal.SIGKILL)
            one.process.wait()
    return codes


def until(what, seconds, every=0.25):
    """Result of `what` once it is neither None nor False; TimeoutError after N seconds."""
    end = time.monotonic() + seconds
    while True:
        answer = what()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(every)


def get(url, token=None, seconds=5):
    """(status, body); (0, reason) without an answer."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode(errors="replace")
    except OSError as nobody:
        return 0, str(nobody)
