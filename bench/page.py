"""What bench/run measured, as lines of docs/RESULTS.md, and whether it is enough for them to be written there."""

from comparisons import all_comparisons
from processes import BenchError
from results import runs_table, table

ROUNDS = 5  # of each usual comparison, before the page is written


def lacking(stores):
    """In words: which usual comparisons have too few rounds for the page."""
    usual = [comparison.name for comparison in all_comparisons() if not comparison.only_if_named]
    return [f"{name} has {len(stores[name].rounds)}" for name in usual if len(stores[name].rounds) < ROUNDS]


def said_once(key, measured):
    """What the comparisons have in common is said once, what they have not with their names."""
    names_of = {}
    for name, store in measured.items():
        names_of.setdefault(store.about[key], []).append(name)
    if len(names_of) == 1:
        return next(iter(names_of))
    return "; ".join(f"{words} ({', '.join(names)})" for words, names in names_of.items())


def lengths(measured, length_of):
    """How long a run was; the usual length first."""
    usual = [comparison.name for comparison in all_comparisons() if not comparison.only_if_named]
    said = dict.fromkeys(length_of[name] for name in measured if name in usual)
    return "; ".join([*said, *(f"{name}: {length_of[name]}" for name in measured if name not in usual)])


def page_lines(stores, length_of):
    """`length_of`: of a run of each comparison, in words."""
    measured = {name: store for name, store in stores.items() if store.rounds}
    if not measured:
        raise BenchError("nothing was measured of this code yet")
    results = [(comparison, stores[comparison.name].rounds) for comparison in all_comparisons()]
    when = sorted({store.about["when"] for store in measured.values()})
    when = " to ".join(dict.fromkeys([when[0], when[-1]]))
    machine, ours, rival, commit = (said_once(key, measured) for key in ("machine", "ours", "rival", "commit"))
    return [
        f"Measured {when} at {commit} by `bench/run`, in turns; {lengths(measured, length_of)}.",
        f"Machine: {machine}. Ours: {ours}. Rival: {rival}.",
        "Medians (p10 to p90); ratios are taken round by round, that of agreement, a difference, from the medians.",
        "",
        *table(results),
        "",
        "Each run by itself:",
        *(line for result in results if result[1] for line in ["", *runs_table(*result)]),
    ]
