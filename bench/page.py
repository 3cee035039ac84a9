"""Renders the rounds of bench/run as lines of docs/RESULTS.md, and checks that they are numerous enough."""

from comparisons import all_comparisons
from processes import BenchError
from results import runs_table, table

ROUNDS = 5  # of each default comparison, required to write the page


def lacking(stores):
    """Lists the default comparisons with too few rounds for the page, as text."""
    usual = [comparison.name for comparison in all_comparisons() if not comparison.only_if_named]
    return [f"{name} has {len(stores[name].rounds)}" for name in usual if len(stores[name].rounds) < ROUNDS]


def said_once(key, measured):
    """Prints a common value once, different values with the names of their comparisons."""
    names_of = {}
    for name, store in measured.items():
        names_of.setdefault(store.about[key], []).append(name)
    if len(names_of) == 1:
        return next(iter(names_of))
    return "; ".join(f"{words} ({', '.join(names)})" for words, names in names_of.items())


def lengths(measured, length_of):
    """Returns the durations of the runs as text, that of the default comparisons first."""
    usual = [comparison.name for comparison in all_comparisons() if not comparison.only_if_named]
    said = dict.fromkeys(length_of[name] for name in measured if name in usual)
    return "; ".join([*said, *(f"{name}: {length_of[name]}" for name in measured if name not in usual)])


def page_lines(stores, length_of):
    """`length_of`: the duration of a run of each comparison, as text."""
    measured = {name: store for name, store in stores.items() if store.rounds}
    if not measured:
        raise BenchError("nothing was measured with this code yet")
    results = [(comparison, stores[comparison.name].rounds) for comparison in all_comparisons()]
    when = sorted({store.about["when"] for store in measured.values()})
    when = " to ".join(dict.fromkeys([when[0], when[-1]]))
    machine, ours, rival, commit = (said_once(key, measured) for key in ("machine", "ours", "rival", "commit"))
    return [
        f"Measured {when} at {commit} by `bench/run`, with alternating sides; {lengths(measured, length_of)}.",
        f"Machine: {machine}. Ours: {ours}. Rival: {rival}.",
        "Medians (p10 to p90). Ratios are computed within each round, except for synchronization, a difference, whose ratio is that of the medians.",
        "",
        *table(results),
        "",
        "The runs:",
        *(line for result in results if result[1] for line in ["", *runs_table(*result)]),
    ]
