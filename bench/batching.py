"""Batch policies compared on uneven streams, and their learning rates."""

import dataclasses
import json
import pathlib

RATES = [100, 50, 20, 5]  # rows/s of the streams
GOOD = 0.9
RATES_FILE = pathlib.Path(__file__).resolve().parent / "learning_rates.json"
FIXED = {  # rows per device -> candidate learning rates
    1: [0.002, 0.005, 0.01, 0.02],
    2: [0.002, 0.005, 0.01, 0.02],
    4: [0.005, 0.01, 0.02, 0.05],
    8: [0.005, 0.01, 0.02, 0.05],
    16: [0.01, 0.02, 0.05, 0.1],
    32: [0.02, 0.05, 0.1, 0.2],
    64: [0.02, 0.05, 0.1, 0.2],
}


@dataclasses.dataclass(frozen=True)
class Batching:
    """`settings` of a device. `candidates`: learning rates to try, each over `seconds` of the streams."""

    settings: list
    candidates: list
    seconds: int


def tick(seconds, longest):
    return [f"batch.tick={seconds}s", f"batch.max_wait={longest}s", "batch.policy=stream"]


def all_batchings():
    """Returns the policies by name. batch.max_wait limits a tick; by default it is twice the tick, to wait for slow streams."""
    batchings = {
        "tick": Batching(tick(0.1, 0.2), [0.005, 0.01, 0.02, 0.05], 120),
        "tick-exact": Batching(tick(0.1, 0.1), [0.005, 0.01, 0.02, 0.05], 120),
        "tick-1s": Batching(tick(1, 1), [0.01, 0.02, 0.05, 0.1], 240),
    }
    for rows, candidates in FIXED.items():
        batchings[f"fixed-{rows}"] = Batching(["batch.policy=fixed", f"batch.rows={rows}"], candidates, 240)
    return batchings


def learning_rate(name):
    """Returns the rate chosen by bench/tune."""
    return json.loads(RATES_FILE.read_text())["rates"][name]


def best_fixed():
    """Returns the best fixed batch, as measured by bench/tune."""
    return json.loads(RATES_FILE.read_text())["best_fixed"]


def held_since(scores, cap):
    """Returns the time from which all scores are good; `cap` if the last one is not, or there is none."""
    since = cap
    for seconds, accuracy in sorted(scores, reverse=True):
        if accuracy < GOOD:
            return since
        since = seconds
    return since
