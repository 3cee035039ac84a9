"""docs/RESULTS.md, made of figures that were measured by hand and of the comparisons that bench/run wrote."""

import tomllib

from processes import ROOT, BenchError
from results import row

FIGURES = ROOT / "bench" / "figures.toml"
COMPARISONS = ROOT / "docs" / "results" / "comparisons.md"
PAGE = ROOT / "docs" / "RESULTS.md"
INHERITED = {"machine", "command", "commit"}  # a figure has those of its group unless it names its own
KEYS = {"claim", "baseline", "figure", "goal", "verdict"} | INHERITED
GROUP_KEYS = {"title", "note", "method", "figure"} | INHERITED
VERDICTS = {"met": "met", "short": "**short**", "": ""}
HEAD = ["claim", "baseline or definition", "figure", "goal", "verdict", "machine", "command"]
INTRODUCTION = """\
# Results

Every measured figure of Rivulet: the good ones and the losses. `bench/render` writes this page from
`bench/figures.toml`, and from [the comparisons](results/comparisons.md) that `bench/run` writes.
Nothing here is edited by hand. No test asserts a figure unless its line says "asserted".

- **How it is measured**, what the rival is, and why lines fall short: [BENCHMARKING.md](BENCHMARKING.md).
- **A figure** is a median with p10 and p90 in parentheses and the number n of measurements, unless its
  line says otherwise. A figure beside a baseline is a ratio: ours to the baseline.
- **A goal in parentheses** was set for another line, and is given for comparison.
- **Verdict**: met, or short of the goal. A line without a goal has none.
- **Commands**: a program `bench_NAME` or a test program is built first, with
  `cmake --build --preset release --target NAME`.
- **Terms**: [GLOSSARY.md](GLOSSARY.md). What `scripts/test --full` measures: [EVIDENCE.md](EVIDENCE.md)."""


def wrong_keys(table, known, where):
    if unknown := table.keys() - known:
        raise BenchError(f"{where}: there is no key {', '.join(sorted(unknown))}")


def whole(figure, group, machines):
    """The figure with what it has from its group; refused when it is not a line of the page."""
    where = f"bench/figures.toml, '{group['title']}', '{figure.get('claim', '?')}'"
    wrong_keys(figure, KEYS, where)
    line = dict.fromkeys(KEYS, "") | {key: group[key] for key in INHERITED & group.keys()} | figure
    if not line["claim"] or not line["figure"]:
        raise BenchError(f"{where}: a claim and a figure are needed")
    if line["verdict"] not in VERDICTS or bool(line["verdict"]) != bool(line["goal"]):
        raise BenchError(f"{where}: a goal has the verdict met or short, and nothing else has one")
    if line["machine"] not in machines:
        raise BenchError(f"{where}: there is no machine '{line['machine']}'")
    if not all(isinstance(text, str) and not {"|", "\n"} & set(text) for text in line.values()):
        raise BenchError(f"{where}: a value is a text of one line without |")
    return line


def load(file=FIGURES):
    """(machines, groups); each figure is whole."""
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
    sums = f"Of the {len(verdicts)} lines below with a goal, the comparisons of the first section aside, "
    sums += f"{verdicts.count('met')} meet it and {verdicts.count('short')} fall short."
    lines = [INTRODUCTION, "", sums, "", "## Machines", "", *table_of(["name", "machine"], machines.items())]
    lines += ["", "## Beside PyTorch DDP", *method("the-rival"), "", comparisons.strip()]
    for group in groups:
        lines += section(group)
    return "\n".join(lines) + "\n"


def made():
    """The page as its data gives it."""
    return page_text(*load(), COMPARISONS.read_text())
