"""Tests the processing of measurements: the arithmetic of the table, stored rounds, the page."""

import pathlib
import subprocess
import tempfile
import unittest

import figures
import page
import results
from batching import held_since
from comparisons import Line, all_comparisons, value
from processes import BenchError

KEYS = ["rows_per_s", "cpu_us_per_row", "step_ms", "pss_mib", "pss_without_cuda_mib", "first_step_s", "other_cores"]


def sample(scale, keys=KEYS):
    return {key: scale * (position + 1.0) for position, key in enumerate(keys)}


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

    def sync_cells(self, *differences):
        """Returns the cells of rounds with these synchronization times, (ours, rival)."""
        line = Line("a", "ms", value("ours", "d"), value("rival", "d"), 0.3, False, differences=True)
        return results.line_cells(line, [{"ours": {"d": one}, "rival": {"d": other}} for one, other in differences])

    def test_differences_keep_their_sign_and_are_compared_by_their_medians(self):
        cells = self.sync_cells((1, 10), (2, 10), (3, 5))
        self.assertEqual(cells[2:5], ["2 (1.2 to 2.8) ms", "10 (6 to 10)", "0.2 (0.12 to 0.52 in 3 of 3 rounds)"])
        self.assertEqual(cells[-1], "met")
        cells = self.sync_cells((-1, 10), (2, 10), (4, 10))
        self.assertEqual(cells[2:5], ["2 (-0.4 to 3.6) ms", "10 (10 to 10)", "0.2 (0.22 to 0.38 in 2 of 3 rounds)"])
        self.assertEqual(cells[-1], results.UNRESOLVED)

    def test_a_difference_that_is_not_above_nothing_gives_no_ratio(self):
        cells = self.sync_cells((1, 1), (1, -1), (1, -2))
        self.assertEqual(cells[3:5], ["-1 (-1.8 to 0.6)", ""])
        self.assertEqual(cells[-1], results.UNRESOLVED)
        pair = next(comparison for comparison in all_comparisons() if comparison.name == "lenet5-2")
        synchronization = next(line for line in pair.lines if line.differences)
        steps = {"ours": 1, "ours-alone": 2, "rival": 5, "rival-batch": 4, "rival-alone": 6}
        samples = {run: {"step_ms": step} for run, step in steps.items()}
        self.assertEqual((synchronization.ours(samples), synchronization.other(samples)), (-1, -2))

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

    def test_rounds_that_cannot_be_read_are_said(self):
        for damaged in ("{", "[]", '{"key": "code 1"}', "\udcff"):
            (self.folder / "a.json").write_text(damaged, errors="surrogateescape")
            with self.assertRaisesRegex(BenchError, "a.json is damaged"):
                results.Store(self.folder, "a", "code 1")
        self.assertEqual(results.Store(self.folder, "a", "code 1", fresh=True).rounds, [])

    def test_other_changes_are_other_code_and_pages_are_not_code(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.folder, check=True)

        (self.folder / "docs").mkdir()
        (self.folder / "bench").mkdir()
        for name in ("code", "docs/page", "bench/figures.toml"):
            (self.folder / name).write_text("1")
        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message", "all")
        clean = results.commit(self.folder)
        for name in ("docs/page", "bench/figures.toml"):
            (self.folder / name).write_text("2")
        self.assertEqual(results.commit(self.folder), clean)
        seen = []
        for text in ("2", "3", "2"):
            (self.folder / "code").write_text(text)
            seen.append(results.commit(self.folder))
        self.assertTrue(all(name.startswith(f"{clean}+changes-") for name in seen), seen)
        self.assertEqual((seen[0] == seen[1], seen[0] == seen[2]), (False, True))


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rivulet-bench-")
        self.addCleanup(folder.cleanup)
        self.stores = {c.name: results.Store(folder.name, c.name, "code") for c in all_comparisons()}
        self.lengths = dict.fromkeys(self.stores, "4 s per run") | {"uneven": "240 s of streams"}

    def measured(self, name, rounds, machine="one"):
        comparison = next(c for c in all_comparisons() if c.name == name)
        keys = sorted({*comparison.columns.values(), *comparison.caps.values(), *KEYS})
        about = {"when": f"on {machine}", "machine": machine, "commit": "abc", "ours": "1", "rival": "2"}
        for _ in range(rounds):
            self.stores[name].add({run: sample(1, keys) for run in comparison.runs}, about)

    def test_it_is_whole_with_the_rounds_of_every_usual_comparison(self):
        usual = [c.name for c in all_comparisons() if not c.only_if_named]
        for name in usual[1:]:
            self.measured(name, page.ROUNDS)
        self.measured(usual[0], page.ROUNDS - 1)
        self.assertEqual(page.lacking(self.stores), [f"{usual[0]} has {page.ROUNDS - 1}"])
        self.measured(usual[0], 1)
        self.assertEqual(page.lacking(self.stores), [])

    def test_each_length_and_each_machine_is_named_once(self):
        self.measured("mlp-1", 1)
        self.measured("mlp-2", 1)
        self.assertIn("Machine: one. Ours: 1. Rival: 2.", page.page_lines(self.stores, self.lengths))
        self.measured("uneven", 1, "two")
        lines = page.page_lines(self.stores, self.lengths)
        self.assertTrue(lines[0].endswith("with alternating sides; 4 s per run; uneven: 240 s of streams."), lines[0])
        self.assertIn("Measured on one to on two at abc", lines[0])
        self.assertIn("Machine: one (mlp-1, mlp-2); two (uneven).", lines[1])

    def test_nothing_measured_is_said(self):
        with self.assertRaisesRegex(BenchError, "nothing was measured"):
            page.page_lines(self.stores, self.lengths)


FIGURES = """
[machines]
one = "a machine"
[[group]]
title = "Parts"
machine = "one"
command = "bench/part"
[[group.figure]]
claim = "a part"
baseline = "the minimum"
figure = "1.3 (1.2 to 1.4, n = 5)"
goal = "<= 1.2"
verdict = "short"
commit = "abc"
"""


class Figures(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder:
            file = pathlib.Path(folder) / "figures.toml"
            file.write_text(text)
            return figures.load(file)

    def test_a_figure_is_a_line_with_what_its_group_has(self):
        text = figures.page_text(*self.load(FIGURES), "compared\n")
        line = "| a part | the minimum | 1.3 (1.2 to 1.4, n = 5) | <= 1.2 | **short** | one at abc | `bench/part` |"
        self.assertIn(f"## Parts\n\n{results.row(figures.HEAD)}\n", text)
        self.assertIn(f"\n{line}\n", text)
        self.assertIn("Of the 1 lines with a goal below", text)
        self.assertIn("\n\ncompared\n\n## Parts", text)

    def test_figures_that_make_no_line_are_refused(self):
        for change, words in (
            (("baseline", "rival"), "unknown key rival"),
            (("[machines]", "[machine]"), "unknown key machine"),
            (('verdict = "short"', 'verdict = "good"'), "verdict met or short"),
            (('goal = "<= 1.2"', 'goal = ""'), "verdict met or short"),
            (('machine = "one"', 'machine = "two"'), "unknown machine 'two'"),
            (('claim = "a part"', 'claim = ""'), "claim and a figure"),
            (("the minimum", "the | minimum"), "one line without"),
            (('"1.3 (1.2 to 1.4, n = 5)"', "1.3"), "one line without"),
            (("[[group]]", "[[group"), "figures.toml"),
        ):
            with self.assertRaisesRegex(BenchError, words):
                self.load(FIGURES.replace(*change))

    def test_the_page_is_what_its_data_gives(self):
        self.assertEqual(figures.PAGE.read_text(), figures.made())
