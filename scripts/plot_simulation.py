#!/usr/bin/env python3
"""Plots tables that `rivulet simulate --csv FOLDER` wrote: accuracy (or loss, where none was measured) and rows
used over time, one line for each folder.

    scripts/plot_simulation.py out.svg ours=FOLDER conventional=FOLDER [--title TEXT]

Needs matplotlib (Debian: python3-matplotlib; PyPI: matplotlib).
"""
import argparse
import csv
import pathlib
import sys


def column(rows, name):
    return [float(row[name]) for row in rows]


def read(folder, table):
    with open(pathlib.Path(folder) / table, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def learned(folder):
    """Seconds, values and the name of what a run has learned."""
    accuracy = read(folder, "accuracy.csv")
    if accuracy:
        return column(accuracy, "second"), [100 * a for a in column(accuracy, "accuracy")], "accuracy on held-out rows, %"
    rounds = [r for r in read(folder, "rounds.csv") if float(r["rows"]) > 0]
    return column(rounds, "second"), column(rounds, "loss"), "loss of the round's rows"


def rows_used(folder):
    rounds = [r for r in read(folder, "rounds.csv") if r["mode"] in ("gradients", "parameters")]
    return column(rounds, "second"), [float(r["rows_before"]) + float(r["rows"]) for r in rounds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("runs", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "rivulet"  # the same tables give the same picture
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.8))
    for run in arguments.runs:
        name, _, folder = run.partition("=")
        seconds, values, what = learned(folder)
        left.plot(seconds, values, label=name)
        left.set_ylabel(what)
        right.step(*rows_used(folder), where="post", label=name)
    right.set_ylabel("rows trained")
    for axes in (left, right):
        axes.set_xlabel("seconds")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.suptitle(arguments.title)
    figure.tight_layout()
    figure.savefig(arguments.image, metadata={"Date": None} if arguments.image.endswith(".svg") else None)


if __name__ == "__main__":
    sys.exit(main())
