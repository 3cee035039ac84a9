"""The comparisons. Each runs its sides alternating, round by round, and contributes lines to the table."""

import dataclasses
import typing

import uneven as uneven_streams
from sides import Case


@dataclasses.dataclass(frozen=True)
class Line:
    """`ours` and `other` read their values from a round's samples; results.py computes the ratio."""

    what: str
    unit: str
    ours: typing.Callable
    other: typing.Callable
    goal: float
    more_is_better: bool = True
    cap: str | None = None  # key of a sample: values at or above it mean "not reached"
    differences: bool = False  # the values may be 0 or negative

    def is_met(self, ratio):
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal


RATE_COLUMNS = {
    "rows/s": "rows_per_s",
    "CPU per row, us": "cpu_us_per_row",
    "step, ms": "step_ms",
    "PSS, MiB": "pss_mib",
    "first step, s": "first_step_s",
    "cores used by other programs": "other_cores",
}
UNEVEN_COLUMNS = {
    "time to sustained 90 %, s": "good_after_s",
    "share of arrived rows trained": "used",
    "accuracy at the end": "end",
    "cores used": "cores",
    "cores used by other programs": "other_cores",
}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """`runs`: name -> (side, case), in the order of a round. `columns` of a run: title -> key of its sample."""

    name: str
    runs: dict
    lines: list
    columns: dict = dataclasses.field(default_factory=lambda: RATE_COLUMNS)
    only_if_named: bool = False
    caps: dict = dataclasses.field(default_factory=dict)  # key of a sample -> key of its upper limit


def value(run, key):
    return lambda samples: samples[run][key]


def difference(run, other, key):
    return lambda samples: samples[run][key] - samples[other][key]


def best_rival(samples, key, better):
    return better(sample[key] for run, sample in samples.items() if run in ("rival", "rival-batch"))


def rate_lines(what, goal, with_most):
    """`with_most` adds the rate of the same processes without Kafka and synchronization: the upper limit of the
    rate with both, and thus of any achievable goal on this machine."""

    def against_rival(run, name, its_goal):
        return Line(name, "rows/s", value(run, "rows_per_s"), lambda s: best_rival(s, "rows_per_s", max), its_goal)

    lines = [against_rival("ours", f"rows/s, {what}", goal)]
    if with_most:
        lines.append(against_rival("ours-bare", "upper limit: the same without Kafka and synchronization", 0.0))
    return lines


def rates(model, devices, goal):
    case = Case(model, devices)
    runs = {"ours": ("ours", case), "rival": ("rival", case)}
    if devices > 1:
        runs["ours-bare"] = ("ours", Case(model, devices, agree=False, kafka=False))
        runs["rival-batch"] = ("rival-batch", case)
    many = f"{devices} devices" if devices > 1 else "1 device"
    lines = rate_lines(f"{model}, {many}, compared with the rival", goal, devices > 1)
    return Comparison(f"{model}-{devices}", runs, lines)


def sync_of_rival(samples):
    return best_rival(samples, "step_ms", min) - samples["rival-alone"]["step_ms"]


def pair_lines():
    def ours(key):
        return value("ours", key)

    return [
        *rate_lines("lenet5, 2 devices, compared with the rival", 1.4, True),
        Line(
            "rows per CPU second, lenet5, 2 devices, compared with the same two devices, unsynchronized and without Kafka",
            "rows/CPU s",
            lambda s: 1e6 / s["ours"]["cpu_us_per_row"],
            lambda s: 1e6 / s["ours-bare"]["cpu_us_per_row"],
            0.85,
        ),
        Line(
            "the same in rows per second of wall time (no separate goal)",
            "rows/s",
            ours("rows_per_s"),
            value("ours-bare", "rows_per_s"),
            0.0,
        ),
        Line(
            "synchronization: step minus local step, lenet5, 2 devices",
            "ms",
            difference("ours", "ours-alone", "step_ms"),
            sync_of_rival,
            0.3,
            False,
            differences=True,
        ),
        Line("memory per device, PSS", "MiB", ours("pss_mib"), value("rival", "pss_mib"), 0.5, False),
        Line(
            "the same, the rival without its CUDA files",
            "MiB",
            ours("pss_mib"),
            value("rival", "pss_without_cuda_mib"),
            0.5,
            False,
        ),
        Line(
            "from exec to the first step, group of 2 devices",
            "s",
            ours("first_step_s"),
            value("rival", "first_step_s"),
            0.35,
            False,
        ),
    ]


def pair():
    """Two LeNet devices in all configurations, so that each component of a row's cost is a difference or ratio within one round."""
    group, alone, bare = Case("lenet5", 2), Case("lenet5", 2, agree=False), Case("lenet5", 2, agree=False, kafka=False)
    runs = {
        "ours": ("ours", group),
        "rival": ("rival", group),
        "ours-alone": ("ours", alone),
        "rival-alone": ("rival", alone),
        "ours-bare": ("ours", bare),
        "rival-batch": ("rival-batch", group),
    }
    return Comparison("lenet5-2", runs, pair_lines())


def uneven():
    """Live streams of 100, 50, 20 and 5 rows/s, measured by uneven.py in groups of sides."""

    def held(what, ours, other, goal):
        of = (value(run, "good_after_s") for run in (ours, other))
        return Line(f"uneven streams, seconds to sustained 90 %, {what}", "s", *of, goal, False, cap="cap_s")

    def sooner(than, other, goal):
        return held(f"compared with {than}", "ours", other, 1 / goal)

    slowest = "the default, which waits up to 200 ms for a row of the slowest stream, compared with the rival with our batches"

    lines = [
        sooner("batches of 64", "ours-64", 6),
        sooner("the best fixed batch", "ours-fixed", 4),
        sooner("a one-second tick", "ours-1s", 1.4),
        sooner("the rival with our batches", "rival-tick", 1),
        sooner("the rival with batches of 64", "rival-64", 6),
        held(f"{slowest} (no separate goal)", "ours-default", "rival-tick", 0.0),
        Line("uneven streams, share of arrived rows trained", "", value("ours", "used"), lambda _: 1.0, 0.99),
        Line("the same, batches of 64", "", value("ours-64", "used"), lambda _: 1.0, 0.0),
    ]
    runs = dict.fromkeys(uneven_streams.side_names())
    return Comparison("uneven", runs, lines, UNEVEN_COLUMNS, True, {"good_after_s": "cap_s"})


def all_comparisons():
    return [
        rates("lenet5", 1, 1.1),
        pair(),
        rates("lenet5", 4, 1.4),
        rates("mlp", 1, 1.3),
        rates("mlp", 2, 4.0),
        rates("mlp", 4, 3.0),
        uneven(),
    ]
