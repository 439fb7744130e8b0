"""The ladder on real clusters: how much it leaves unexplained, by layout, way in and situation.

A cluster for each layout of the OSDs' devices, one after the other. Without STRATA_LADDER_FULL=1 only one layout and the
smallest writes are run. What was measured is left in artefacts/ladder.md.
"""
import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from email.utils import formatdate

import pytest
import requests

from system import ARTEFACTS, MGR_STATS_PERIOD, SECTOR, Agent, Cluster, Collector, wait_for

FULL = bool(os.environ.get("STRATA_LADDER_FULL"))
LAYOUTS = ("shared", "none", "own") if FULL else ("shared",)
SIZES = ("4k", "16k", "64k", "1m", "4m") if FULL else ("4k",)
KINDS = {"replicated:3": 3.0, "erasure:2+1": 1.5}
LOAD_SECONDS = 7
long = pytest.mark.skipif(not FULL, reason="takes long: STRATA_LADDER_FULL=1 runs it")

UNATTRIBUTED_MAX = 0.005
STORAGE_TOLERANCE = 0.001
BLOCKS_TOLERANCE = 0.002
GATEWAY_TOLERANCE = 0.01
# Items below this are left out of `explained` (LADDER_ITEM_MIN), and there are at most ten.
EXPLAINED_TOLERANCE = 0.05


def rung(side, layer):
    return next(one for one in side["rungs"] if one["layer"] == layer)


def off(measured, truth):
    return measured / truth - 1


class Site:
    """A cluster of one layout, watched each second; a window lies between two calm moments."""

    def __init__(self, folder, layout):
        self.layout = layout
        kept = os.environ.get("STRATA_NODE_DIR", "") + "-" + layout
        self.cluster = Cluster(kept if os.environ.get("STRATA_LADDER_KEEP") else tempfile.mktemp(prefix="sl-", dir="/var/tmp"))
        self.collector = Collector(folder)
        self.agent = Agent(folder, self.collector.url, self.cluster)
        self.images, self.lines, self.edge = {}, [], None

    def up(self):
        options = ["--rgw", "--cephfs"] if FULL and self.layout == LAYOUTS[0] else []
        if not (os.environ.get("STRATA_LADDER_KEEP") and os.path.exists(self.cluster.conf)):
            self.cluster.node("up", self.cluster.dir, "--osds", "3", "--size", "7G", "--db", self.layout, *options)
        for name, kind in (("three", "replicated:3"), ("parity", "erasure:2+1")):
            self.images[kind] = self.cluster.make_image(name, kind)
        self.collector.start()
        self.collector.plan(diskstats="1s", osd="1s", ceph="2s", host="1s", agent="1s")
        self.agent.start()
        self.collector.wait_until_stored(0.0)
        return self

    def down(self):
        for daemon in (self.agent, self.collector):
            daemon.stop()
        if not os.environ.get("STRATA_LADDER_KEEP"):
            self.cluster.down()

    def devices(self):
        """{kernel name of each device an OSD names: its role}."""
        found = {}
        for number in range(3):
            for link, role in (("block", "block"), ("block.db", "db")):
                path = self.cluster.path(f"osd.{number}", link)
                if os.path.islink(path):
                    found[os.path.basename(os.readlink(path))] = role
        return found

    def disk_bytes(self):
        names, sectors = self.devices(), [0, 0]
        with open("/proc/diskstats", encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[2] in names:
                    sectors[0] += int(fields[5])
                    sectors[1] += int(fields[9])
        return sectors[0] * SECTOR, sectors[1] * SECTOR

    def settle(self):
        """Pool totals are complete two periods after a load; then a moment at which the devices are still."""
        time.sleep(2 * MGR_STATS_PERIOD + 1)
        limit, last, since = time.monotonic() + 15, self.disk_bytes(), time.monotonic()
        while time.monotonic() < limit and time.monotonic() - since < 1.3:
            time.sleep(0.1)
            now = self.disk_bytes()
            if now != last:
                last, since = now, time.monotonic()
        edge = time.time(), self.disk_bytes()
        time.sleep(1)
        return edge

    def measure(self, load, again=False, **parameters):
        """(what the load returned, the ladder of its window, bytes read and written by hand). With @again, the window
        begins where the last one ended: nothing else was done in between."""
        before = self.edge if again and self.edge else self.settle()
        told = load()
        self.edge = after = self.settle()
        self.collector.wait_until_stored(after[0])
        ladder = self.collector.get("/ladder", from_=f"{before[0]:.6f}", to=f"{after[0]:.6f}", cluster=self.cluster.fsid(),
                                    **parameters)
        self.window = before[0], after[0]
        return told, ladder, tuple(b - a for a, b in zip(before[1], after[1]))

    def record(self, what, asked, side, hand):
        """A line of the record; None where there is no witness."""
        words = " + ".join(f"{item['amplification']:.2f} {item['name']}" for item in side["explained"]).replace("+ -", "- ")
        filesystem, storage = (rung(side, layer)["bytes"] for layer in ("filesystem", "storage"))
        assert filesystem is not None and storage is not None, [(one["layer"], one["detail"]) for one in side["rungs"]]
        share = side["unattributed"]["share"]
        self.lines.append(
            f"| {self.layout} | {what} | {asked / 1e6:.1f} | {off(filesystem, asked):+.3%} | {hand / 1e6:.1f} | "
            f"{off(storage, hand):+.3%} | {side['amplification'] or 0:.2f} = {words} | "
            f"{'null' if share is None else format(share, '+.3%')} | {side['state']} |")
        os.makedirs(ARTEFACTS, exist_ok=True)
        with open(os.path.join(ARTEFACTS, f"ladder-{self.layout}.md"), "w", encoding="utf-8") as file:
            file.write("| DB | load | asked MB | filesystem off | diskstats MB | storage off | amplification | unattributed | state |\n"
                       + "|---" * 9 + "|\n" + "\n".join(self.lines) + "\n")


@pytest.fixture(scope="module", params=LAYOUTS)
def site(request, tmp_path_factory):
    made = Site(tmp_path_factory.mktemp(request.param), request.param)
    try:
        yield made.up()
    finally:
        made.down()


def check_closed(side, hand):
    assert rung(side, "storage")["bytes"] == pytest.approx(hand, rel=STORAGE_TOLERANCE)
    assert abs(side["unattributed"]["share"]) <= UNATTRIBUTED_MAX
    explained = sum(item["amplification"] for item in side["explained"])
    assert explained == pytest.approx(side["amplification"], abs=EXPLAINED_TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_a_steady_load_leaves_next_to_nothing_unattributed(site, kind, size):
    how = "write" if size in ("1m", "4m") else "randwrite"
    (asked, _), ladder, hand = site.measure(lambda: site.images[kind].load(how, size, LOAD_SECONDS), again=True)
    side = ladder["write"]
    site.record(f"RBD {kind} {how} {size}", asked, side, hand[1])
    assert rung(side, "filesystem")["bytes"] == pytest.approx(asked, rel=BLOCKS_TOLERANCE)
    assert side["expected"] == pytest.approx(KINDS[kind], rel=0.01)
    check_closed(side, hand[1])


def test_each_device_is_there_once_with_its_role(site):
    ladder = site.collector.get("/ladder", from_=f"{site.window[0]:.6f}", to=f"{site.window[1]:.6f}")
    parts = {part["name"].split("/")[-1]: part["role"] for part in rung(ladder["write"], "storage")["parts"]}
    assert parts == site.devices()


def test_the_ladders_of_all_osds_add_up_to_the_clusters(site):
    window = {"from_": f"{site.window[0]:.6f}", "to": f"{site.window[1]:.6f}"}
    whole = site.collector.get("/ladder", **window)["write"]
    for by in ("osd", "host", "class"):
        sides = [one["write"] for one in site.collector.get("/ladder", by=by, **window)["ladders"]]
        assert len(sides) == (3 if by == "osd" else 1)
        for layer in ("osd", "objectstore", "storage"):
            assert sum(rung(side, layer)["bytes"] for side in sides) == pytest.approx(rung(whole, layer)["bytes"], rel=1e-6)
        # A DB disk of several OSDs is split by its parts.
        assert all(abs(side["unattributed"]["share"]) <= 2 * UNATTRIBUTED_MAX for side in sides)


def rados_bench(cluster, pool):
    output = cluster.run("rados", "bench", "-p", pool, str(LOAD_SECONDS), "write", "-b", "65536", "-t", "8", "--no-cleanup")
    return int(re.search(r"Total writes made:\s+(\d+)", output).group(1)) * 65536


def test_rados_writes_agree_with_the_generator(site):
    asked, ladder, hand = site.measure(lambda: rados_bench(site.cluster, "three"), again=True)
    site.record("RADOS replicated:3 write 64k", asked, ladder["write"], hand[1])
    assert rung(ladder["write"], "filesystem")["bytes"] == pytest.approx(asked, rel=BLOCKS_TOLERANCE)
    check_closed(ladder["write"], hand[1])


class Gateway:
    """Just enough of S3, signed with version 2."""

    def __init__(self, cluster):
        with open(cluster.path("s3.json"), encoding="utf-8") as file:
            self.keys = json.load(file)
        self.session = requests.Session()
        self.session.trust_env = False

    def ask(self, method, path, body=b""):
        date = formatdate(usegmt=True)
        mac = hmac.new(self.keys["secret"].encode(), f"{method}\n\n\n{date}\n{path}".encode(), hashlib.sha1).digest()
        answer = self.session.request(method, self.keys["url"] + path, data=body, timeout=60, headers={
            "Date": date, "Authorization": f"AWS {self.keys['access']}:{base64.b64encode(mac).decode()}"})
        assert answer.status_code == 200, answer.text
        return answer.content

    def put(self, count, size):
        for number in range(count):
            self.ask("PUT", f"/load/{number}", os.urandom(size))
        return count * size

    def get(self, count):
        return sum(len(self.ask("GET", f"/load/{number}")) for number in range(count))


@pytest.fixture(scope="module")
def gateways(site):
    if not os.path.exists(site.cluster.path("s3.json")):
        pytest.skip("one layout with gateways is enough")
    return site


@long
def test_what_the_object_gateway_stores_and_gives_back_agrees(gateways):
    site, s3 = gateways, Gateway(gateways.cluster)
    s3.ask("PUT", "/load")
    s3.put(1, 4 << 20)
    asked, ladder, hand = site.measure(lambda: s3.put(50, 4 << 20))
    site.record("RGW PUT 4m", asked, ladder["write"], hand[1])
    assert rung(ladder["write"], "filesystem")["bytes"] == pytest.approx(asked, rel=GATEWAY_TOLERANCE)
    check_closed(ladder["write"], hand[1])
    asked, ladder, _ = site.measure(lambda: s3.get(50))
    assert rung(ladder["read"], "filesystem")["bytes"] == pytest.approx(asked, rel=GATEWAY_TOLERANCE)


@contextlib.contextmanager
def mounted(cluster):
    folder = cluster.path("mnt")
    os.makedirs(folder, exist_ok=True)
    cluster.run("ceph-fuse", "-n", "client.admin", "-c", cluster.conf, "-k", cluster.path("keyring.client.admin"), folder,
                seconds=60)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True, timeout=60)


@long
def test_what_the_file_system_stores_agrees(gateways):
    site = gateways
    size = 200 << 20
    with mounted(site.cluster) as folder:
        def write_file():
            subprocess.run(["dd", "if=/dev/urandom", f"of={folder}/file-{time.time()}", "bs=1M", f"count={size >> 20}",
                            "conv=fsync", "status=none"], check=True, timeout=120)
            return size
        asked, ladder, hand = site.measure(write_file)
    site.record("CephFS write 1m", asked, ladder["write"], hand[1])
    assert rung(ladder["write"], "filesystem")["bytes"] == pytest.approx(asked, rel=GATEWAY_TOLERANCE)
    check_closed(ladder["write"], hand[1])


# ---- situations: the number stays true, or the state says why not ----


def check_storage(side, hand):
    assert rung(side, "storage")["bytes"] == pytest.approx(hand, rel=STORAGE_TOLERANCE)


@long
def test_what_compression_saves_is_named_and_not_unattributed(site):
    cluster = site.cluster
    image = cluster.make_image("squeezed", "replicated:3")
    cluster.run("ceph", "osd", "pool", "set", "squeezed", "compression_algorithm", "snappy")
    cluster.run("ceph", "osd", "pool", "set", "squeezed", "compression_mode", "aggressive")

    def load():
        command = image.command("write", "1m", LOAD_SECONDS, 16, None)
        command += ["--buffer_compress_percentage=75", "--refill_buffers"]
        # pylint: disable=consider-using-with  # finish() waits for it
        return image.finish(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                             env=cluster.environment), "write")
    (asked, _), ladder, hand = site.measure(load)
    side = ladder["write"]
    site.record("compression snappy, write 1m of which 75 % are the same", asked, side, hand[1])
    check_storage(side, hand[1])
    assert side["state"] == "ok" and side["unattributed"] == {"bytes": None, "share": None}
    saved = next(item for item in side["explained"] if item["name"] == "compression")
    assert saved["amplification"] < -1 and side["amplification"] < 2
    assert "before it does" in rung(side, "objectstore")["note"]
    # Other windows are not spoilt for good: nothing is kept compressed any more.
    cluster.run("ceph", "osd", "pool", "delete", "squeezed", "squeezed", "--yes-i-really-really-mean-it")


@long
def test_writes_after_a_snapshot_close(site):
    image = site.images["replicated:3"]
    site.cluster.run("rbd", "snap", "create", "three/image@before")
    (asked, _), ladder, hand = site.measure(lambda: image.load("randwrite", "16k", LOAD_SECONDS))
    site.record("16k after a snapshot", asked, ladder["write"], hand[1])
    check_closed(ladder["write"], hand[1])
    (asked, _), ladder, hand = site.measure(lambda: (site.cluster.run("rbd", "snap", "rm", "three/image@before"),
                                                     image.load("randwrite", "64k", LOAD_SECONDS))[1])
    site.record("64k while the snapshot is trimmed", asked, ladder["write"], hand[1])
    check_storage(ladder["write"], hand[1])
    assert ladder["write"]["state"] == "contaminated"
    wait_for(lambda: "snaptrim" not in site.cluster.run("ceph", "pg", "stat"), "the snapshot to be trimmed", seconds=60, every=1)


@long
def test_writes_close_during_a_deep_scrub_and_reads_name_it_when_it_is_seen(site):
    def load():
        for osd in range(3):
            site.cluster.run("ceph", "osd", "deep-scrub", str(osd))
        return site.images["replicated:3"].load("randwrite", "64k", LOAD_SECONDS)
    (asked, _), ladder, hand = site.measure(load)
    site.record("64k during deep scrub", asked, ladder["write"], hand[1])
    assert ladder["write"]["state"] == "ok"
    check_closed(ladder["write"], hand[1])
    # Groups are scrubbed in less than the five seconds between two reports of their state, and may not be seen.
    seen = site.collector.get("/series", layer="filesystem", entity="cluster", metric="pgs_scrubbing",
                              from_=f"{site.window[0]:.6f}", to=f"{site.window[1]:.6f}", step="1s")["series"]
    scrubbed = any(value for series in seen for value in series["value"] if value)
    assert ("scrub" in [part["name"] for part in rung(ladder["read"], "osd")["parts"]]) == scrubbed


@long
def test_recovery_beside_a_load_contaminates_and_tells_its_bytes(site):
    image = site.cluster.make_image("two", "replicated:2")

    def load():
        site.cluster.run("ceph", "osd", "out", "2")
        return image.load("randwrite", "64k", LOAD_SECONDS)
    (asked, _), ladder, hand = site.measure(load)
    site.cluster.run("ceph", "osd", "in", "2")
    side = ladder["write"]
    site.record("64k while an OSD is out", asked, side, hand[1])
    check_closed(side, hand[1])
    # A pool's statistics may go back when its groups move: then that is the worse state, and both are told.
    assert side["state"] in ("contaminated", "reset") and "Recovery or backfill moved" in side["detail"]
    recovered = next(part for part in rung(side, "osd")["parts"] if part["name"] == "recovery")
    assert recovered["bytes"] > 1 << 20 and not recovered["counted"]
    wait_for(lambda: "active+clean" in site.cluster.run("ceph", "pg", "stat") and
             "remapped" not in site.cluster.run("ceph", "pg", "stat"), "the cluster to be whole again", seconds=120, every=1)


def end_osd(site, number):
    with open(site.cluster.path("run", f"osd.{number}.pid"), encoding="ascii") as file:
        pid = int(file.read())
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), f"osd.{number} to end")


@long
def test_an_osd_that_restarts_is_a_reset_and_of_the_others_the_numbers_stay(site):
    def load():
        process = site.images["replicated:3"].start("randwrite", "64k", 2 * LOAD_SECONDS)
        time.sleep(4)
        end_osd(site, 0)
        site.cluster.run("ceph-osd", "-c", site.cluster.conf, "-i", "0")
        return site.images["replicated:3"].finish(process, "write")
    (asked, _), ladder, hand = site.measure(load)
    side = ladder["write"]
    site.record("64k while an OSD restarts", asked, side, hand[1])
    check_storage(side, hand[1])
    assert rung(side, "filesystem")["bytes"] == pytest.approx(asked, rel=BLOCKS_TOLERANCE)
    assert rung(side, "objectstore")["state"] in ("reset", "partial")
    assert "restarted" in (rung(side, "objectstore")["detail"] or "")
    sides = {one["key"]: one["write"] for one in site.collector.get(
        "/ladder", by="osd", from_=f"{site.window[0]:.6f}", to=f"{site.window[1]:.6f}")["ladders"]}
    for name in ("osd.1", "osd.2"):
        assert rung(sides[name], "objectstore")["state"] == "ok"
        assert abs(sides[name]["unattributed"]["share"]) <= UNATTRIBUTED_MAX


@long
def test_a_pool_that_is_deleted_keeps_what_was_expected_of_it(site):
    cluster = site.cluster
    cluster.node("pool", cluster.dir, "gone", "replicated:2")
    # The agent tells a new pool within its interval of facts.
    wait_for(lambda: "gone" in [pool["name"] for pool in site.collector.get("/pools")["pools"]], "the pool to be known",
             seconds=90, every=1)
    asked, ladder, hand = site.measure(lambda: rados_bench(cluster, "gone"))
    window = {"from_": f"{site.window[0]:.6f}", "to": f"{site.window[1]:.6f}"}
    assert ladder["write"]["expected"] == pytest.approx(2, rel=0.01)
    cluster.run("ceph", "osd", "pool", "delete", "gone", "gone", "--yes-i-really-really-mean-it")
    wait_for(lambda: "gone" not in [pool["name"] for pool in site.collector.get("/pools")["pools"]],
             "the pool to be forgotten", seconds=90, every=1)
    after = site.collector.get("/ladder", **window)
    site.record("64k to a pool that is deleted since", asked, after["write"], hand[1])
    assert after["write"]["expected"] == pytest.approx(ladder["write"]["expected"])
    check_closed(after["write"], hand[1])


@long
def test_a_device_that_is_detached_is_missing_and_counted_as_such(site):
    """The last: what it takes away is not brought back."""
    names = [name for name, role in site.devices().items() if role == "block"]

    def load():
        end_osd(site, 2)
        subprocess.run(["losetup", "-d", f"/dev/{names[2]}"], check=True)
        return site.images["replicated:3"].load("randwrite", "64k", LOAD_SECONDS)
    _, ladder, _ = site.measure(load)
    side = ladder["write"]
    storage = rung(side, "storage")
    assert storage["state"] in ("partial", "reset") and "did not answer" in storage["detail"]
    assert side["state"] != "ok"
    parts = {part["name"].split("/")[-1]: part["bytes"] for part in storage["parts"]}
    assert parts.get(names[2]) is None and all(parts[name] > 0 for name in names[:2])
