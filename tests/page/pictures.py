#!/usr/bin/python3
"""pictures.py RIVULET: checks that the pictures of README.md show the current product: their words are those of a running demo,
and their numbers have the same magnitude. Otherwise run scripts/pictures."""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import shown  # noqa: E402

PICTURES = ROOT / "docs/pictures"
# A demo of four devices may synchronize more often, or send more, in its first seconds than in its fortieth.
APART_MOST = 8
DEADLINE_S = 300


def differences(name, picture, live):
    """Differences between a picture and the live demo, in both directions."""
    wrong = [f"{name}: '{word}' is only in the picture" for word in picture["words"] if word not in live["words"]]
    wrong += [f"{name}: '{word}' is missing in the picture" for word in live["words"] if word not in picture["words"]]
    for what, now in live["numbers"].items():
        then = picture["numbers"].get(what)
        if then is None or then <= 0 or now <= 0 or not 1 / APART_MOST <= then / now <= APART_MOST:
            wrong.append(f"{name}: {what}: {then} in the picture, {now} now")
    return wrong


def check_checks(picture):
    """Tests the comparison with an outdated picture."""
    assert not differences("x", picture, picture)
    other = {"words": picture["words"][1:] + ["the others wait for"], "numbers": {k: 480 * v for k, v in picture["numbers"].items()}}
    assert len(differences("x", other, picture)) == 2 + len(picture["numbers"]), differences("x", other, picture)


def belongs(kept):
    """Checks that the stored words are of these files."""
    return [f"{name}: shown.json belongs to another file" for name, of in kept.items()
            if of["sha256"] != hashlib.sha256((PICTURES / name).read_bytes()).hexdigest()]


def dashboard_differences(kept):
    """Compares the titles in the picture with those of the current dashboard, in order."""
    dashboard = json.loads((ROOT / "dashboards/grafana/rivulet-fleet.json").read_text())
    today = [panel["title"] for panel in dashboard["panels"]]
    return [] if kept["words"] == today[:len(kept["words"])] else [f"dashboard.png: {kept['words']} in the picture, {today} now"]


def wait_for(what, look, process, script):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        if process.poll() is not None:
            sys.exit(f"the demo ended with {process.returncode} before {what}:\n{script.read_text(errors='replace')[-3000:]}")
        time.sleep(0.5)
    sys.exit(f"{what} did not occur within {DEADLINE_S} s")


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def interrupt(folder):
    """Interrupts the demo that runs in the folder, like Ctrl-C."""
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] == "demo" and f"{folder}/demo" in words:
            os.kill(int(entry.parent.name), signal.SIGINT)


def live(rivulet, folder, picture):
    """Runs a demo on a terminal. Returns its view, and its first device's page, once it matches the picture; else the last one."""
    seconds = 1200  # until the page matches, however long that takes
    last_look = time.monotonic() + DEADLINE_S / 2
    script = folder / "typescript"
    command = f"stty cols 110 rows 34; {rivulet} demo --seconds {seconds} --keep {folder}/demo"
    demo = subprocess.Popen(["script", "--quiet", "--return", "--command", command, str(script)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    log = folder / "demo/device-1.log"

    def page():
        found = re.findall(r'http="?(127\.0\.0\.1:\d+)', log.read_text()) if log.exists() else []
        text = fetch(f"http://{found[-1]}/") if found else ""
        # As in the picture: some rounds of all devices, with held-out accuracy.
        if 'id="last-rounds"' not in text or not re.search(r"accuracy on [^:\n]*: *(\x1b\S*)?\d", script.read_text(errors="replace")):
            return ""
        return text if time.monotonic() > last_look or not differences("", picture, shown.page(text)) else ""

    try:
        text = wait_for("the page of a training device", page, demo, script)
        interrupt(folder)
        demo.wait(timeout=DEADLINE_S)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            interrupt(folder)
    svg = folder / "demo.svg"
    subprocess.run([ROOT / "scripts/terminal_svg.py", script, svg, "--until", "Interrupted after"], check=True)
    return {"demo.svg": shown.terminal(svg.read_text()), "status.png": shown.page(text)}


def main(rivulet):
    kept = json.loads((PICTURES / "shown.json").read_text())
    check_checks(kept["status.png"])
    wrong = belongs(kept) + dashboard_differences(kept["dashboard.png"])
    with tempfile.TemporaryDirectory() as folder:
        for name, now in live(rivulet, pathlib.Path(folder), kept["status.png"]).items():
            wrong += differences(name, kept[name], now)
    if wrong:
        sys.exit("\n".join([*wrong, "run scripts/pictures to recreate the pictures"]))
    print("pictures: up to date")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("pictures.py RIVULET")
    main(sys.argv[1])
