"""Both programs are killed in the middle of a load; afterwards the store must be as if they were not.

One run serves all tests of this file: the agent is ended with SIGKILL and started again, the
collector is ended with SIGKILL, stays away for a minute, comes back, is killed some more times at
random moments (the seed is printed), and is once ended politely.
"""
import collections
import random
import signal
import time

import pytest

from system import MGR_STATS_PERIOD, wait_for

COLLECTOR_AWAY_SECONDS = 60
AGENT_AWAY_SECONDS = 3
LOAD_SECONDS = 85
SECOND_US = 1_000_000
STARTED = "info: host " # the agent's first line

Outage = collections.namedtuple("Outage", "rows begin end agent_down fio_bytes ladder hand_bytes agents")


def kill_often(collector, times, seed):
    chance = random.Random(seed)
    for _ in range(times):
        time.sleep(chance.uniform(0.1, 1.5))
        collector.kill(signal.SIGKILL)
        collector.start()


@pytest.fixture(scope="module")
def outage(cluster, images, system):
    collector, agent = system
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    time.sleep(2 * MGR_STATS_PERIOD + 1)
    begin, disk_begin = cluster.quiet_edge()
    time.sleep(1.5)
    fio = images["replicated:3"].start("randwrite", "64k", LOAD_SECONDS, rate="24m")
    time.sleep(5)

    down_from = time.time()
    agent.kill(signal.SIGKILL)
    time.sleep(AGENT_AWAY_SECONDS)
    lives = agent.log_text().count(STARTED)
    agent.start()
    wait_for(lambda: agent.log_text().count(STARTED) > lives, "the agent to be back")
    # It samples at the next whole second.
    down_to = time.time() + 1.0
    time.sleep(4)

    collector.kill(signal.SIGKILL)
    time.sleep(COLLECTOR_AWAY_SECONDS)
    collector.start()
    kill_often(collector, 6, seed)
    collector.kill(signal.SIGTERM)
    time.sleep(2)
    collector.start()

    fio_bytes, _ = images["replicated:3"].finish(fio, "randwrite")
    time.sleep(2 * MGR_STATS_PERIOD + 1)
    end, disk_end = cluster.quiet_edge()
    collector.wait_until_stored(end, ("diskstats", "osd", "ceph", "host"), seconds=90)
    # The newest come first: what was sampled in the outage may still wait. Live rows are a backlog of one a source.
    wait_for(lambda: collector.get("/agents")["agents"][0]["backlog_rows"] <= 10, "the end of the backlog", seconds=90)
    time.sleep(2)
    # Nothing comes in any more: what is counted stays.
    assert agent.stop() == 0
    counted, rows = collector.get("/agents")["agents"], collector.rows()
    agent.start()
    ladder = collector.get("/ladder", from_=f"{begin:.6f}", to=f"{end:.6f}", cluster=cluster.fsid())
    return Outage(rows, begin, end, (down_from, down_to), fio_bytes, ladder, disk_end[1] - disk_begin[1],
                  counted)


def ticks(rows, begin, end):
    """Ticks between the moments, each as often as a row stands for it. Rows are read a little after their tick."""
    found, interval_us = [row.time_us // row.interval_us for row in rows], rows[0].interval_us
    return [tick for tick in found if begin * SECOND_US / interval_us + 1 < tick < end * SECOND_US / interval_us - 1]


def ticks_missed(rows):
    """What the agent itself says it came too late for, over all its lives."""
    return sum(max(0, after.missed - before.missed) for before, after in zip(rows, rows[1:]))


@pytest.mark.parametrize("source", ["diskstats", "osd", "ceph", "host"])
def test_no_row_is_missing_beyond_the_agents_own_down_time(outage, source):
    (rows,) = [rows for (_, name), rows in outage.rows.items() if name == source]
    seen = ticks(rows, outage.begin, outage.end)
    interval = rows[0].interval_us / SECOND_US
    missing = [tick * interval for tick in sorted(set(range(min(seen), max(seen) + 1)) - set(seen))]
    down_from, down_to = outage.agent_down
    # The source that asks the monitors starts with a connection.
    grace = 3.0 if source == "ceph" else 0.0
    beyond = [moment for moment in missing if not down_from - interval <= moment <= down_to + grace]
    # On a machine that starves the agent it misses ticks, and says so.
    (own,) = [rows for (_, name), rows in outage.rows.items() if name == "agent"]
    assert len(beyond) <= ticks_missed(own), f"{beyond} are missing; the agent was away from {down_from:.1f} to {down_to:.1f}"
    assert missing, "the agent was away for some ticks: this test would not see a missing row"


@pytest.mark.parametrize("source", ["diskstats", "osd", "ceph", "host"])
def test_no_row_is_stored_twice(outage, source):
    (rows,) = [rows for (_, name), rows in outage.rows.items() if name == source]
    times = collections.Counter(row.time_us for row in rows)
    assert [moment for moment, count in times.items() if count > 1] == []
    assert max(collections.Counter(ticks(rows, outage.begin, outage.end)).values()) == 1


def test_the_collector_counts_the_rows_that_the_store_holds(outage):
    (agent,) = outage.agents
    assert agent["rows"] == sum(len(rows) for rows in outage.rows.values())
    assert agent["dropped_rows"] == 0


def rung(ladder, layer):
    return next(one for one in ladder["write"]["rungs"] if one["layer"] == layer)


def test_totals_still_agree_with_fio(outage):
    assert rung(outage.ladder, "filesystem")["bytes"] == pytest.approx(outage.fio_bytes, rel=0.002)


def test_totals_still_equal_a_hand_difference_of_diskstats(outage):
    assert rung(outage.ladder, "storage")["bytes"] == pytest.approx(outage.hand_bytes, rel=0.001)
