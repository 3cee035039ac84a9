"""One device in a container, as locked as docs/CONTAINER.md says, asked by its published port and from the host's side of /proc."""
import errno
import json
import subprocess
import time
from pathlib import Path

import engine
from engine import PREFIX, ROOT, SLACK, Failed, podman, processes

USER = 10001
TOKEN = "token-of-this-test-0123456789abcdef"
LOCKED = ["--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
          "--memory", "1280m", "--pids-limit", "256"]


def check(good, what):
    if not good:
        raise Failed(what)
    print(f"ok     {what}", flush=True)


def token_file(folder):
    """The secret's file, which only the image's user may read."""
    file = folder / "token"
    file.write_text(TOKEN + "\n")
    engine.run("chown", USER, file)
    file.chmod(0o400)
    return file


class Device:
    """A container of its own name, whose volume stays until the run's end."""

    def __init__(self, image, name, folder, words, volume=None):
        self.name = PREFIX + name
        mounts = [f"{ROOT}/examples/mnist/device.toml:/etc/rivulet/device.toml:ro", f"{token_file(folder)}:/run/secrets/rivulet_http:ro"]
        if volume:
            mounts.append(f"{PREFIX}{volume}:/var/lib/rivulet")
        podman("run", "--detach", "--name", self.name, "--publish", "127.0.0.1::9464", *LOCKED, "--env", f"RIVULET_ID={name}",
               "--env", "RIVULET_PEER_BIND=eth0",
               *(word for mount in mounts for word in ("--volume", mount)), image, *words)

    def inspect(self, path):
        return podman("inspect", "--format", f"{{{{{path}}}}}", self.name)

    def log(self):
        return podman("logs", "--tail", "40", self.name)

    def get(self, path, token=TOKEN):
        address = podman("port", self.name, "9464/tcp")
        return processes.get(f"http://{address}{path}", token)

    def until(self, what, condition, seconds=90):
        """What `condition` answers once it is true; a device that has ended meanwhile, or a late answer, fails."""
        def look():
            if self.inspect(".State.Running") != "true":
                raise Failed(f"{self.name} ended with {self.inspect('.State.ExitCode')} before it was {what}: {self.log()}")
            return condition()
        try:
            return processes.until(look, SLACK * seconds)
        except TimeoutError:
            raise Failed(f"{self.name} is not {what}: {self.log()}") from None

    def healthy(self):
        """Asked as the image's HEALTHCHECK does; podman's own timers are systemd's. No answer is none, however slow podman is."""
        try:
            return subprocess.run(["podman", "healthcheck", "run", self.name], capture_output=True, timeout=60).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def status(self):
        code, body = self.get("/api/v1/status")
        return json.loads(body) if code == 200 else None

    def trained(self):
        def look():
            seen = self.status()
            return seen if seen and seen["steps"] > 0 and seen["rows_trained"] > 0 else None
        return self.until("training", look)

    def data(self):
        """The host's path of what is mounted at /var/lib/rivulet, whichever volume that is."""
        mounts = json.loads(podman("inspect", "--format", "{{json .Mounts}}", self.name))
        return Path(next(mount["Source"] for mount in mounts if mount["Destination"] == "/var/lib/rivulet"))

    def end(self, signal="TERM", code=0):
        """Its exit code, within the time that Docker gives by default to what it stops, thrice."""
        podman("kill", "--signal", signal, self.name)
        ended = int(podman("wait", self.name, seconds=30))
        check(ended == code, f"{self.name}: SIG{signal} ends it with {ended}" + ("" if ended == code else f": {self.log()}"))


def refusal(path):
    """The error by which even root cannot make a file there, or None."""
    try:
        path.write_text("probe")
    except OSError as refused:
        return refused.errno
    path.unlink()
    return None


def check_locked(device):
    """Seen from outside, by one who may more than the program."""
    pid = device.inspect(".State.Pid")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    seen = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    check(seen["Uid"].split() == seen["Gid"].split() == [str(USER)] * 4, f"it is user {seen['Uid'].split()[0]}")
    check(int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == 0 and seen["NoNewPrivs"] == "1", "it has no rights and can get none")
    inside = Path(f"/proc/{pid}/root")
    for place in ("", "etc", "usr/bin", "usr/lib", "var", "var/lib", "run"):
        check(refusal(inside / place / "probe") == errno.EROFS, f"/{place} cannot be written")
    check(not (inside / "bin/sh").exists() and not (inside / "usr/bin/sh").exists(), "there is no shell")


def check_pages(device):
    check(device.until("answering with the token", lambda: device.status()), "with the token of its file it answers")
    check({device.get(path, None)[0] for path in ("/metrics", "/api/v1/status")} == {401}, "without a token nobody reads it")


def check_saved(device):
    folder = device.data()
    check((folder / "final.state").is_file() and any((folder / "checkpoints").iterdir()), "what it learned is in its volume")
    owners = {file.stat().st_uid for file in [folder, *folder.rglob("*")]}
    check(owners == {USER}, "and belongs to its user")


def alone(image, folder):
    """A device with rows of its own: volume, user, rights, health, token and end, and the same without a volume of a name."""
    words = ["run", "--devices", "1", "--set", "source.type=synthetic", "--set", "source.rate=20", "--set", "checkpoint.quorum=1"]
    started = time.monotonic()
    device = Device(image, "named", folder, words, volume="named")
    device.trained()
    print(f"figure: start of a container to its first trained row = {time.monotonic() - started:.1f} s")
    check(device.until("healthy", device.healthy), "its health check says that it is healthy")
    check_locked(device)
    check_pages(device)
    device.end()
    check_saved(device)
    other = Device(image, "anonymous", folder, words)
    other.trained()
    other.end()
    check_saved(other)
