"""Generates docs/RESULTS.md from the figures recorded by hand and the comparisons that bench/run has written."""

import tomllib

from processes import ROOT, BenchError
from results import row

FIGURES = ROOT / "bench" / "figures.toml"
COMPARISONS = ROOT / "docs" / "results" / "comparisons.md"
PAGE = ROOT / "docs" / "RESULTS.md"
INHERITED = {"machine", "command", "commit"}  # a figure's defaults are those of its group
KEYS = {"claim", "baseline", "figure", "goal", "verdict"} | INHERITED
GROUP_KEYS = {"title", "note", "method", "figure"} | INHERITED
VERDICTS = {"met": "met", "short": "**short**", "": ""}
HEAD = ["claim", "baseline or definition", "figure", "goal", "verdict", "machine", "command"]
INTRODUCTION = """\
# Results

All measured figures of Rivulet, losses included. `bench/render` generates this page from
`bench/figures.toml` and from [the comparisons](results/comparisons.md) of `bench/run`.
Do not edit it. No test asserts a figure unless its line contains "asserted".

- **Method**, the rival, and why lines fall short: [BENCHMARKING.md](BENCHMARKING.md).
- **A figure** is a median with p10 and p90 in parentheses and the number n of measurements, unless its
  line states otherwise. If the line has a baseline, the figure is a ratio: Rivulet to the baseline.
- **Goals in parentheses** were set for another line and are given for comparison.
- **Verdict**: the goal is met, or the figure is short of it. A line without a goal has none.
- **Commands**: build a program `bench_NAME` or a test program first, with
  `cmake --build --preset release --target NAME`.
- **Terms**: [GLOSSARY.md](GLOSSARY.md). Measurements of `scripts/test --full`: [EVIDENCE.md](EVIDENCE.md)."""


def wrong_keys(table, known, where):
    if unknown := table.keys() - known:
        raise BenchError(f"{where}: unknown key {', '.join(sorted(unknown))}")


def whole(figure, group, machines):
    """Returns the figure with the defaults of its group. Raises BenchError if it is invalid."""
    where = f"bench/figures.toml, '{group['title']}', '{figure.get('claim', '?')}'"
    wrong_keys(figure, KEYS, where)
    line = dict.fromkeys(KEYS, "") | {key: group[key] for key in INHERITED & group.keys()} | figure
    if not line["claim"] or not line["figure"]:
        raise BenchError(f"{where}: a claim and a figure are required")
    if line["verdict"] not in VERDICTS or bool(line["verdict"]) != bool(line["goal"]):
        raise BenchError(f"{where}: a goal requires the verdict met or short; without a goal the verdict is empty")
    if line["machine"] not in machines:
        raise BenchError(f"{where}: unknown machine '{line['machine']}'")
    if not all(isinstance(text, str) and not {"|", "\n"} & set(text) for text in line.values()):
        raise BenchError(f"{where}: a value must be a string of one line without |")
    return line


def load(file=FIGURES):
    """Returns (machines, groups), the figures with all defaults."""
    try:
        data = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as fault:
        raise BenchError(f"{file}: {fault}") from None
    wrong_keys(data, {"machines", "group"}, file.name)
    for group in data["group"]:
        wrong_keys(group, GROUP_KEYS, f"{file.name}, '{group.get('title', '?')}'")
        group["figure"] = [whole(figure, group, data["machines"]) for figure in group["figure"]]
    return data["machines"], data["group"]


def cells(line):
    measured_on = line["machine"] + (f" at {line['commit']}" if line["commit"] else "")
    command = f"`{line['command']}`" if line["command"] else ""
    texts = [line[key] for key in ("claim", "baseline", "figure", "goal")]
    return [*texts, VERDICTS[line["verdict"]], measured_on, command]


def table_of(head, lines):
    return [row(head), row(["---"] * len(head)), *(row(line) for line in lines)]


def method(anchor):
    return ["", f"[Method](BENCHMARKING.md#{anchor})."] if anchor else []


def section(group):
    note = ["", group["note"]] if "note" in group else []
    return ["", f"## {group['title']}", *note, *method(group.get("method")), "",
            *table_of(HEAD, [cells(line) for line in group["figure"]])]


def page_text(machines, groups, comparisons):
    verdicts = [line["verdict"] for group in groups for line in group["figure"] if line["verdict"]]
    sums = f"Of the {len(verdicts)} lines with a goal below (not counting the comparisons of the first section), "
    sums += f"{verdicts.count('met')} meet it and {verdicts.count('short')} fall short."
    lines = [INTRODUCTION, "", sums, "", "## Machines", "", *table_of(["name", "machine"], machines.items())]
    lines += ["", "## Comparison with PyTorch DDP", *method("the-rival"), "", comparisons.strip()]
    for group in groups:
        lines += section(group)
    return "\n".join(lines) + "\n"


def made():
    """Generates the page from its data."""
    return page_text(*load(), COMPARISONS.read_text())
