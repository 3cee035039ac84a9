"""Results of comparisons: stored as JSON round by round, printed as medians with their spread."""

import contextlib
import hashlib
import json
import math
import pathlib
import platform
import subprocess

from processes import ROOT, BenchError

HEAD = ["quantity", "goal", "Rivulet", "compared with", "ratio", "n", ""]
LEAST_ROUNDS = 3  # for a verdict
UNRESOLVED = "not resolved: below the noise"


def percentile(values, share):
    """Returns the quantile `share` of the values, with linear interpolation between neighbours."""
    values = sorted(values)
    place = share * (len(values) - 1)
    below = values[int(place)]
    above = values[math.ceil(place)]
    return below if below == above else below + (place - int(place)) * (above - below)


def short(number):
    """Formats a number with three significant digits and grouped thousands."""
    if abs(number) >= 1000:
        return f"{float(f'{number:.3g}'):,.0f}".replace(",", " ")
    return f"{number:.3g}"


def reached(values, cap):
    """Replaces values at or above `cap` with infinity: the level was not reached in time."""
    return [value if value < cap else math.inf for value in values]


def spread(values, cap=math.inf):
    """Formats median, p10 and p90."""
    places = [percentile(reached(values, cap), share) for share in (0.5, 0.1, 0.9)]
    middle, low, high = (short(place) if place < cap else f"not within {short(cap)}" for place in places)
    return middle if low == middle == high and low.startswith("not") else f"{middle} ({low} to {high})"


class Store:
    """Rounds of one comparison in a file. Rounds of other code or other settings are discarded."""

    def __init__(self, folder, name, key, fresh=False):
        self._file = pathlib.Path(folder) / f"{name}.json"
        self._key = key
        self.rounds, self.about = [], {}
        if self._file.exists() and not fresh:
            kept = self._read()
            if kept["key"] == key:
                self.rounds, self.about = kept["rounds"], kept["about"]

    def _read(self):
        with contextlib.suppress(ValueError):
            kept = json.loads(self._file.read_text())
            if isinstance(kept, dict) and {"key", "rounds", "about"} <= kept.keys():
                return kept
        raise BenchError(f"{self._file} is damaged: remove it, or discard all rounds with --fresh")

    def add(self, samples, about):
        self.rounds.append(samples)
        self.about = about
        self._file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"key": self._key, "about": about, "rounds": self.rounds}, indent=1))
        unfinished.rename(self._file)


def line_cells(line, rounds):
    goal = f"{'>=' if line.more_is_better else '<='} {line.goal:.3g}" if line.goal else ""
    ours, other = ([read(samples) for samples in rounds] for read in (line.ours, line.other))
    cap = next(iter(rounds[0].values()))[line.cap] if line.cap else math.inf
    ratio, verdict = (of_differences if line.differences else of_values)(line, ours, other, cap)
    if line.goal and len(rounds) < LEAST_ROUNDS:
        verdict = "n too small"
    return [line.what, goal, f"{spread(ours, cap)} {line.unit}", spread(other, cap), ratio, str(len(rounds)), verdict]


def of_values(line, ours, other, cap):
    """Returns the ratio within each round, and the verdict."""
    ratios = [one / another for one, another in zip(ours, other, strict=True)]
    # A side that did not reach the level in time would have taken longer.
    bound = "at most " if percentile(reached(other, cap), 0.5) >= cap else ""
    met = percentile(reached(ours, cap), 0.5) < cap and line.is_met(percentile(ratios, 0.5))
    return bound + spread(ratios), verdict_of(line, met)


def of_differences(line, ours, other, _cap):
    """As of_values(), for values that may be 0 or negative. A single round may have no ratio, so the ratio is that of
    the medians, with the spread of the rounds that have one."""
    middle, of_other = percentile(ours, 0.5), percentile(other, 0.5)
    if of_other <= 0:
        return "", UNRESOLVED
    ratios = [one / another for one, another in zip(ours, other, strict=True) if one > 0 and another > 0]
    ratio = short(middle / of_other)
    if ratios:
        low, high = (short(percentile(ratios, share)) for share in (0.1, 0.9))
        ratio += f" ({low} to {high} in {len(ratios)} of {len(ours)} rounds)"
    if percentile(ours, 0.1) <= 0:
        return ratio, UNRESOLVED
    return ratio, verdict_of(line, line.is_met(middle / of_other))


def verdict_of(line, met):
    return ("met" if met else "**short**") if line.goal else ""


def row(cells):
    return f"| {' | '.join(cells)} |"


def table(results):
    """`results`: (comparison, rounds) pairs; those without rounds are omitted."""
    lines = [row(HEAD), row(["---"] * len(HEAD))]
    for comparison, rounds in results:
        if rounds:
            lines += [row(line_cells(line, rounds)) for line in comparison.lines]
    return lines


def runs_table(comparison, rounds):
    """Table of the individual runs, with the cores that other processes used."""
    head = [comparison.name, *comparison.columns]
    lines = [row(head), row(["---"] * len(head))]
    for run in comparison.runs:
        samples = [of_round[run] for of_round in rounds]
        cells = [
            spread([sample[key] for sample in samples], samples[0].get(comparison.caps.get(key), float("inf")))
            for key in comparison.columns.values()
        ]
        lines.append(row([run, *cells]))
    return lines


def machine():
    """Describes the machine."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    models = {line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")}
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) / 2**20
    cores = info.count("processor\t:")
    return f"{', '.join(sorted(models))}, {cores} cores, {memory:.0f} GiB, Linux {platform.release()}"


def commit(root=ROOT):
    """Returns the measured commit, docs and figures excluded, with a digest of uncommitted changes."""

    def git(*words):
        command = ["git", *words, "--", ".", ":!docs", ":!bench/figures.toml"]
        return subprocess.run(command, cwd=root, capture_output=True, check=True).stdout

    changes = git("diff", "HEAD")
    digest = f"+changes-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else ""
    return git("log", "-1", "--format=%h").decode().strip() + digest
