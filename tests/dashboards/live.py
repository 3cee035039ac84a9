#!/usr/bin/env python3
"""live.py RIVULET: the demo under a real Prometheus has an answer for every panel, variable, annotation, rule and alert;
what is broken is found; the page has all panels; Ctrl-C leaves no process behind."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
LIMIT_S = 600  # ends what hangs; a slow machine is not a finding
NOTE = "not by Grafana"


def wait_for(text, log, process, deadline_s):
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        found = re.search(text, log.read_text())
        if found:
            return found
        if process.poll() is not None:
            sys.exit(f"the demo ended with {process.returncode}:\n{log.read_text()}")
        time.sleep(0.2)
    sys.exit(f"the demo never said {text}:\n{log.read_text()}")


def processes_of(folder):
    """Command lines of those that work in the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line and int(entry.parent.name) != os.getpid():
            found.append(line)
    return found


def write_machine(folder):
    """A /sys whose every sensor speaks: a Jetson's, and a name that needs no device tree."""
    lines = (REPOSITORY / "tests/support/sensor_trees/orin-jetpack6.txt").read_text().splitlines()
    for line in [*lines, "sys/class/dmi/id/product_name = a Jetson of files"]:
        path, separator, content = line.partition(" = ")
        if separator and path.startswith("sys/"):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content + "\n")
    return folder / "sys"


def on_machine(machine, command):
    """Nobody else sees the other /sys; it is gone with the processes."""
    inside = 'mount --bind "$0" /sys && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "bash", "-c", inside, machine, *command]


def check_answers(url):
    """Of the dashboard Device no panel is empty on a machine that has it all, and devices are called by their names."""
    wait = ["--wait", str(LIMIT_S // 2)]  # a loaded machine misses scrapes
    subprocess.run([REPOSITORY / "dashboards/check", "--prometheus", url, "--full", "rivulet-device", *wait], check=True)
    with urllib.request.urlopen(f"{url}/api/v1/label/instance/values", timeout=10) as answer:
        names = json.load(answer)["data"]
    if names != ["device-1", "device-2", "device-3", "device-4"]:
        sys.exit(f"Prometheus calls the devices {names}")


def check_page(page):
    text = (page / "index.html").read_text()
    panels = text.count('class="panel"')
    pictures = re.findall(r'<img src="([^"]+)"', text)
    missing = [name for name in pictures if (page / name).stat().st_size == 0]
    if NOTE not in text or panels < 50 or len(pictures) < 30 or missing:
        sys.exit(f"the page has {panels} panels, {len(pictures)} pictures; empty: {missing}")
    if re.search(r"(src|href)=\"?https?:", text):
        sys.exit("the page asks for something from outside")


def check_planted(url):
    subprocess.run([HERE / "planted_live.sh", url], check=True)


def main(binary):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rivulet-live-"))
    log = folder / "said"
    command = [REPOSITORY / "dashboards/demo", binary, "--stay", "--limit", str(LIMIT_S), "--past", "20", "--page", folder / "page"]
    with log.open("w") as out:
        demo = subprocess.Popen(
            on_machine(write_machine(folder / "machine"), command),
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    try:
        taken = wait_for(r"every panel was answered ([0-9.]+) s after the start", log, demo, LIMIT_S + 30)[1]
        url = wait_for(r"Prometheus is at (http://\S+) until", log, demo, LIMIT_S)[1]
        if len(processes_of(folder)) < 6:  # the script, Prometheus, the demo and its devices
            sys.exit(f"who runs here? {processes_of(folder)}")
        check_page(folder / "page")
        check_answers(url)
        check_planted(url)
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        status = demo.wait(timeout=LIMIT_S)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
    left = processes_of(folder)
    print(log.read_text())
    if status != 130 or left:
        sys.exit(f"Ctrl-C ended it with {status}; still running: {left}")
    shutil.rmtree(folder)
    print(f"figure: dashboards_answered_s = {taken} s")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("live.py RIVULET")
    main(sys.argv[1])
