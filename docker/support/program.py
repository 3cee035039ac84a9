"""What a build of the program can and cannot, as docker/not-yet.tsv says and as it is."""
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
EXAMPLE = FOLDER.parent / "examples/mnist/device.toml"


def not_yet():
    lines = (FOLDER / "not-yet.tsv").read_text().splitlines()
    return {line.split("\t")[0]: line.split("\t")[1] for line in lines if line and not line.startswith("#")}


def environment(**values):
    """Nothing of the caller's that the program would read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RIVULET_")}
    return {**kept, **values}


def has_token(binary, folder):
    token = Path(folder) / "token"
    token.write_text("a-token-for-the-probe-0123456789\n")
    token.chmod(0o400)
    done = subprocess.run([binary, "validate", EXAMPLE], capture_output=True, text=True, timeout=60, env=environment(
        RIVULET_HTTP="0.0.0.0:9464", RIVULET_SET_HTTP__TOKEN_FILE=str(token), RIVULET_DATA_DIR=str(folder)))
    if done.returncode not in (0, 78):
        raise RuntimeError(f"rivulet validate ended with {done.returncode}: {done.stderr}")
    return done.returncode == 0


def has_status(binary, _):
    shown = subprocess.run([binary, "status", "--help"], capture_output=True, text=True, timeout=60).stdout
    return "rivulet status [" in shown  # without the command, the help of all commands is shown, with 0


def notifications(binary, folder, seconds=4):
    """What a device of a group of one, with rows of its own, says to systemd's socket until it ends by itself."""
    address = str(Path(folder) / "notify")
    said = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(0.1)
        with open(Path(folder) / "notify.log", "w+") as log:
            device = subprocess.Popen(
                [binary, "run", "--config", EXAMPLE, "--devices", "1", "--http", "off", "--stop-after", f"seconds={seconds}",
                 "--set", "source.type=synthetic", "--set", "checkpoint.quorum=1"], stdout=log, stderr=log,
                env=environment(NOTIFY_SOCKET=address, WATCHDOG_USEC="2000000", RIVULET_DATA_DIR=str(folder)))
            end = time.monotonic() + seconds + 60
            while device.poll() is None and time.monotonic() < end:
                try:
                    said += listener.recv(4096).decode().splitlines()
                except TimeoutError:
                    pass
            if device.poll() is None:
                device.kill()
            device.wait()
            log.seek(0)
            if device.returncode != 0:
                raise RuntimeError(f"the device that should notify ended with {device.returncode}: {log.read()[-2000:]}")
    return said


def has_notify(binary, folder):
    return {"READY=1", "WATCHDOG=1", "STOPPING=1"} <= set(notifications(binary, folder))


def has_dashboards(*_):
    folder = FOLDER.parent / "dashboards"
    rules = [folder / "prometheus" / name for name in ("recording.yaml", "alerts.yaml")]
    return all(file.is_file() for file in rules) and any(folder.glob("grafana/*.json"))


PROBES = {"http-token": has_token, "status": has_status, "notify": has_notify, "dashboards": has_dashboards}


def lacking(binary):
    """Names of what this build lacks, found by trying."""
    missing = set()
    for name, probe in PROBES.items():
        with tempfile.TemporaryDirectory() as folder:
            if not probe(str(binary), folder):
                missing.add(name)
    return missing
