"""The collector is killed again and again while agents send: what it acknowledged is there, once.

STRATA_KILLS says how often (20).
"""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from system import BUILD, TOP, Collector, check_store, die_with_parent

KILLS = int(os.environ.get("STRATA_KILLS", "20"))
LOAD = os.path.join(BUILD, "tests", "load", "load-agents")
CHECK = os.path.join(BUILD, "tests", "load", "check-acknowledged")
TRACE = os.path.join(TOP, "tests", "fixtures", "diskstats-1s.txt.gz")
AGENTS = 100


class Load:
    """Agents that keep what is not acknowledged and send it again."""

    def __init__(self, collector, folder, *options):
        self.list = str(folder / "acknowledged")
        # pylint: disable=subprocess-popen-preexec-fn  # no threads here
        with subprocess.Popen(["zcat", TRACE], stdout=subprocess.PIPE) as trace:
            self.process = subprocess.Popen([LOAD, f"--port={collector.port}", f"--list={self.list}", *options],
                                            stdin=trace.stdout, stdout=subprocess.PIPE, text=True,
                                            preexec_fn=die_with_parent)

    def finish(self):
        output, _ = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, output
        return json.loads(output)


def compare(load, store):
    done = subprocess.run([CHECK, load.list, store], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout} {done.stderr}"
    return json.loads(done.stdout)


def expect_whole(collector, store):
    """Beside the collector while it works, or where it was killed."""
    done = check_store(collector, store)
    assert done.returncode == 0, f"{done.stdout} {done.stderr}"
    assert ": 0 damaged, 0 files unreadable" in done.stdout


@pytest.fixture
def collector(tmp_path):
    made = Collector(tmp_path).start()
    yield made
    if made.is_alive():
        made.kill()


def kill_again_and_again(collector, load, folder, longest):
    seed = int(os.environ.get("STRATA_SEED", time.time_ns() % 1_000_000))
    print(f"STRATA_SEED={seed}")
    moments = random.Random(seed)
    acknowledged = 0
    for kill in range(KILLS):
        time.sleep(moments.uniform(0.02, longest))
        expect_whole(collector, collector.store)
        collector.kill()
        # Of a copy, so that the collector itself mends what the kill left behind.
        copy = folder / "copy"
        shutil.copytree(collector.store, copy)
        expect_whole(collector, str(copy))
        counts = compare(load, str(copy))
        shutil.rmtree(copy)
        assert counts["acknowledged"] >= acknowledged, f"kill {kill}"
        acknowledged = counts["acknowledged"]
        collector.start()


def check_the_end(collector, load):
    report = load.finish()
    assert collector.stop() == 0
    counts = compare(load, collector.store)
    print(report, counts)
    assert report["broken"] > 0, "no agent ever lost its connection"
    assert report["unacknowledged"] == 0 and report["refused"] == 0
    # Sent again after a kill between commit and answer: acknowledged, not stored twice.
    assert counts["others"] == 0 and counts["acknowledged"] == counts["stored"] == report["rows"]
    assert "error" not in collector.log_text()
    return report


def test_keeps_every_acknowledged_row_once_however_often_it_is_killed(collector, tmp_path):
    load = Load(collector, tmp_path, f"--agents={AGENTS}", "--interval=1s", "--seconds=3600", "--devices=4", "--facts",
                "--drain=60")
    kill_again_and_again(collector, load, tmp_path, longest=1.0)
    load.process.send_signal(signal.SIGTERM)
    assert check_the_end(collector, load)["rows"] > AGENTS


def test_moves_rows_into_sealed_files_without_losing_or_doubling_however_often_it_is_killed(collector, tmp_path):
    # What makes full parts is moved at once, while more arrives.
    blocks = 30 * max(KILLS, 10)
    load = Load(collector, tmp_path, "--agents=10", "--interval=1s", "--rows=60", f"--history={blocks}", "--devices=2")
    kill_again_and_again(collector, load, tmp_path, longest=0.5)
    assert check_the_end(collector, load)["rows"] == 10 * 60 * blocks
    assert any(name.startswith("raw-") for name in os.listdir(collector.store)), "nothing was moved"
