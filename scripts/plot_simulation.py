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
    """Seconds, values and the name of the score of a run."""
    accuracy = read(folder, "accuracy.csv")
    if accuracy:
        return column(accuracy, "second"), [100 * a for a in column(accuracy, "accuracy")], "accuracy on held-out rows, %"
    rounds = [r for r in read(folder, "rounds.csv") if float(r["rows"]) > 0]
    return column(rounds, "second"), column(rounds, "loss"), "loss of the round's rows"


def rows_used(folder):
    rounds = [r for r in read(folder, "rounds.csv") if r["mode"] in ("gradients", "delta")]
    return column(rounds, "second"), [float(r["rows_before"]) + float(r["rows"]) for r in rounds]


def run_of(word):
    """NAME=FOLDER as (name, folder)."""
    name, equals, folder = word.partition("=")
    if not name or not equals or not (pathlib.Path(folder) / "rounds.csv").is_file():
        raise argparse.ArgumentTypeError(f"{word} is not NAME=FOLDER with a folder of tables")
    return name, folder


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("runs", nargs="+", type=run_of, metavar="NAME=FOLDER")
    parser.add_argument("--title", default="")
    return parser.parse_args()


def plot(image, runs, title):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "rivulet"  # reproducible output
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.8))
    for name, folder in runs:
        seconds, values, what = learned(folder)
        left.plot(seconds, values, label=name)
        left.set_ylabel(what)
        right.step(*rows_used(folder), where="post", label=name)
    right.set_ylabel("rows trained")
    for axes in (left, right):
        axes.set_xlabel("seconds")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(image, metadata={"Date": None} if image.endswith(".svg") else None)


def main():
    given = arguments()
    try:
        plot(given.image, given.runs, given.title)
    except KeyError as missing:
        sys.exit(f"plot_simulation.py: a table has no column {missing}")
    except (ImportError, OSError, ValueError) as fault:
        sys.exit(f"plot_simulation.py: {fault}")


if __name__ == "__main__":
    main()
