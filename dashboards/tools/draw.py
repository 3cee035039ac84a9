"""draw.py ANSWERS FOLDER: one page with a picture of every panel, from what dashboards/tools/ask.ts was answered."""

import datetime
import html
import json
import math
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)
from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: E402

GRID_COLUMN_PX = 58
GRID_ROW_PX = 38
LEGEND_MOST = 8
LABEL_IN = 0.9  # of a time below a picture, with room around it
LETTER_IN, MARK_IN = 0.05, 0.5  # of a legend
COLOURS = {"green": "#3a7d44", "orange": "#c76b00", "red": "#b3261e", "text": "#222"}
NOTE = "Drawn from the dashboards' own queries, not by Grafana."

STYLE = """
body { font: 14px/1.4 sans-serif; margin: 1.5rem auto; width: 1400px; color: #222; background: #f4f5f5 }
h1 { margin: 0 } h2 { margin: 2rem 0 0 } p { margin: .2rem 0 }
.grid { display: grid; grid-template-columns: repeat(24, 1fr); grid-auto-rows: 30px; gap: 8px; margin-top: .8rem }
h3.row, summary { font-weight: bold; font-size: 15px; margin: 1.2rem 0 0 } summary { cursor: pointer }
.panel { background: #fff; border: 1px solid #ddd; border-radius: 3px; padding: 4px 8px; overflow: auto }
.panel h3 { margin: 0; font-size: 13px; cursor: help } .panel img { width: 100% }
.number { font-size: 26px } .number small { font-size: 12px; color: #666; display: block }
.empty { color: #777 } table { border-collapse: collapse; font-size: 12px; width: 100% }
td, th { border-bottom: 1px solid #eee; text-align: left; padding: 1px 6px }
"""


def scaled(value, base, names):
    """The value with the largest of the names that leaves it at 1 or above."""
    size = 0
    while abs(value) >= base and size < len(names) - 1:
        value /= base
        size += 1
    return f"{value:.3g}{names[size]}"


def in_unit(value, unit):
    if not math.isfinite(value):
        return str(value)
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit in ("bytes", "binBps"):
        return scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]) + ("/s" if unit == "binBps" else "")
    if unit == "s":
        if value != 0 and abs(value) < 1:
            return f"{value * 1000:.3g} ms"
        return f"{value:.3g} s" if abs(value) < 120 else f"{value / 60:.3g} min"
    if unit == "sci":
        return f"{value:.2e}"
    return scaled(value, 1000, ["", " k", " M", " G"]) + ("/s" if unit in ("cps", "ops") else "")


def name_of(legend, metric):
    return re.sub(r"\{\{(\w+)\}\}", lambda found: metric.get(found[1], ""), legend).strip()


def points(series):
    pairs = series.get("values") or [series["value"]]
    return [datetime.datetime.fromtimestamp(float(at)) for at, _ in pairs], [float(value) for _, value in pairs]


def with_gaps(times, values, step):
    """No line is drawn over what was not measured."""
    out_times, out_values = [], []
    for at, value in zip(times, values):
        if out_times and (at - out_times[-1]).total_seconds() > 1.5 * step:
            out_times.append(out_times[-1] + datetime.timedelta(seconds=step))
            out_values.append(math.nan)
        out_times.append(at)
        out_values.append(value)
    return out_times, out_values


def has_numbers(panel):
    return any(math.isfinite(v) for a in panel["answers"] for s in a["result"] for v in points(s)[1])


class BinaryLocator(MaxNLocator):
    """Round numbers of the largest unit of bytes that fits."""

    def tick_values(self, low, high):
        unit = 1024 ** max(0, math.floor(math.log(max(abs(high), 1), 1024)))
        return [unit * tick for tick in super().tick_values(low / unit, high / unit)]


def new_axes(panel):
    pos = panel["gridPos"]
    width, height = pos["w"] * GRID_COLUMN_PX / 100, (pos["h"] * GRID_ROW_PX - 40) / 100
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.tick_params(labelsize=7)
    axes.grid(True, color="#eee")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def draw_lines(panel, axes, step):
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    lines = [(name_of(a["legend"], s["metric"]), *points(s)) for a in panel["answers"] for s in a["result"]]
    lines.sort(key=lambda line: line[0])
    if custom.get("stacking", {}).get("mode") == "normal":
        times = sorted({t for _, ts, _ in lines for t in ts})
        stacks = [[dict(zip(ts, vs)).get(t, 0) for t in times] for _, ts, vs in lines]
        stacks = [[v if math.isfinite(v) else 0 for v in stack] for stack in stacks]
        axes.stackplot(times, stacks, labels=[name for name, _, _ in lines], alpha=0.7)
    else:
        for name, times, values in lines:
            marker = "." if len(times) < 3 else None
            axes.plot(*with_gaps(times, values, step), linewidth=1, label=name, marker=marker)
        if custom.get("scaleDistribution", {}).get("type") == "log":
            axes.set_yscale("log")
        else:
            values = [v for _, _, vs in lines for v in vs if math.isfinite(v)]
            high = max(values, default=0)
            axes.set_ylim(bottom=min(0, *values), top=1.05 * high if high > 0 else None if any(values) else 1)
    handles, names = axes.get_legend_handles_labels()
    if len(names) > LEGEND_MOST:
        handles, names = handles[:LEGEND_MOST], names[: LEGEND_MOST - 1] + [f"... {len(names) - LEGEND_MOST + 1} more"]
    # As many beside each other as fit: a wider legend would narrow the picture.
    widest = max((len(name) for name in names), default=0) * LETTER_IN + MARK_IN
    columns = max(1, min(4, int(axes.figure.get_figwidth() * 0.9 / widest)))
    below = -18 / (axes.figure.get_figheight() * axes.figure.dpi)  # under the times, however high the picture is
    axes.legend(handles, names, fontsize=6, loc="upper left", bbox_to_anchor=(0, below * 1.5), frameon=False, ncols=columns)


def draw_heat(panel, axes):
    found = [(float(s["metric"]["le"]), points(s)) for a in panel["answers"] for s in a["result"]]
    found.sort(key=lambda bucket: bucket[0])
    times = sorted({t for _, (ts, _) in found for t in ts})
    rows, below = [], [0.0] * len(times)
    for _, (ts, vs) in found:  # buckets hold what is in the smaller ones, too
        at = dict(zip(ts, vs))
        full = [at.get(t, 0.0) for t in times]
        rows.append([max(0.0, here - less) for here, less in zip(full, below)])
        below = full
    axes.grid(False)
    axes.pcolormesh(times, range(len(rows)), rows, cmap="Blues", shading="nearest")
    labels = ["more" if math.isinf(le) else in_unit(le, panel["unit"]) for le, _ in found]
    axes.set_yticks(range(len(rows)), [f"≤ {text}" if text != "more" else text for text in labels])


def picture(panel, path, step):
    figure, axes = new_axes(panel)
    if panel["type"] == "heatmap":
        draw_heat(panel, axes)
    else:
        draw_lines(panel, axes, step)
        if panel["unit"] in ("bytes", "binBps") and axes.get_yscale() == "linear":
            axes.yaxis.set_major_locator(BinaryLocator(nbins=6))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: in_unit(value, panel["unit"])))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    most = max(2, int(figure.get_figwidth() / LABEL_IN))
    axes.xaxis.set_major_locator(matplotlib.dates.AutoDateLocator(minticks=2, maxticks=most))
    axes.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%H:%M:%S"))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def colour_of(value, steps):
    colour = "text"
    for step in steps:
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    return COLOURS.get(colour, colour)


def numbers(panel):
    defaults = panel["fieldConfig"]["defaults"]
    words = {v: w["text"] for m in defaults.get("mappings", []) for v, w in m["options"].items()}
    out = []
    for answer in panel["answers"]:
        for series in answer["result"]:
            value = points(series)[1][-1]
            text = words.get(f"{value:g}", in_unit(value, panel["unit"]))
            colour = colour_of(value, defaults.get("thresholds", {}).get("steps", []))
            name = name_of(answer["legend"], series["metric"])
            out.append(f'<span style="color:{colour}">{html.escape(text)}</span> <small>{html.escape(name)}</small>')
    return '<div class="number">' + "".join(out) + "</div>"


def table(panel):
    options = panel["transformations"][0]["options"]
    rows = []
    for answer in panel["answers"]:
        rows += [{**s["metric"], "Value": in_unit(points(s)[1][-1], panel["unit"])} for s in answer["result"]]
    columns = [c for c in dict.fromkeys(c for row in rows for c in row) if not options["excludeByName"].get(c)]
    head = "".join(f"<th>{html.escape(options['renameByName'].get(c, c))}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(r.get(c, ''))}</td>" for c in columns) + "</tr>" for r in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def panel_html(panel, folder, name, step):
    if not has_numbers(panel):
        reason = panel["description"].partition("May be empty: ")[2]
        inner = f'<p class="empty">No data{": " + html.escape(reason) if reason else "."}</p>'
    elif panel["type"] == "stat":
        inner = numbers(panel)
    elif panel["type"] == "table":
        inner = table(panel)
    else:
        picture(panel, folder / name, step)
        inner = f'<img src="{name}" alt="{html.escape(panel["title"])}">'
    title = f'<h3 title="{html.escape(panel["description"])}">{html.escape(panel["title"])}</h3>'
    return place(panel["gridPos"], "panel", title + inner)


def place(pos, kind, inner):
    style = f"grid-column:{pos['x'] + 1}/span {pos['w']};grid-row:{pos['y'] + 1}/span {pos['h']}"
    return f'<div class="{kind}" style="{style}">{inner}</div>'


def row_html(row, folder, prefix, step):
    top = min(panel["gridPos"]["y"] for panel in row["panels"])
    for panel in row["panels"]:
        panel["gridPos"]["y"] -= top
    cells = [panel_html(panel, folder, f"{prefix}-{at + 1:02}.png", step) for at, panel in enumerate(row["panels"])]
    title, grid = html.escape(row["title"]), f'<div class="grid">{"".join(cells)}</div>'
    if row["folded"]:
        return f"<details><summary>{title}</summary>{grid}</details>"
    return f'<section><h3 class="row">{title}</h3>{grid}</section>'


def main(answers, folder):
    asked = json.loads(pathlib.Path(answers).read_text())
    folder = pathlib.Path(folder)
    sections = []
    for dashboard in asked["dashboards"]:
        rows = [
            row_html(row, folder, f"{dashboard['uid']}-{at + 1:02}", asked["step"])
            for at, row in enumerate(dashboard["rows"])
        ]
        head = f"<h2>{html.escape(dashboard['title'])}</h2><p>{html.escape(dashboard['description'])}</p>"
        sections.append(f'<article id="{dashboard["uid"]}">{head}{"".join(rows)}</article>')
    when = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Rivulet</title><style>{STYLE}</style>'
        f"<h1>Rivulet</h1><p>{NOTE} The last {asked['seconds']} s before {when}.</p>{''.join(sections)}</html>"
    )
    (folder / "index.html").write_text(page)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("draw.py ANSWERS FOLDER")
    main(sys.argv[1], sys.argv[2])
