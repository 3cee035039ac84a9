"""Learning rates on uneven streams from `rivulet simulate`: stored runs, the best rates, a table."""

import concurrent.futures
import csv
import json
import pathlib
import subprocess

from batching import GOOD, RATES, all_batchings, held_since
from processes import BUILD, MNIST, ROOT, BenchError
from results import percentile, row

SEEDS = [1, 2, 3]
LOOK = 5  # seconds between evaluations of `rivulet simulate`


class Tuning:
    """Stores runs in `folder`, one directory each. They are deterministic and not repeated."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def run_of(self, name, rate, seed):
        return self._folder / f"{name}-{rate}-{seed}"

    def seeds_of(self, name, rate):
        """Returns the seeds that have run."""
        return [seed for seed in SEEDS if self.run_of(name, rate, seed).exists()]

    def simulate(self, name, rate, seed):
        done = self.run_of(name, rate, seed)
        if done.exists():
            return
        batching = all_batchings()[name]
        unfinished = self._folder / f"{done.name}.unfinished"
        command = ["setpriv", "--pdeathsig", "KILL", BUILD / "rivulet", "simulate", "--data", MNIST]
        command += ["--config", ROOT / "bench" / "device.toml"]
        command += ["--rates", ",".join(map(str, RATES)), "--seed", seed, "--csv", unfinished]
        command += ["--stop-after", f"seconds={batching.seconds}"]
        for setting in [*batching.settings, f"train.optimizer.lr={rate}"]:
            command += ["--set", setting]
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise BenchError(f"rivulet simulate: {ran.stderr[-1000:]}")
        unfinished.rename(done)

    def scores(self, name, rate, seed):
        """Returns (second, accuracy) pairs."""
        with open(self.run_of(name, rate, seed) / "accuracy.csv", newline="", encoding="utf-8") as file:
            return [(float(line["second"]), float(line["accuracy"])) for line in csv.DictReader(file)]

    def merit(self, name, rate, seeds):
        """Lower is better: seconds to sustained accuracy, then the final accuracy. Medians over the seeds."""
        scores = [self.scores(name, rate, seed) for seed in seeds]
        held = [held_since(score, all_batchings()[name].seconds) for score in scores]
        return percentile(held, 0.5), -percentile([score[-1][1] for score in scores], 0.5)

    def tune(self, names, workers):
        """Runs every rate with one seed, the best two with all seeds."""
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:

            def all_of(runs):
                for future in [pool.submit(self.simulate, *run) for run in runs]:
                    future.result()

            for name in names:
                candidates = all_batchings()[name].candidates
                all_of((name, rate, SEEDS[0]) for rate in candidates)
                best = sorted(candidates, key=lambda rate, name=name: self.merit(name, rate, SEEDS[:1]))[:2]
                all_of((name, rate, seed) for seed in SEEDS[1:] for rate in best)

    def chosen(self, name):
        """Returns the best rate that ran with all seeds, or None.

        Of rates within one evaluation interval of the best, returns the lowest: a high rate makes the accuracy drop between
        evaluations, which shows if they are 2 s apart (docs/BENCHMARKING.md).
        """
        tried = [rate for rate in all_batchings()[name].candidates if len(self.seeds_of(name, rate)) == len(SEEDS)]
        best = min(tried, key=lambda rate: self.merit(name, rate, SEEDS), default=None)
        if best is None or self.held(name, best) >= all_batchings()[name].seconds:
            return best
        return min(rate for rate in tried if self.held(name, rate) <= self.held(name, best) + LOOK)

    def held(self, name, rate):
        return self.merit(name, rate, SEEDS)[0]

    def write(self, file):
        """Writes the rates and the best fixed batch, once all are known."""
        rates = {name: self.chosen(name) for name in all_batchings()}
        if all(rates.values()):
            fixed = [name for name in rates if name.startswith("fixed-")]
            best = min(fixed, key=lambda name: self.merit(name, rates[name], SEEDS))
            file.write_text(json.dumps({"rates": rates, "best_fixed": best}, indent=2) + "\n")

    def cell(self, name, rate):
        seeds = self.seeds_of(name, rate)
        if not seeds:
            return ""
        held, end = self.merit(name, rate, seeds)
        reached = held < all_batchings()[name].seconds and -end >= GOOD
        found = f"{held:.0f} s" if reached else f"no, {-100 * end:.1f} %"
        return f"**{found}**" if rate == self.chosen(name) else found

    def table(self):
        rates = sorted({rate for batching in all_batchings().values() for rate in batching.candidates})
        head = [row(["time to sustained 90 %", *(f"lr {rate}" for rate in rates)]), row(["---"] * (1 + len(rates)))]
        return head + [row([name, *(self.cell(name, rate) for rate in rates)]) for name in all_batchings()]
