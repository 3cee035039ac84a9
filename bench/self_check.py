"""Tries the harness: its arithmetic, its memory, its page, and one measurement of real devices on a real Kafka."""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import batching
import processes
import results
from batching import held_since
from comparisons import Line, all_comparisons, value
from processes import BenchError, Child, Kafka, wait_until
from sides import Case, all_sides
from slow import MBIT, measure_slow
from tuning import SEEDS, Tuning
from uneven import measure_uneven, topics_of

KEYS = ["rows_per_s", "cpu_us_per_row", "step_ms", "pss_mib", "pss_without_cuda_mib", "first_step_s", "other_cores"]


def sample(scale, keys=KEYS):
    return {key: scale * (position + 1.0) for position, key in enumerate(keys)}


def ended(pid):
    with contextlib.suppress(FileNotFoundError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True


class Arithmetic(unittest.TestCase):
    def test_percentiles_lie_between_what_was_measured(self):
        values = [5, 1, 4, 2, 3]
        for share, expected in ((0, 1), (0.1, 1.4), (0.5, 3), (0.9, 4.6), (1, 5)):
            self.assertAlmostEqual(results.percentile(values, share), expected)
        self.assertEqual((results.percentile([2, 4], 0.5), results.percentile([7], 0.9)), (3, 7))

    def test_numbers_are_short(self):
        self.assertEqual([results.short(n) for n in (0.12345, 12.345, 123456.0)], ["0.123", "12.3", "123 000"])

    def test_the_ratio_is_the_median_of_the_rounds_ratios(self):
        line = Line("a", "s", value("ours", "step_ms"), value("rival", "step_ms"), 0.5, more_is_better=False)
        rounds = [{"ours": {"step_ms": a}, "rival": {"step_ms": b}} for a, b in ((1, 10), (4, 10), (9, 10))]
        cells = results.line_cells(line, rounds)
        self.assertEqual(cells[4], "0.4 (0.16 to 0.8)")
        self.assertEqual((cells[1], cells[-1]), ("<= 0.5", "met"))

    def test_more_or_less_is_better(self):
        self.assertFalse(Line("", "", None, None, 1.1).is_met(1.0))
        self.assertTrue(Line("", "", None, None, 1.1).is_met(1.2))
        self.assertFalse(Line("", "", None, None, 0.3, more_is_better=False).is_met(0.4))

    def test_every_line_reads_the_runs_of_its_comparison(self):
        for comparison in all_comparisons():
            keys = sorted({*comparison.columns.values(), *comparison.caps.values(), *KEYS})
            samples = {run: sample(1 + position, keys) for position, run in enumerate(comparison.runs)}
            self.assertEqual(len(results.table([(comparison, [samples])])), 2 + len(comparison.lines))
            self.assertEqual(len(results.runs_table(comparison, [samples])), 2 + len(comparison.runs))

    def test_good_is_what_stays_good(self):
        scores = [(4, 0.95), (1, 0.91), (2, 0.5), (3, 0.9)]
        self.assertEqual(held_since(scores, 10), 3)
        self.assertEqual(held_since([*scores, (5, 0.89)], 10), 10)
        self.assertEqual(held_since([], 10), 10)

    def test_what_was_not_reached_is_said_and_meets_nothing(self):
        line = Line("a", "s", value("ours", "s"), value("other", "s"), 1.0, more_is_better=False, cap="cap_s")
        sample = {"ours": {"s": 60, "cap_s": 240}, "other": {"s": 240, "cap_s": 240}}
        cells = results.line_cells(line, [sample] * 3)
        self.assertEqual(cells[2:5], ["60 (60 to 60) s", "not within 240", "at most 0.25 (0.25 to 0.25)"])
        self.assertEqual(cells[-1], "met")
        sample["ours"]["s"] = 240
        self.assertEqual(results.line_cells(line, [sample] * 3)[-1], "**short**")

    def test_nothing_is_known_between_what_was_reached_and_what_was_not(self):
        self.assertEqual(results.spread([60, 240], 240), "not within 240")
        self.assertEqual(results.spread([60, 70, 80, 90, 240], 240), "80 (64 to not within 240)")

    def test_few_rounds_get_no_verdict(self):
        line = Line("a", "s", value("ours", "s"), value("other", "s"), 1.0, more_is_better=False)
        rounds = [{"ours": {"s": 1}, "other": {"s": 2}}] * 3
        self.assertEqual(results.line_cells(line, rounds[:2])[-1], "n too small")
        self.assertEqual(results.line_cells(line, rounds)[-1], "met")

    def agreement_cells(self, *differences):
        """Of rounds in which ours and the rival's agreement take so long."""
        line = Line("a", "ms", value("ours", "d"), value("rival", "d"), 0.3, False, differences=True)
        return results.line_cells(line, [{"ours": {"d": one}, "rival": {"d": other}} for one, other in differences])

    def test_differences_keep_their_sign_and_are_compared_by_their_medians(self):
        cells = self.agreement_cells((1, 10), (2, 10), (3, 5))
        self.assertEqual(cells[2:5], ["2 (1.2 to 2.8) ms", "10 (6 to 10)", "0.2 (0.12 to 0.52 in 3 of 3 rounds)"])
        self.assertEqual(cells[-1], "met")
        cells = self.agreement_cells((-1, 10), (2, 10), (4, 10))
        self.assertEqual(cells[2:5], ["2 (-0.4 to 3.6) ms", "10 (10 to 10)", "0.2 (0.22 to 0.38 in 2 of 3 rounds)"])
        self.assertEqual(cells[-1], results.UNRESOLVED)

    def test_a_difference_that_is_not_above_nothing_gives_no_ratio(self):
        cells = self.agreement_cells((1, 1), (1, -1), (1, -2))
        self.assertEqual(cells[3:5], ["-1 (-1.8 to 0.6)", ""])
        self.assertEqual(cells[-1], results.UNRESOLVED)
        agreement = next(line for c in all_comparisons() if c.name == "lenet5-2" for line in c.lines if line.differences)
        steps = {"ours": 1, "ours-alone": 2, "rival": 5, "rival-batch": 4, "rival-alone": 6}
        samples = {run: {"step_ms": step} for run, step in steps.items()}
        self.assertEqual((agreement.ours(samples), agreement.other(samples)), (-1, -2))

    def test_the_rival_is_its_best_run(self):
        line = next(c for c in all_comparisons() if c.name == "mlp-2").lines[0]
        samples = {"ours": sample(8), "rival": sample(2), "rival-batch": sample(4)}
        self.assertEqual((line.ours(samples), line.other(samples)), (8, 4))


class Keeping(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rivulet-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_rounds_of_the_same_code_are_kept(self):
        results.Store(self.folder, "a", "code 1").add({"ours": sample(1)}, {"when": "now"})
        again = results.Store(self.folder, "a", "code 1")
        self.assertEqual((again.rounds, again.about), ([{"ours": sample(1)}], {"when": "now"}))
        self.assertEqual(results.Store(self.folder, "a", "code 2").rounds, [])
        self.assertEqual(results.Store(self.folder, "a", "code 1", fresh=True).rounds, [])

    def test_only_what_is_between_the_marks_is_written(self):
        page = self.folder / "page.md"
        page.write_text(f"by hand\n{results.BEGIN}\nold\n{results.END}\nby hand, too\n")
        results.write_into(page, ["new", "lines"])
        self.assertEqual(page.read_text(), f"by hand\n{results.BEGIN}\nnew\nlines\n{results.END}\nby hand, too\n")

    def test_a_page_without_marks_stays_as_it_is(self):
        page = self.folder / "page.md"
        page.write_text("by hand\n")
        with self.assertRaises(BenchError):
            results.write_into(page, ["new"])
        self.assertEqual(page.read_text(), "by hand\n")

    def test_the_page_has_its_marks(self):
        text = (processes.ROOT / "docs" / "PERFORMANCE.md").read_text()
        self.assertEqual((text.count(results.BEGIN), text.count(results.END)), (1, 1))


class Choosing(unittest.TestCase):
    """The learning rate of a way of making batches, by runs as `rivulet simulate --csv` leaves them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rivulet-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tuning = Tuning(self.folder)

    def ran(self, name, rate, good_after):
        """With every seed; `good_after` None: it never was."""
        for seed in SEEDS:
            scores = [(second, 0.95 if good_after and second >= good_after else 0.5) for second in (5, 10, 15, 20)]
            run = self.tuning.run_of(name, rate, seed)
            run.mkdir()
            lines = [f"{second},{accuracy}" for second, accuracy in scores]
            (run / "accuracy.csv").write_text("\n".join(["second,accuracy", *lines, ""]))

    def test_the_rate_that_is_good_first_is_chosen(self):
        low, middle, high = batching.all_batchings()["tick"].candidates[:3]
        self.ran("tick", low, 20)
        self.ran("tick", middle, 10)
        self.ran("tick", high, None)
        self.assertEqual(self.tuning.chosen("tick"), middle)
        self.assertIn("**10 s**", self.tuning.table()[2])
        self.assertIn("no, 50.0 %", self.tuning.table()[2])

    def test_of_rates_that_differ_by_one_look_the_lowest_is_chosen(self):
        low, middle = batching.all_batchings()["tick"].candidates[:2]
        self.ran("tick", low, 15)
        self.ran("tick", middle, 10)
        self.assertEqual(self.tuning.chosen("tick"), low)

    def test_a_rate_that_lacks_seeds_is_not_chosen(self):
        low, middle = batching.all_batchings()["tick"].candidates[:2]
        self.ran("tick", low, 15)
        self.ran("tick", middle, 5)
        shutil.rmtree(self.tuning.run_of("tick", middle, SEEDS[-1]))
        self.assertEqual(self.tuning.chosen("tick"), low)

    def test_rates_are_written_once_all_are_known(self):
        file = self.folder / "rates.json"
        names = list(batching.all_batchings())
        for name in names[1:]:
            self.ran(name, batching.all_batchings()[name].candidates[0], 5 if name == "fixed-8" else 15)
        self.tuning.write(file)
        self.assertFalse(file.exists())
        self.ran(names[0], batching.all_batchings()[names[0]].candidates[0], 15)
        self.tuning.write(file)
        written = json.loads(file.read_text())
        self.assertEqual((sorted(written["rates"]), written["best_fixed"]), (sorted(names), "fixed-8"))

    def test_there_is_a_rate_for_every_way(self):
        for name in batching.all_batchings():
            self.assertIn(batching.learning_rate(name), batching.all_batchings()[name].candidates)
        self.assertTrue(batching.best_fixed().startswith("fixed-"))


class Watching(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rivulet-bench-")
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name) / "log"

    def start(self, code):
        child = Child(["python3", "-c", code], self.log)
        self.addCleanup(child.close)
        return child

    def test_cpu_time_is_seen_and_others_see_it_too(self):
        before = processes.busy_seconds()
        child = self.start("while True: pass")
        wait_until(lambda: child.cpu_seconds() >= 0.2, 30, "CPU time")
        self.assertGreaterEqual(processes.busy_seconds() - before, 0.15)

    def test_memory_is_seen_as_far_as_it_was_touched(self):
        child = self.start("block = bytearray(b'1' * 2**25); print(1, flush=True); import time; time.sleep(60)")
        wait_until(lambda: self.log.read_text() == "1\n", 30, "block")
        total, cuda = child.pss_bytes()
        self.assertGreater(total, 2**25)
        self.assertEqual(cuda, 0)

    def test_a_process_that_ended_says_why(self):
        child = self.start("raise SystemExit('no such thing')")
        with self.assertRaisesRegex(BenchError, "no such thing"):
            wait_until(lambda: child.check_running(), 30, "end")

    def test_a_process_ends_with_whoever_measures_it(self):
        code = "import os, processes, sys\nchild = processes.Child(['sleep', '60'], sys.argv[1])\n"
        code += "while open(f'/proc/{child.pid}/comm').read() != 'sleep\\n': pass\n"  # setpriv has done its part
        code += "print(child.pid, flush=True)\nos.kill(os.getpid(), 9)"
        command = ["python3", "-B", "-c", code, self.log]
        parent = subprocess.run(command, cwd=processes.ROOT / "bench", stdout=subprocess.PIPE, check=False)
        self.assertEqual(parent.returncode, -9)
        wait_until(lambda: ended(int(parent.stdout)), 30, "end of what it had started")

    def test_a_closed_process_is_gone(self):
        child = self.start("import time; time.sleep(60)")
        child.close()
        with self.assertRaises(BenchError):
            child.check_running()


class Measuring(unittest.TestCase):
    """Real devices on a real Kafka; the models are LibTorch's."""

    def test_devices_are_measured_and_a_stream_that_ends_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder:
            kafka = Kafka(folder, "rows", 3)
            self.addCleanup(kafka.close)
            kafka.fill([30_000, 30_000, 0])
            self.assertTrue(all(rows >= 30_000 for rows in kafka.rows[:2]) and kafka.rows[2] == 0, kafka.rows)
            ours = all_sides(kafka)["ours"]
            seen = ours.measure(Case("lenet5", 2), 0.3)
            self.assertEqual(sorted(seen), sorted(KEYS))
            self.assertTrue(all(number >= 0 for number in seen.values()), seen)
            self.assertAlmostEqual(seen["step_ms"] * seen["rows_per_s"], 1e3 * 2 * 64, delta=1)
            kafka.rows = [1, 1, 0]  # as if they had held no more
            with self.assertRaisesRegex(BenchError, "partition 0 ended"):
                ours.measure(Case("lenet5", 2), 0.3)

    def test_a_slow_link_is_the_limit_and_its_bytes_are_counted(self):
        seen = measure_slow("", 0, steps=20)["ours-sum"]
        gradient = 4 * 61_706 / 1e3  # KB
        self.assertGreater(seen["kb_per_step"], gradient)
        self.assertLess(seen["kb_per_step"], 1.2 * gradient)
        self.assertGreater(seen["step_ms"], 8 * gradient / MBIT)
        self.assertTrue(0 <= seen["accuracy"] <= 1, seen)

    def test_live_streams_are_played_and_looked_at(self):
        with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder:
            kafka = Kafka(folder, "unused", 4, topics_of(0))
            self.addCleanup(kafka.close)
            samples = measure_uneven(kafka, "", topics_of(0), 8, 1)
            self.assertEqual(list(samples), ["ours", "ours-1s", "ours-fixed", "ours-64"])
            self.assertGreater(samples["ours"]["used"], 0.9)
            self.assertLess(samples["ours-64"]["used"], 0.5)
            self.assertGreater(samples["ours"]["end"], 0)
            self.assertGreater(samples["ours"]["cores"], 0)


def self_check():
    """Exit code: 0 when all of it holds."""
    words = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromName(__name__)
    outcome = unittest.TextTestRunner(stream=words, verbosity=2).run(suite)
    print(words.getvalue(), end="")
    return 0 if outcome.wasSuccessful() and outcome.testsRun > 0 else 1
