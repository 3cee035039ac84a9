#!/usr/bin/env python3
"""Results of River's ADWIN for the streams of tests/unit/runtime_adwin_test.cpp: the table in that test.

    python -m venv DIR && DIR/bin/pip install river==0.26.1
    DIR/bin/python tests/support/programs/adwin.py

prints the table's lines. A stream has the same parameters in both languages and its values have the same bits:
they are computed only by integers, sums and products."""

from river.drift import ADWIN


class Chance:
    """Numbers from 0 to 1 by a linear congruential generator (Knuth's MMIX)."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) * 2.0**-53

    def normal(self):
        return sum(self.uniform() for _ in range(12)) - 6.0


def bernoulli(chance, mean):
    return 1.0 if chance.uniform() < mean else 0.0


def about(chance, mean):
    return mean + 0.1 * chance.normal()


def always(chance, mean):
    return mean


# name, kind, mean before and after, first value of the change, values until it is complete, values, delta
STREAMS = [
    ("stationary", bernoulli, 0.3, 0.3, 0, 0, 100_000, 0.002),
    ("stationary and rash", bernoulli, 0.3, 0.3, 0, 0, 100_000, 0.3),
    ("abrupt rise", bernoulli, 0.2, 0.6, 3_000, 0, 8_000, 0.002),
    ("abrupt fall", bernoulli, 0.6, 0.2, 3_000, 0, 8_000, 0.002),
    ("slow drift", bernoulli, 0.1, 0.6, 2_000, 20_000, 24_000, 0.002),
    ("normal", about, 1.0, 1.1, 5_000, 0, 10_000, 0.002),
    ("normal, far from 0", about, 1e4, 1e4 - 0.25, 2_000, 0, 4_000, 0.002),
    ("small change after long calm", bernoulli, 0.1, 0.13, 60_000, 0, 80_000, 0.002),
    ("constant", always, 0.7, 0.7, 0, 0, 5_000, 0.002),
    ("constant step", always, 0.0, 1.0, 1_000, 0, 1_200, 0.002),
]


def values(kind, before, after, begin, length, count):
    chance = Chance(1)
    for i in range(count):
        part = 0.0 if i < begin else 1.0 if i >= begin + length else (i - begin) / length
        yield kind(chance, before + part * (after - before))


def looks(count):
    """Positions at which the window is compared: a few without a pattern, and the last."""
    return [count // 7, count // 3, count // 2 + 13, count - 1]


def quoted(numbers):
    return "{" + ", ".join(numbers) + "}"


def main():
    for name, kind, before, after, begin, length, count, delta in STREAMS:
        detector, found, seen = ADWIN(delta=delta), [], []
        for i, value in enumerate(values(kind, before, after, begin, length, count)):
            detector.update(value)
            state = f"{{{i}, {int(detector.width)}, {detector.estimation!r}, {detector.variance / detector.width!r}}}"
            if detector.drift_detected:
                found.append(state)
            if i in looks(count):
                seen.append(state)
        how = f'"{name}", {kind.__name__}, {before}, {after}, {begin}, {length}, {count}, {delta}'
        print(f"    {{{how},\n     {quoted(found)},\n     {quoted(seen)}}},")


if __name__ == "__main__":
    main()
