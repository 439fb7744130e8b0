"""How to make each part of a one-node cluster the bottleneck: control groups of version 1, a shaped loopback,
loads. Each is a context that undoes what it did, also after a failure."""
import contextlib
import json
import os
import subprocess
import threading
import time

CGROUPS = "/sys/fs/cgroup"


def osd_pids(cluster, osds=None):
    """Process ids of the OSDs (all, or those with the given numbers)."""
    pids = []
    for name in sorted(os.listdir(cluster.path("run"))):
        if name.startswith("osd.") and name.endswith(".pid"):
            if osds is None or int(name.split(".")[1]) in osds:
                with open(cluster.path("run", name), encoding="ascii") as file:
                    pids.append(int(file.read()))
    assert pids
    return pids


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


@contextlib.contextmanager
def control_group(controller, pids, settings):
    """A group for the processes, which go back to the root group at the end."""
    top = os.path.join(CGROUPS, controller)
    group = os.path.join(top, f"strata-test-{os.getpid()}")
    os.makedirs(group)
    try:
        for key, value in settings.items():
            write(os.path.join(group, key), value)
        for pid in pids:
            write(os.path.join(group, "cgroup.procs"), str(pid))
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                write(os.path.join(top, "cgroup.procs"), str(pid))
        limit = time.monotonic() + 5
        while True:
            try:
                os.rmdir(group)
                break
            except OSError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.1)


def backing_disk(cluster):
    """MAJOR:MINOR of the disk that holds the image files."""
    number = os.stat(cluster.dir).st_dev
    name = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))
    parent = os.path.dirname(os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))
    if os.path.exists(os.path.join(os.path.realpath(f"/sys/class/block/{name}"), "partition")):
        with open(os.path.join(parent, "dev"), encoding="ascii") as file:
            return file.read().strip()
    return f"{os.major(number)}:{os.minor(number)}"


def slow_disks(cluster, write_iops, osds=None):
    """What these OSDs write to their loop devices reaches the disk below at this rate."""
    rule = f"{backing_disk(cluster)} {write_iops}"
    return control_group("blkio", osd_pids(cluster, osds), {"blkio.throttle.write_iops_device": rule})


def slow_reads(cluster, read_iops, osds=None):
    rule = f"{backing_disk(cluster)} {read_iops}"
    return control_group("blkio", osd_pids(cluster, osds), {"blkio.throttle.read_iops_device": rule})


def shared_db(cluster):
    """Kernel name of the disk on whose partitions all OSDs have their DB."""
    part = os.path.basename(os.readlink(cluster.path("osd.0", "block.db")))
    return os.path.basename(os.path.dirname(os.path.realpath(f"/sys/class/block/{part}")))


def slow_shared_db(cluster, write_iops):
    """What OSDs write to that disk reaches the one below it at this rate, for all of them together."""
    with open(f"/sys/class/block/{shared_db(cluster)}/loop/backing_file", encoding="utf-8") as file:
        below = os.stat(file.read().strip()).st_rdev
    rule = f"{os.major(below)}:{os.minor(below)} {write_iops}"
    return control_group("blkio", osd_pids(cluster), {"blkio.throttle.write_iops_device": rule})


def little_cpu(cluster, quota_us, osds=None):
    """Of each 100 ms these OSDs together get so much CPU."""
    return control_group("cpu", osd_pids(cluster, osds), {"cpu.cfs_quota_us": str(quota_us)})


def osd_ports(cluster, which):
    """Ports of all OSDs: "public_addrs" or "cluster_addrs"."""
    dump = json.loads(cluster.run("ceph", "osd", "dump", "-f", "json"))
    return sorted({int(address["addr"].rsplit(":", 1)[1]) for osd in dump["osds"] for address in osd[which]["addrvec"]})


def tc(*arguments, check=True):
    subprocess.run(["tc", *arguments], check=check, capture_output=True)


@contextlib.contextmanager
def slow_network(ports, rate, both_ways=False):
    """What is sent over the loopback to these ports (and from them) goes at this rate; the rest passes by."""
    tc("qdisc", "del", "dev", "lo", "root", check=False)
    tc("qdisc", "add", "dev", "lo", "root", "handle", "77:", "htb", "default", "0")
    try:
        tc("class", "add", "dev", "lo", "parent", "77:", "classid", "77:1", "htb", "rate", rate, "burst", "128kb",
           "cburst", "128kb")
        tc("qdisc", "add", "dev", "lo", "parent", "77:1", "handle", "78:", "bfifo", "limit", "2mb")
        for port in ports:
            for side in ("dport", "sport") if both_ways else ("dport",):
                tc("filter", "add", "dev", "lo", "parent", "77:", "protocol", "ip", "u32", "match", "ip", side, str(port),
                   "0xffff", "flowid", "77:1")
        yield
    finally:
        tc("qdisc", "del", "dev", "lo", "root")


def set_options(cluster, options):
    """Options of all OSDs, at once and without a restart."""
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    cluster.run("ceph", "tell", "osd.*", "injectargs", *arguments)


@contextlib.contextmanager
def scrubbing(cluster, pool):
    """Deep scrubs of all the pool's placement groups, again and again."""
    set_options(cluster, {"osd_max_scrubs": 3, "osd_scrub_sleep": 0, "osd_scrub_load_threshold": 1000})
    groups = [group["pgid"] for group in
              json.loads(cluster.run("ceph", "pg", "ls-by-pool", pool, "-f", "json"))["pg_stats"]]
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            for group in groups:
                if not stop.is_set():
                    cluster.run("ceph", "pg", "deep-scrub", group)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield
    finally:
        stop.set()
        asker.join()
        cluster.run("ceph", "osd", "set", "nodeep-scrub")
        cluster.run("ceph", "osd", "unset", "nodeep-scrub")


@contextlib.contextmanager
def recovering(cluster, pool):
    """A pool of two copies gets objects, and an OSD loses its weight: what it had is copied to others."""
    set_options(cluster, {"osd_recovery_sleep_hdd": 0.02, "osd_max_backfills": 4, "osd_recovery_max_active_hdd": 4})
    bench = ["rados", "bench", "-p", pool, "12", "write", "--no-cleanup", "--run-name", "recovery", "-t", "8"]
    cluster.run(*bench, "--max-objects", "250")
    cluster.run("ceph", "osd", "out", "2")
    try:
        yield
    finally:
        cluster.run("ceph", "osd", "in", "2")
        cluster.run("rados", "-p", pool, "cleanup", "--run-name", "recovery")
        set_options(cluster, {"osd_recovery_sleep_hdd": 0})
        wait_until_clean(cluster)
        set_options(cluster, {"osd_recovery_sleep_hdd": 0.1})


def wait_until_clean(cluster):
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        states = json.loads(cluster.run("ceph", "pg", "stat", "-f", "json"))["pg_summary"]["num_pg_by_state"]
        if all(state["name"].startswith("active+clean") for state in states):
            return
        time.sleep(1)
