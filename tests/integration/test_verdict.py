"""Whether the verdict names what was made the bottleneck, on a real cluster. Each situation is induced, and the
verdict must name its layer, rule and entity within a minute of the onset.

STRATA_VERDICT_RUNS=3 runs each that often with the collector's own interval and window; the table of what was
said goes to artefacts/verdicts.md. STRATA_VERDICT_ONLY=scrub,idle runs some of them.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

import pytest

import induce
from system import ARTEFACTS, STRATA, Agent, Cluster, Collector, wait_for

RUNS = int(os.environ.get("STRATA_VERDICT_RUNS", "0"))
ONLY = [name for name in os.environ.get("STRATA_VERDICT_ONLY", "").split(",") if name]
# As shipped when it is for the record, else quicker: a run of all takes six minutes.
JUDGE = {} if RUNS else {"verdict": {"interval": "3s", "window": "12s"}}
ONSET_SECONDS = 60.0
# A bottleneck that is none must stay away for so long under a load.
CALM_SECONDS = 50.0 if RUNS else 20.0
LOAD_SECONDS = ONSET_SECONDS + 5
HOST = socket.gethostname()


@dataclass
class Situation:
    """What is done to the cluster, and what must be said of it."""
    name: str
    layer: str
    rule: str
    entity: str
    load: tuple = None  # kind, size, depth
    pool: str = "three"
    induce: object = None
    layout: str = "none"  # of the OSDs' DB


@dataclass
class Outcome:
    seconds: float = None  # from the onset to the verdict
    said: list = field(default_factory=list)
    sentence: str = ""
    metrics: bool = False  # the verdict stood in /metrics, too


def loop_of(cluster, osd):
    return f"{HOST}/{os.path.basename(os.readlink(cluster.path(f'osd.{osd}', 'block')))}"


@contextlib.contextmanager
def small_caches(cluster):
    induce.set_options(cluster, {"bluestore_cache_autotune": "false", "bluestore_cache_size": 8 << 20})
    try:
        yield
    finally:
        induce.set_options(cluster, {"bluestore_cache_autotune": "true", "bluestore_cache_size": 0})


def shape(cluster, which, both_ways):
    return induce.slow_network(induce.osd_ports(cluster, which), "40mbit", both_ways)


SITUATIONS = [
    Situation("idle", "none", None, None),
    Situation("healthy", "none", None, None, ("randwrite", "64k", 16)),
    Situation("slow disks", "storage", "saturated_disk", "hdd", ("randwrite", "64k", 16),
              induce=lambda cluster: induce.slow_disks(cluster, 200)),
    Situation("one slow disk", "storage", "slow_disk", "disk of osd.1", ("randwrite", "64k", 16),
              induce=lambda cluster: induce.slow_disks(cluster, 60, [1])),
    Situation("slow reads", "storage", "saturated_disk", "hdd", ("randread", "64k", 16),
              induce=lambda cluster: induce.slow_reads(cluster, 150)),
    Situation("little CPU", "osd", "osd_cpu", HOST, ("randwrite", "64k", 16),
              induce=lambda cluster: induce.little_cpu(cluster, 15000)),
    Situation("one OSD with little CPU", "osd", "osd_cpu", "osd.1", ("randwrite", "64k", 16),
              induce=lambda cluster: induce.little_cpu(cluster, 5000, [1])),
    Situation("slow network of clients", "network", "network_clients", "cluster", ("randwrite", "64k", 16),
              induce=lambda cluster: shape(cluster, "public_addrs", False)),
    Situation("slow network of replicas", "network", "network_replicas", "cluster", ("randwrite", "64k", 16),
              induce=lambda cluster: shape(cluster, "cluster_addrs", True)),
    Situation("depth 1", "client", "low_concurrency", "cluster", ("randwrite", "64k", 1)),
    Situation("16k on rotational", "objectstore", "deferred_writes", "cluster", ("randwrite", "16k", 16)),
    Situation("4k on erasure coding", "filesystem", "small_writes_ec", "parity", ("randwrite", "4k", 16), "parity"),
    Situation("small cache", "objectstore", "small_cache", "cluster", ("randread", "64k", 16), induce=small_caches),
    Situation("scrub", "osd", "scrub", "cluster", ("randwrite", "64k", 1),
              induce=lambda cluster: induce.scrubbing(cluster, "three")),
    Situation("recovery", "osd", "recovery", "cluster", ("randwrite", "64k", 1),
              induce=lambda cluster: induce.recovering(cluster, "two")),
    Situation("slow shared DB disk", "storage", "saturated_disk", "shared DB", ("randwrite", "64k", 16), layout="shared",
              induce=lambda cluster: induce.slow_shared_db(cluster, 60)),
]
outcomes_of = {}


def chosen(layout):
    """The situations on clusters of this layout, and whether they are run."""
    return [pytest.param(one, id=one.name.replace(" ", "-"), marks=pytest.mark.skipif(
        bool(ONLY) and one.name.replace(" ", "-") not in ONLY, reason="STRATA_VERDICT_ONLY names others"))
            for one in SITUATIONS if one.layout == layout]


class Bench:
    def __init__(self, cluster, images, collector):
        self.cluster, self.collector = cluster, collector
        self.images = {image.pool: image for image in images.values()}

    def findings(self, **parameters):
        return self.collector.get("/findings", cluster=self.cluster.fsid(), **parameters)

    def verdict(self):
        verdicts = self.findings(open="yes")["verdicts"]
        assert len(verdicts) <= 1, "one cluster has one verdict"
        return verdicts[0] if verdicts else None

    def calm(self):
        """What was said of the situation before has ended."""
        wait_for(lambda: self.verdict() and self.verdict()["layer"] == "none" and
                 not self.findings(open="yes")["findings"], "the findings to end", seconds=150, every=1.0)

    def entity(self, situation):
        if situation.entity == "disk of osd.1":
            return loop_of(self.cluster, 1)
        if situation.entity == "shared DB":
            return f"{HOST}/{induce.shared_db(self.cluster)}"
        return situation.entity

    def watch(self, situation, outcome, onset):
        """Whether the right verdict comes, or none stays away."""
        calm = situation.layer == "none"
        limit = onset + (CALM_SECONDS if calm else ONSET_SECONDS)
        while time.monotonic() < limit:
            verdict = self.verdict()
            said = (verdict["layer"], verdict["rule"], verdict["entity"] and verdict["entity"]["name"])
            if not outcome.said or outcome.said[-1] != said:
                outcome.said.append(said)
                outcome.sentence = verdict["sentence"]
            if said[0] != "none" and not outcome.metrics:
                outcome.metrics = self.in_metrics(said)
            if not calm and said == (situation.layer, situation.rule, self.entity(situation)):
                outcome.seconds = time.monotonic() - onset
                return
            time.sleep(0.5)

    def in_metrics(self, said):
        layer, rule, entity = said
        return f'rule="{rule}",layer="{layer}",entity="{entity}"}} 1' in self.collector.request("GET", "/metrics").text

    def run(self, situation):
        # For the record each begins in peace; else only those that must find peace.
        if RUNS or situation.layer == "none":
            self.calm()
        outcome = Outcome()
        outcomes_of.setdefault(situation.name, []).append(outcome)
        with contextlib.ExitStack() as stack:
            if situation.load:
                kind, size, depth = situation.load
                process = self.images[situation.pool].start(kind, size, LOAD_SECONDS, depth)
                stack.callback(process.communicate)
                stack.callback(process.terminate)
            if situation.induce:
                stack.enter_context(situation.induce(self.cluster))
            self.watch(situation, outcome, time.monotonic())
        self.write()
        return outcome

    def write(self):
        """The table: what was made, what was said, how often and when."""
        os.makedirs(ARTEFACTS, exist_ok=True)
        lines = ["| made the bottleneck | verdict | right | seconds from the onset | said on the way |", "|---|---|---|---|---|"]
        for situation in SITUATIONS:
            outcomes = outcomes_of.get(situation.name, [])
            if not outcomes:
                continue
            calm = situation.layer == "none"
            right = [one for one in outcomes if (one.said == [("none", None, None)] if calm else one.seconds is not None)]
            when = ", ".join(f"{one.seconds:.0f}" for one in outcomes if one.seconds is not None) or "–"
            way = sorted({"/".join(filter(None, said[:2])) for one in outcomes for said in one.said[1:]} -
                         {"/".join(filter(None, (situation.layer, situation.rule))), "none"})
            lines.append(f"| {situation.name} | {situation.layer}{', ' + situation.rule if situation.rule else ''} | "
                         f"{len(right)} of {len(outcomes)} | {when} | {', '.join(way)} |")
        with open(os.path.join(ARTEFACTS, "verdicts.md"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        with open(os.path.join(ARTEFACTS, "verdicts.json"), "w", encoding="utf-8") as file:
            json.dump({name: [vars(one) for one in outcomes] for name, outcomes in outcomes_of.items()}, file, indent=1)


@contextlib.contextmanager
def watched(cluster, images, folder):
    """A collector of its own, since it judges at its own pace."""
    collector = Collector(folder, JUDGE | {"collector": {"log_level": "debug"}}).start()
    agent = Agent(folder, collector.url, cluster)
    try:
        collector.plan(diskstats="1s", osd="1s", ceph="1s" if not RUNS else "5s", host="1s" if not RUNS else "10s")
        agent.start()
        collector.wait_until_stored(0.0)
        yield Bench(cluster, images, collector)
        codes = agent.stop(), collector.stop()
        assert codes == (0, 0), f"agent and collector ended with {codes}"
    finally:
        for daemon in (agent, collector):
            if daemon.is_alive():
                daemon.kill()
        target = os.path.join(ARTEFACTS, os.path.basename(folder))
        os.makedirs(target, exist_ok=True)
        shutil.copy(collector.log, target)


@pytest.fixture(scope="module")
def bench(cluster, images, tmp_path_factory):
    with watched(cluster, images, tmp_path_factory.mktemp("verdict")) as made:
        yield made


@pytest.fixture(scope="module")
def shared_db_bench(tmp_path_factory):
    """A cluster whose OSDs have their DB on partitions of one disk."""
    cluster = Cluster(tempfile.mktemp(prefix="sv-", dir="/var/tmp"))
    cluster.node("up", cluster.dir, "--osds", "3", "--size", "7G", "--db", "shared")
    try:
        images = {"replicated:3": cluster.make_image("three", "replicated:3")}
        with watched(cluster, images, tmp_path_factory.mktemp("verdict-shared")) as made:
            yield made
    finally:
        cluster.down()


@pytest.mark.parametrize("run", range(max(RUNS, 1)))
@pytest.mark.parametrize("situation", chosen("shared"))
def test_the_verdict_names_the_disk_that_osds_share(shared_db_bench, situation, run):
    check(shared_db_bench, situation)


@pytest.mark.parametrize("run", range(max(RUNS, 1)))
@pytest.mark.parametrize("situation", chosen("none"))
def test_the_verdict_names_what_was_made_the_bottleneck(bench, situation, run):
    check(bench, situation)


def check(bench, situation):
    outcome = bench.run(situation)
    if situation.layer == "none":
        assert outcome.said == [("none", None, None)], outcome.sentence
        assert bench.findings(open="yes")["findings"] == []
    else:
        assert outcome.seconds is not None, f"said {outcome.said}: {outcome.sentence}"
        assert outcome.metrics


def test_a_finding_has_a_begin_an_end_numbers_and_curves_that_can_be_drawn(bench):
    bench.calm()
    findings = bench.findings(limit=1000)["findings"]
    if not findings:
        pytest.skip("no situation was run")
    for finding in findings:
        assert not finding["open"] and finding["begin"] <= finding["last"] <= finding["end"] or finding["end"] is None
        assert any(character.isdigit() for character in finding["sentence"])
        assert finding["advice"] and finding["curves"]
        for curve in finding["curves"]:
            answer = bench.collector.request("GET", curve, params={"cluster": finding["cluster"], "from": finding["begin"] - 30,
                                                                   "to": finding["last"]})
            assert answer.status_code == 200, f"{curve}: {answer.text}"
            assert answer.json()["series"], curve


def strata(bench, *arguments):
    return subprocess.run([STRATA, "findings", "--url", bench.collector.url, *arguments], capture_output=True, text=True,
                          check=True, timeout=60).stdout


def test_the_command_line_and_the_metrics_say_what_the_api_says(bench):
    bench.calm()
    said = json.loads(strata(bench, "--json", "--ended"))
    verdict = bench.verdict()
    assert [one["id"] for one in said["findings"]] == [one["id"] for one in bench.findings(limit=1000)["findings"]]
    assert said["verdicts"][0]["layer"] == verdict["layer"] == "none"
    text = strata(bench, "--ended")
    assert "no bottleneck" in text.splitlines()[0] and verdict["sentence"] in text
    for finding in said["findings"]:
        assert finding["sentence"] in text and finding["advice"] in text
    metrics = bench.collector.request("GET", "/metrics").text
    assert f'strata_verdict{{cluster="{bench.cluster.fsid()}",rule="",layer="none",entity=""}} 1' in metrics
    assert "\nstrata_finding{" not in metrics


def test_the_pages_of_findings_are_the_whole_list(bench):
    whole = [finding["id"] for finding in bench.findings(limit=1000)["findings"]]
    found, cursor = [], None
    while True:
        page = bench.findings(limit=2, **({"cursor": cursor} if cursor else {}))
        found += [finding["id"] for finding in page["findings"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == whole == sorted(whole, reverse=True)
