#!/usr/bin/env python3
"""River (pinned in river.txt) on changing streams. It also generates the rows: both sides of `bench/streams` read the same file.

    streams.py list                       prints all streams: number of rows, and positions of abrupt concept changes
    streams.py rows NAME SEED > FILE      prints the rows in order, one JSON object per line
    streams.py learn NAME SEED < FILE     one pass that predicts each row before it is learned; prints for each model the
                                          correctly predicted rows, one bit per row, and its rows per CPU second
"""

import itertools
import json
import sys
import time

from river import compose, datasets, forest, linear_model, multiclass, preprocessing, tree
from river.datasets import synth

ROWS = 20_000


def taken(rows, *generators):
    """Returns N rows of each generator, with an abrupt concept change between two. (ConceptDriftStream needs at least a
    hundred rows for a change: its exponential overflows with fewer.)"""
    return itertools.chain(*(generator.take(rows) for generator in generators))


def sea(seed):
    return taken(ROWS // 4, *(synth.SEA(variant=v, noise=0.1, seed=10 * seed + v) for v in range(4)))


def agrawal(seed):
    before, after = (synth.Agrawal(f, seed=10 * seed + f, perturbation=0.05) for f in (0, 2))
    return taken(ROWS // 2, before, after)


def led(seed):
    """The seven segments swap places with other ones of the 24 features."""
    kind = {"noise_percentage": 0.1, "irrelevant_features": True}
    before = synth.LED(seed=10 * seed, **kind)
    return taken(ROWS // 2, before, synth.LEDDrift(seed=10 * seed + 1, n_drift_features=7, **kind))


def hyperplane(seed):
    return synth.Hyperplane(seed=seed, n_drift_features=10, mag_change=0.001).take(ROWS)


# name -> rows, abrupt changes, generator. Real data has the same order for all seeds.
HALF, QUARTERS = [ROWS // 2], [ROWS // 4, ROWS // 2, 3 * ROWS // 4]
STREAMS = {
    "banana": (5300, [], lambda _: datasets.Bananas()),
    "phishing": (1250, [], lambda _: datasets.Phishing()),
    "segment": (2310, [], lambda _: datasets.ImageSegments()),
    "sea": (ROWS, QUARTERS, sea),
    "agrawal": (ROWS, HALF, agrawal),
    "led": (ROWS, HALF, led),
    "hyperplane": (ROWS, [], hyperplane),
}
# Numeric codes of categories, declared to River but not to Rivulet.
NOMINAL = {"agrawal": ["elevel", "car", "zipcode"]}


def plain(value):
    return float(f"{value:.6g}") if isinstance(value, float) else value


def write_rows(name, seed):
    for features, target in STREAMS[name][2](seed):
        row = {key if isinstance(key, str) else f"x{key}": plain(value) for key, value in features.items()}
        print(json.dumps({**row, "target": target}))


def linear(classes, nominal):
    """Returns all linear models for these rows; the best one counts."""
    scaled = preprocessing.StandardScaler()
    if nominal:
        scaled = (compose.Discard(*nominal) | scaled) + (compose.Select(*nominal) | preprocessing.OneHotEncoder())
    if classes == 2:
        return {"LR": scaled | linear_model.LogisticRegression()}
    each = scaled.clone() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    return {"LR": each, "LR softmax": scaled | linear_model.SoftmaxRegression()}


def models(classes, nominal, seed):
    made = linear(classes, [])
    if nominal:
        made |= {f"{name} one-hot": model for name, model in linear(classes, nominal).items()}
    made["HAT"] = tree.HoeffdingAdaptiveTreeClassifier(nominal_attributes=nominal or None, seed=seed)
    made["ARF"] = forest.ARFClassifier(nominal_attributes=nominal or None, seed=seed)
    return made


def learn(model, rows):
    right, began = [], time.process_time()
    for features, target in rows:
        right.append(model.predict_one(features) == target)
        model.learn_one(features, target)
    seconds = time.process_time() - began
    bits = "".join("01"[bit] for bit in right)
    return {"right": f"{int(bits, 2):0{(len(bits) + 3) // 4}x}", "rows": len(bits), "rows_per_s": len(bits) / seconds}


def learn_all(name, seed):
    rows = [json.loads(line) for line in sys.stdin]
    rows = [({key: row[key] for key in row if key != "target"}, row["target"]) for row in rows]
    classes = len({target for _, target in rows})
    made = models(classes, NOMINAL.get(name, []), seed)
    print(json.dumps({kind: learn(model, rows) for kind, model in made.items()}))


def main():
    what, *words = sys.argv[1:]
    if what == "list":
        print(json.dumps({name: {"rows": rows, "changes": changes} for name, (rows, changes, _) in STREAMS.items()}))
    elif what == "rows":
        write_rows(words[0], int(words[1]))
    else:
        learn_all(words[0], int(words[1]))


if __name__ == "__main__":
    main()
