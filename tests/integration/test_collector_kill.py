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

from system import BUILD, TOP, Collector, die_with_parent

KILLS = int(os.environ.get("STRATA_KILLS", "20"))
LOAD = os.path.join(BUILD, "tests", "load", "load-agents")
CHECK = os.path.join(BUILD, "tests", "load", "check-acknowledged")
TRACE = os.path.join(TOP, "tests", "fixtures", "diskstats-1s.txt.gz")
AGENTS = 100


class Load:
    """Agents that send a row of each source each second, and keep what is not acknowledged."""

    def __init__(self, collector, folder):
        self.list = str(folder / "acknowledged")
        # pylint: disable=subprocess-popen-preexec-fn  # no threads here
        with subprocess.Popen(["zcat", TRACE], stdout=subprocess.PIPE) as trace:
            self.process = subprocess.Popen(
                [LOAD, f"--port={collector.port}", f"--agents={AGENTS}", "--interval=1s", "--seconds=3600",
                 "--devices=4", "--facts", "--drain=60", f"--list={self.list}"],
                stdin=trace.stdout, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)

    def finish(self):
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, output
        return json.loads(output)


def compare(load, store):
    done = subprocess.run([CHECK, load.list, store], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout} {done.stderr}"
    return json.loads(done.stdout)


@pytest.fixture
def collector(tmp_path):
    made = Collector(tmp_path).start()
    yield made
    if made.is_alive():
        made.kill()


def test_keeps_every_acknowledged_row_once_however_often_it_is_killed(collector, tmp_path):
    seed = int(os.environ.get("STRATA_SEED", time.time_ns() % 1_000_000))
    print(f"STRATA_SEED={seed}")
    moments = random.Random(seed)
    load = Load(collector, tmp_path)
    acknowledged = 0
    for kill in range(KILLS):
        time.sleep(moments.uniform(0.02, 1.0))
        collector.kill()
        # Of a copy, so that the collector itself mends what the kill left behind.
        copy = tmp_path / "copy"
        shutil.copytree(collector.store, copy)
        counts = compare(load, str(copy))
        shutil.rmtree(copy)
        assert counts["acknowledged"] >= acknowledged, f"kill {kill}"
        acknowledged = counts["acknowledged"]
        collector.start()
    report = load.finish()
    assert collector.stop() == 0
    counts = compare(load, collector.store)
    print(report, counts)
    assert report["broken"] > 0, "no agent ever lost its connection"
    assert report["unacknowledged"] == 0 and report["refused"] == 0
    # Sent again after a kill between commit and answer: acknowledged, not stored twice.
    assert counts["others"] == 0 and counts["acknowledged"] == counts["stored"] == report["rows"] > AGENTS
    assert "error" not in collector.log_text()
