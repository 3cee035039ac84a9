#!/usr/bin/python3
"""pictures.py RIVULET: the pictures of README.md show today's product: their words are those of a demo that runs now, and their
numbers of the same magnitude. Pictures that do not: scripts/pictures makes them anew."""

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
# A demo of four devices may agree more often, or on more, in its first seconds than in its fortieth.
APART_MOST = 8
DEADLINE_S = 300


def differences(name, picture, live):
    """What a picture shows that the live demo does not, and the other way round."""
    wrong = [f"{name}: '{word}' is on the picture alone" for word in picture["words"] if word not in live["words"]]
    wrong += [f"{name}: '{word}' is not on the picture" for word in live["words"] if word not in picture["words"]]
    for what, now in live["numbers"].items():
        then = picture["numbers"].get(what)
        if then is None or then <= 0 or now <= 0 or not 1 / APART_MOST <= then / now <= APART_MOST:
            wrong.append(f"{name}: {what}: {then} on the picture, {now} now")
    return wrong


def check_checks(picture):
    """The comparison is first shown pictures of other products."""
    assert not differences("x", picture, picture)
    other = {"words": picture["words"][1:] + ["the others wait for"], "numbers": {k: 480 * v for k, v in picture["numbers"].items()}}
    assert len(differences("x", other, picture)) == 2 + len(picture["numbers"]), differences("x", other, picture)


def belongs(kept):
    """The words are kept beside pictures, and must be of these very files."""
    return [f"{name}: shown.json is of another file" for name, of in kept.items()
            if of["sha256"] != hashlib.sha256((PICTURES / name).read_bytes()).hexdigest()]


def dashboard_differences(kept):
    """The titles on the picture are titles of today's dashboard, in their order."""
    dashboard = json.loads((ROOT / "dashboards/grafana/rivulet-fleet.json").read_text())
    today = [panel["title"] for panel in dashboard["panels"]]
    return [] if kept["words"] == today[:len(kept["words"])] else [f"dashboard.png: {kept['words']} on the picture, {today} today"]


def wait_for(what, look, process, script):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        if process.poll() is not None:
            sys.exit(f"the demo ended with {process.returncode} before {what}:\n{script.read_text(errors='replace')[-3000:]}")
        time.sleep(0.5)
    sys.exit(f"{what} did not come within {DEADLINE_S} s")


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def interrupt(folder):
    """As Ctrl-C does, of the demo that works in the folder."""
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] == "demo" and f"{folder}/demo" in words:
            os.kill(int(entry.parent.name), signal.SIGINT)


def live(rivulet, folder, picture):
    """A demo on a terminal: its view, and the page of its first device as soon as it is like the picture; else its last page."""
    seconds = 1200  # until the page has come, however long that takes
    last_look = time.monotonic() + DEADLINE_S / 2
    script = folder / "typescript"
    command = f"stty cols 110 rows 34; {rivulet} demo --seconds {seconds} --keep {folder}/demo"
    demo = subprocess.Popen(["script", "--quiet", "--return", "--command", command, str(script)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    log = folder / "demo/device-1.log"

    def page():
        found = re.findall(r'http="?(127\.0\.0\.1:\d+)', log.read_text()) if log.exists() else []
        text = fetch(f"http://{found[-1]}/") if found else ""
        # As in the picture: some rounds of all devices, and what they hold measured.
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
        sys.exit("\n".join([*wrong, "scripts/pictures makes the pictures anew"]))
    print("pictures: of today's product")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("pictures.py RIVULET")
    main(sys.argv[1])
