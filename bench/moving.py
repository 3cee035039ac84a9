"""Scores of learners on changing streams, and the tables of `bench/streams`. A hit is 1 for a correctly predicted row."""

import json
import statistics

LAST = 1000  # rows at the end
WINDOW = 500  # rows of the moving accuracy after a change
NEAR = 0.02  # difference that counts as recovered
SOON = 1000  # rows after a change


def hits_of_bits(model):
    bits = f"{int(model['right'], 16):0{model['rows']}b}"
    return [float(bit) for bit in bits], model["rows_per_s"]


def hits_of_decisions(folder, device=0):
    """Returns the hits of one device; each row has the mean of its round. Rotated log files are numbered, the newest is not."""
    hits, full = [], sorted(folder.glob("decisions.jsonl.*"), key=lambda file: int(file.suffix[1:]))
    for file in [*full, folder / "decisions.jsonl"]:
        for line in file.read_text().splitlines():
            facts = json.loads(line).get("facts", [])
            fact = facts[device] if device < len(facts) else {}
            if rows := fact.get("rows", 0):
                hits += [fact["correct"] / rows] * rows
    return hits


def rows_until_back(hits, begin, end):
    """Returns the rows from a change until the last WINDOW are as good as those before it. The minimum is WINDOW; end - begin
    means never."""
    before = statistics.fmean(hits[begin - WINDOW : begin])
    inside = sum(hits[begin : begin + WINDOW])
    for now in range(begin + WINDOW, end):
        if inside / WINDOW >= before - NEAR:
            return now - begin
        inside += hits[now] - hits[now - WINDOW]
    return end - begin


def scores(hits, changes, rows_per_s):
    made = {"last": statistics.fmean(hits[-LAST:]), "all": statistics.fmean(hits), "rows_per_s": rows_per_s}
    if changes:
        ends = [*changes[1:], len(hits)]
        made["soon"] = statistics.fmean(statistics.fmean(hits[begin : begin + SOON]) for begin in changes)
        made["back"] = statistics.fmean(rows_until_back(hits, begin, end) for begin, end in zip(changes, ends))
    return made


def spread(values, form):
    """Formats mean, p10 and p90."""
    if len(values) == 1:
        return form(values[0])
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    low, high = form(tenths[0]), form(tenths[-1])
    return f"{form(statistics.fmean(values))} ({low} to {high})" if low != high else low


def percent(value):
    return f"{100 * value:.1f}"


def whole(value):
    return f"{value:,.0f}".replace(",", " ")


def best(models, names, key):
    return max(names, key=lambda name: statistics.fmean(of(models, name, key)))


def of(models, name, key):
    return [score[key] for score in models[name]]


def line(name, models, key, form, by):
    """Formats a line with the best linear and the best single model by score `by`; forests are not single models."""
    linear = best(models, [model for model in models if model.startswith("LR")], by)
    single = best(models, [linear, "HAT"], by)
    cells = [name]
    for model in ("Rivulet", linear, "HAT", "ARF"):
        cells.append(spread(of(models, model, key), form) if model in models else "")
    cells.append(single)
    apart = [a - b for a, b in zip(of(models, "Rivulet", key), of(models, single, key))] if "Rivulet" in models else []
    cells.append(spread(apart, lambda value: ("+" if value > 0 else "") + form(value)) if apart else "")
    return "| " + " | ".join(cells) + " |"


# Recovery is compared with the most accurate model: recovery to a low accuracy is worth nothing.
TABLES = [
    (f"Accuracy over the last {LAST} rows, %", "last", percent, "last"),
    ("Accuracy over all rows, %", "all", percent, "all"),
    (f"Accuracy over the first {SOON} rows after a sudden change, %", "soon", percent, "soon"),
    (f"Rows until the accuracy over the last {WINDOW} is within 2 points of that before the change", "back", whole, "last"),
    ("Rows per second on one core", "rows_per_s", whole, "rows_per_s"),
]


def tables(all_scores):
    for title, key, form, by in TABLES:
        lines = [line(name, models, key, form, by) for name, models in all_scores.items() if key in models["HAT"][0]]
        if lines:
            yield from ["", f"{title}: mean (p10 to p90) of seeds", ""]
            yield "| stream | Rivulet | LR | HAT | ARF | best single model | Rivulet minus best |"
            yield "|" + " --- |" * 7
            yield from lines
