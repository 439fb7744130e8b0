"""The OSDs' histograms: a plan switches them on, and what the collector then gives is what the OSDs say themselves."""
import json
import time

import pytest

from conftest import keep_logs
from system import Agent, Collector, wait_for

OSDS = 3
LATENCIES = 20
SIZE_OF_16K = 7  # 16 KiB up to 32 KiB


@pytest.fixture(scope="module")
def collector(cluster, tmp_path_factory):
    """With an agent of its own, since the shared one's plan has no histograms."""
    folder = tmp_path_factory.mktemp("histogram")
    made = Collector(folder).start()
    agent = Agent(folder, made.url, cluster, name="histogram")
    try:
        agent.start()
        made.wait_until_stored(0.0, ("osd", "ceph"))
        yield made
        assert (agent.stop(), made.stop()) == (0, 0)
    finally:
        for daemon in (agent, made):
            if daemon.is_alive():
                daemon.kill()
        keep_logs("test_histogram", agent, made)


def writes_of_16k(cluster):
    """By the OSDs' own word, over all latencies."""
    total = 0
    for number in range(OSDS):
        socket = cluster.path("run", f"ceph-osd.{number}.asok")
        dump = json.loads(cluster.run("ceph", "daemon", socket, "perf", "histogram", "dump"))
        total += sum(row[SIZE_OF_16K] for row in dump["osd"]["op_w_latency_in_bytes_histogram"]["values"])
    return total


def writes_by_the_collector(collector, begin, end):
    total = 0.0
    for latency in range(1, LATENCIES + 1):
        answer = collector.get("/series", layer="osd", metric=f"op_w_in_size_{SIZE_OF_16K}_latency_{latency}",
                               **{"from": begin, "to": end, "step": f"{end - begin}s"})
        (series,) = answer["series"]
        assert series["unit"] == "operations/s"
        total += sum(value or 0.0 for value in series["value"]) * (end - begin)
    return total


def test_a_plan_switches_the_histograms_on_and_they_are_what_the_osds_say(collector, cluster, images):
    assert collector.newest("osd_histogram") == 0, "nobody asked for them yet"
    # The first operation of a cell is not part of a rate: the usual ones are hit before.
    images["replicated:3"].load("randwrite", "16k", 3)
    collector.plan(osd_histogram="1s")
    wait_for(lambda: collector.newest("osd_histogram"), "histograms", seconds=60)
    time.sleep(2)
    begin, before = int(time.time()), writes_of_16k(cluster)
    time.sleep(2)
    images["replicated:3"].load("randwrite", "16k", 3)
    time.sleep(2)
    after, end = writes_of_16k(cluster), int(time.time()) + 1
    assert after - before > 100, "there was no load"
    collector.wait_until_stored(end + 2, ("osd_histogram",))
    counted = writes_by_the_collector(collector, begin, end)
    assert (after - before) * 0.98 - OSDS * LATENCIES <= counted <= (after - before) * 1.001, (counted, after - before)
