"""Tests the harness: its results, its usage, its child processes, and a measurement of real devices on a real Kafka."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import batching
import processes
from elastic import change_of
from processes import BenchError, Child, Kafka, wait_until
from self_check_results import KEYS
from shaped import SIDES, Links, measure_rate
from sides import Case, all_sides
from tuning import SEEDS, Tuning
from uneven import measure_uneven, our_sides, rival_sides, topics_of


def ended(pid):
    with contextlib.suppress(FileNotFoundError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True


class Changes(unittest.TestCase):
    SEEN = [(0.0, 0, 0), (1.0, 7, 3), (1.1, 8, 3), (3.6, 5, 2), (3.7, 6, 2), (3.8, 7, 2)]

    def test_the_gap_begins_with_the_last_step_before_the_change(self):
        gap, lost = change_of(self.SEEN, 1.2, 3.8)
        self.assertAlmostEqual(gap, 2.5)
        self.assertEqual(lost, 3)

    def test_steps_before_a_change_do_not_count(self):
        gap, lost = change_of(self.SEEN, 3.65, 3.8)
        self.assertAlmostEqual(gap, 0.1)
        self.assertEqual(lost, 0)


class Usage(unittest.TestCase):
    def told(self, *words):
        """Returns exit code and last line of stderr. The build directory does not exist, so nothing can run."""
        command = [processes.ROOT / "bench" / words[0], *words[1:]]
        environment = {**os.environ, "RIVULET_BUILD": "/nowhere"}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        self.assertNotIn("Traceback", ran.stderr)
        return ran.returncode, ran.stderr.splitlines()[-1]

    def test_what_makes_no_run_is_refused(self):
        for words in (["--rounds", "0"], ["--rounds", "-1"], ["--seconds", "nan"], ["--seconds", "-1"], ["nothing"]):
            self.assertEqual(self.told("run", *words)[0], 2, words)
        for words in (["nothing"], ["--workers", "0"]):
            self.assertEqual(self.told("tune", *words)[0], 2, words)
        for words in (["nothing"], ["ours", "--rounds", "0"]):
            self.assertEqual(self.told("elastic", *words)[0], 2, words)
        for words in (["nothing", "/bin/true"], ["bits", "/bin/true", "--pairs", "0"], ["bits", "/bin/true", "--rename", "x"]):
            self.assertEqual(self.told("builds", *words)[0], 2, words)

    def test_a_build_without_the_programs_is_said(self):
        for program, *words in (("run",), ("tune",), ("elastic",), ("builds", "scale", "/bin/true")):
            code, said = self.told(program, *words)
            self.assertEqual((code, said), (1, f"bench/{program}: /nowhere/rivulet does not exist"))

    def test_faults_of_files_and_programs_are_sentences(self):
        for command, said in (
            (["/nowhere/program"], "/nowhere/program: No such file or directory"),
            (["sh", "-c", "echo words >&2; exit 3"], "sh ended with 3. words"),
        ):
            with self.assertRaises(processes.FAULTS) as seen:
                subprocess.run(command, capture_output=True, check=True)
            self.assertEqual(processes.sentence_of(seen.exception), said)


class Choosing(unittest.TestCase):
    """Learning rate of a batch policy, from the output of `rivulet simulate --csv`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rivulet-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tuning = Tuning(self.folder)

    def ran(self, name, rate, good_after):
        """Creates runs with every seed; `good_after` None: never good."""
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

    def test_ours_keeps_its_tick_and_rate_as_the_rival_does(self):
        """Required by the line "the rival with our batches"."""
        flags = dict(zip(*[iter(rival_sides()["rival-tick"])] * 2, strict=True))
        settings = batching.all_batchings()[our_sides()["ours"]].settings
        for key in ("tick", "max_wait"):
            self.assertIn(f"batch.{key}={flags['--tick']}s", settings)
        self.assertEqual(flags["--lr"], batching.learning_rate(our_sides()["ours"]))

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

    def test_a_process_ends_with_its_measurer(self):
        code = "import os, processes, sys\nchild = processes.Child(['sleep', '60'], sys.argv[1])\n"
        code += "while open(f'/proc/{child.pid}/comm').read() != 'sleep\\n': pass\n"  # setpriv has started it
        code += "print(child.pid, flush=True)\nos.kill(os.getpid(), 9)"
        command = ["python3", "-B", "-c", code, self.log]
        parent = subprocess.run(command, cwd=processes.ROOT / "bench", stdout=subprocess.PIPE, check=False)
        self.assertEqual(parent.returncode, -9)
        wait_until(lambda: ended(int(parent.stdout)), 30, "end of its child")

    def test_a_closed_process_is_gone(self):
        child = self.start("import time; time.sleep(60)")
        child.close()
        with self.assertRaises(BenchError):
            child.check_running()


class Measuring(unittest.TestCase):
    """Real devices on a real Kafka, with LibTorch's models."""

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
            kafka.rows = [1, 1, 0]  # as if the partitions had no more rows
            with self.assertRaisesRegex(BenchError, "partition 0 ended"):
                ours.measure(Case("lenet5", 2), 0.3)

    def test_a_slow_link_is_the_limit_and_its_bytes_are_counted(self):
        with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder:
            links = Links(folder, 2, 10)
            self.addCleanup(links.close)
            dense = next(side for side in SIDES if side.name == "ours, dense")
            seen = measure_rate(dense, links, "", 0.05, 1, 3)
            gradient = 4 * 61_706
            self.assertGreater(seen["bytes_per_step"], gradient)
            self.assertLess(seen["bytes_per_step"], 1.2 * gradient)
            self.assertLess(seen["rows_per_s"], 2 * 64 * 10e6 / 8 / gradient)
            self.assertGreater(seen["edge_ratio"], gradient / (64 * 785))

    def test_live_streams_are_played_and_looked_at(self):
        with tempfile.TemporaryDirectory(prefix="rivulet-bench-") as folder:
            kafka = Kafka(folder, "unused", 4, topics_of(0))
            self.addCleanup(kafka.close)
            samples = measure_uneven(kafka, "", topics_of(0), 20, 1)
            self.assertEqual(list(samples), ["ours", "ours-1s", "ours-fixed", "ours-64", "ours-default"])
            self.assertGreater(samples["ours"]["used"], 0.9)
            self.assertGreater(samples["ours-default"]["used"], 0.9)
            self.assertLess(samples["ours-64"]["used"], 0.5)
            self.assertGreater(samples["ours"]["end"], 0)
            self.assertGreater(samples["ours"]["cores"], 0)


def self_check():
    """Runs all tests. Returns the exit code."""
    words = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromNames([__name__, "self_check_results"])
    outcome = unittest.TextTestRunner(stream=words, verbosity=2).run(suite)
    print(words.getvalue(), end="")
    return 0 if outcome.wasSuccessful() and outcome.testsRun > 0 else 1
