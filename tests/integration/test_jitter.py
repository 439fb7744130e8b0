"""When the ticks come while all that an agent waits for is dead at once: an OSD, the monitors and the collector accept
and never answer. The rows tell, read from the store after the collector has come back, and the agent's own metric.

STRATA_JITTER_SECONDS in the environment is how long it goes on (60), STRATA_JITTER_INTERVAL_MS how often (250). Late is measured against a program that does nothing, at
the same moments on the same machine; lost is not: no tick may be, however busy the machine.
"""
import contextlib
import math
import os
import socket
import subprocess
import sys
import time
import uuid

import pytest

from conftest import keep_logs
from system import BUILD, TOP, Agent, Collector, configuration, die_with_parent, silent, wait_for, write

SECONDS = int(os.environ.get("STRATA_JITTER_SECONDS", "60"))
INTERVAL_US = int(os.environ.get("STRATA_JITTER_INTERVAL_MS", "250")) * 1000
LATE_US = 5_000
SHARE_MAX = 0.001  # of ticks beyond LATE_US, on an idle machine; on a busy one, more than the control's own
AGREE_US = 2_000   # between the look at the clock and the read
DISAGREE_MAX = 0.01
DEAD_OSD, LIVING_OSDS = 7, 3
# In the order in which they come at a tick: the agent counts the lateness of those before it at this tick, of those behind it at the one before.
EARLY_SOURCES, LATE_SOURCES = ("diskstats", "agent"), ("osd", "host")
SOURCES = EARLY_SOURCES + LATE_SOURCES


def living_osds(stack, folder):
    """Sockets that answer, beside the one that does not."""
    # pylint: disable=subprocess-popen-preexec-fn  # no threads that matter
    process = stack.enter_context(subprocess.Popen(
        [sys.executable, os.path.join(TOP, "tests", "bench", "fake_osds.py"), str(folder), str(LIVING_OSDS),
         os.path.join(TOP, "tests", "fixtures", "perf", "pacific-16.2.15.json")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent))
    stack.callback(process.kill)
    assert process.stdout.readline() == "listens\n"


def control_lateness():
    """[microseconds] of a loop that does nothing else, for as long as the test goes on."""
    done = subprocess.run([os.path.join(BUILD, "tests", "integration", "tick-control"), str(INTERVAL_US), str(SECONDS)],
                          capture_output=True, text=True, timeout=SECONDS + 60, check=True)
    return [int(line) for line in done.stdout.splitlines()]


class Ticks:
    """The rows of each source from begin to end, by tick, and the control's lateness."""

    def __init__(self, rows, own_lateness, begin, end, control):
        self.control, self.own_lateness = control, own_lateness
        self.expected = range(int(begin * 1e6) // INTERVAL_US + 1, int(end * 1e6) // INTERVAL_US)
        self.rows = {source: {} for source in SOURCES}
        for (_, source), found in rows.items():
            for row in found:
                if source in SOURCES and row.interval_us == INTERVAL_US:
                    self.rows[source].setdefault(row.time_us // INTERVAL_US, []).append(row)

    def lateness(self, source):
        return [self.rows[source][tick][0].time_us % INTERVAL_US for tick in self.expected if tick in self.rows[source]]

    def lost(self, source):
        return [tick for tick in self.expected if tick not in self.rows[source]]


def share(lateness):
    return sum(late > LATE_US for late in lateness) / len(lateness)


def tell(name, lateness, lost):
    ordered = sorted(lateness)
    print(f"{name:<10} {len(ordered):>6} ticks, lost {lost}, beyond {LATE_US / 1000:.0f} ms {share(ordered):.4%}, median "
          f"{ordered[len(ordered) // 2] / 1000:.3f} ms, 99.9 % {ordered[int(len(ordered) * 0.999)] / 1000:.3f} ms, "
          f"largest {ordered[-1] / 1000:.3f} ms")


@pytest.fixture(scope="module")
def ticks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jitter")
    run = folder / "run"
    run.mkdir()
    collector = Collector(folder).start()
    agent = None
    with contextlib.ExitStack() as stack:
        living_osds(stack, run)
        stack.enter_context(silent(socket.AF_UNIX, str(run / f"ceph-osd.{DEAD_OSD}.asok")))
        _, mon = stack.enter_context(silent())
        conf = write(folder / "ceph.conf", configuration({"global": {
            "fsid": uuid.uuid4(), "mon host": f"v2:127.0.0.1:{mon}/0", "auth client required": "none"}}))
        # Of a captured machine, so that it does not matter how many devices this one has at the moment.
        root = os.path.join(TOP, "tests", "fixtures", "node")
        agent = Agent(folder, collector.url, sections={"agent": {"root": root}, "osd": {"folders": run}, "ceph": {
            "enabled": "yes", "conf": conf, "name": "client.strata", "keyring": ""}})
        try:
            interval = f"{INTERVAL_US // 1000}ms"
            collector.plan(ceph="1s", **{source: interval for source in SOURCES})
            agent.start()
            wait_for(lambda: "plan" in agent.log_text() and collector.newest("osd") > 0, "rows by the plan")
            assert collector.stop() == 0
            with silent(address=("127.0.0.1", collector.port)):
                time.sleep(2)
                begin = time.time()
                control = control_lateness()
                end = time.time()
            collector.start()
            for source in SOURCES:
                wait_for(lambda name=source: collector.newest(name) > end, f"rows of {source} to arrive", seconds=120)
            wait_for(lambda: all(entry["backlog_rows"] < 100 for entry in collector.get("/agents")["agents"]),
                     "the spool to empty", seconds=120)
            own = {row.time_us // INTERVAL_US: row.missed for (_, source), rows in collector.rows("lateness_max").items()
                   if source == "agent" for row in rows}
            found = Ticks(collector.rows(), own, begin, end, control)
            tell("control", control, 0)
            for source in SOURCES:
                tell(source, found.lateness(source), len(found.lost(source)))
            log = agent.log_text()
            assert f"osd.{DEAD_OSD}:" in log and "no monitor answers" in log, f"they were to be dead: {log[-2000:]}"
            assert agent.stop() == 0 and collector.stop() == 0
            yield found
        finally:
            for daemon in (agent, collector):
                if daemon.is_alive():
                    daemon.kill()
            keep_logs("test_jitter", agent, collector)


@pytest.mark.parametrize("source", SOURCES)
def test_no_tick_is_lost_or_taken_twice_while_all_peers_are_dead(ticks, source):
    assert not ticks.lost(source)
    assert all(len(rows) == 1 for rows in ticks.rows[source].values())


@pytest.mark.parametrize("source", SOURCES)
def test_ticks_are_no_later_than_those_of_a_program_that_does_nothing(ticks, source):
    lateness, control = ticks.lateness(source), ticks.control
    # Two samples of one distribution differ: three standard deviations, next to nothing where the control is in time.
    noise = 3 * math.sqrt(2 * share(control) / len(control))
    print(f"{source}: {share(lateness):.4%}, control {share(control):.4%}, noise {noise:.4%}")
    assert share(lateness) <= share(control) + SHARE_MAX + noise


def test_the_agents_own_metric_tells_the_same(ticks):
    """It is the largest lateness of all since its row before: then the others were read, now the disks."""
    late = {source: {tick: rows[0].time_us % INTERVAL_US for tick, rows in ticks.rows[source].items()}
            for source in SOURCES}
    apart = 0
    for tick in ticks.expected[1:]:
        if any(tick not in late[source] for source in EARLY_SOURCES) or any(tick - 1 not in late[source] for source in LATE_SOURCES):
            continue  # another test says so
        own = ticks.own_lateness[tick]
        most = max(*(late[source][tick] for source in EARLY_SOURCES), *(late[source][tick - 1] for source in LATE_SOURCES))
        apart += not late["diskstats"][tick] - AGREE_US <= own <= most + AGREE_US
    print(f"the agent's lateness disagrees with its rows at {apart} of {len(ticks.expected)} ticks")
    assert apart <= DISAGREE_MAX * len(ticks.expected)
    own = ticks.rows["agent"]
    assert own[ticks.expected[-1]][0].missed == own[ticks.expected[0]][0].missed
