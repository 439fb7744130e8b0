"""What the tests drive: a real cluster, the two programs, fio, and the kernel's own counters.

Every process started here dies with the test run (PR_SET_PDEATHSIG), also when that is killed.
"""
import collections
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import requests

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.environ.get("STRATA_BUILD", os.path.join(TOP, "build-test"))
ARTEFACTS = os.environ.get("STRATA_ARTEFACTS", os.path.join(TOP, "artefacts"))
AGENTD = os.path.join(BUILD, "agentd", "strata-agentd")
COLLECTORD = os.path.join(BUILD, "collectord", "strata-collectord")
STRATA = os.path.join(BUILD, "cli", "strata")
BLOCK_ROWS = os.path.join(BUILD, "tests", "integration", "block-rows")
NODE = os.path.join(TOP, "tests", "ceph", "node")

MGR_STATS_PERIOD = 5.0
SOURCES = {1: "diskstats", 2: "osd", 3: "ceph", 4: "host", 5: "agent", 6: "osd_histogram"}
PR_SET_PDEATHSIG = 1
# A stored row, and a count that it holds: in those of the source "agent", how many ticks it had missed by then.
Row = collections.namedtuple("Row", "time_us interval_us sequence missed")
SECTOR = 512


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for(condition, what, seconds=30.0, every=0.1):
    """The condition's first true value; fails with a sentence after that many seconds."""
    limit = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < limit, f"waited {seconds:.0f} s for {what}"
        time.sleep(every)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def silent(family=socket.AF_INET, address=("127.0.0.1", 0)):
    """A listener that accepts and never answers; gives its address."""
    kept = []

    def accept(listener):
        with contextlib.suppress(OSError):
            while True:
                kept.append(listener.accept()[0])

    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
        thread = threading.Thread(target=accept, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in kept:
        connection.close()


def write(path, text, mode=0o644):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
    return str(path)


def configuration(sections):
    """INI text of {section: {key: value}}; a value of None leaves the key out."""
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {value}" for key, value in keys.items() if value is not None]
    return "\n".join(lines) + "\n"


class Daemon:
    """One of the two programs, with its configuration, its log and its life."""

    def __init__(self, program, folder, name, sections):
        self.program, self.folder, self.name = program, str(folder), name
        os.makedirs(self.folder, exist_ok=True)
        self.log = os.path.join(self.folder, f"{name}.log")
        self.conf = os.path.join(self.folder, f"{name}.conf")
        self.process = None
        self.configure(sections)

    def configure(self, sections):
        self.sections = sections
        write(self.conf, configuration(sections))

    def start(self):
        with open(self.log, "ab") as log:
            # pylint: disable=subprocess-popen-preexec-fn  # no threads here
            self.process = subprocess.Popen([self.program, f"--config={self.conf}"], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        return self

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait(timeout=30)

    def stop(self):
        """Ends it as systemd would; a sanitizer's complaint shows in the exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self, *arguments, seconds=60):
        """The program with its configuration and other arguments, to its end."""
        return subprocess.run([self.program, f"--config={self.conf}", *arguments], capture_output=True, text=True,
                              timeout=seconds, check=False)


def check_store(collector, store):
    """What strata-collectord says of a store, with that collector's configuration otherwise."""
    conf = os.path.join(collector.folder, "check.conf")
    write(conf, configuration({"collector": {**collector.sections["collector"], "store_folder": store}}))
    return collector.run(f"--config={conf}", "--check-store", seconds=120)


class Collector(Daemon):
    def __init__(self, folder, sections=None, scheme="http"):
        self.port = free_port()
        self.store = os.path.join(str(folder), "store")
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.session = requests.Session()
        # A proxy or an authority of the environment is none of our business.
        self.session.trust_env = False
        os.makedirs(self.store, exist_ok=True)
        # Sanitizers on a busy machine: what takes 20 ms may take seconds.
        base = {"collector": {"listen": f"127.0.0.1:{self.port}", "store_folder": self.store, "query_timeout": "30s",
                              "web_folder": os.path.join(BUILD, "web")}}
        for section, keys in (sections or {}).items():
            base.setdefault(section, {}).update(keys)
        super().__init__(COLLECTORD, folder, "collectord", base)

    def start(self):
        super().start()
        wait_for(self.listens, f"the collector to listen; its log says: {self.log_text()[-500:]}")
        return self

    def listens(self):
        assert self.is_alive(), f"the collector ended: {self.log_text()[-2000:]}"
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        return False

    def request(self, method, path, **keywords):
        if not path.startswith("/metrics"):
            path = "/api/v1" + path
        return self.session.request(method, self.url + path, timeout=30, **keywords)

    def get(self, path, **parameters):
        """The JSON of a call that must succeed."""
        answer = self.request("GET", path, params={k.rstrip("_"): v for k, v in parameters.items()})
        assert answer.status_code == 200, f"{answer.url}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def problem(self, method, path, status, **keywords):
        """The detail of the problem document of a call that must fail with this status."""
        answer = self.request(method, path, **keywords)
        assert answer.status_code == status, f"{answer.url}: {answer.status_code} {answer.text[:500]}"
        assert answer.headers["Content-Type"].startswith("application/problem+json")
        document = answer.json()
        assert document["status"] == status and document["title"], document
        return document["detail"]

    def plan(self, **intervals):
        """Sets every host's intervals: ceph="1s"."""
        sources = {name: {"enabled": True, "interval": interval} for name, interval in intervals.items()}
        answer = self.request("PUT", "/plans/*", json={"sources": sources})
        assert answer.status_code == 200, answer.text

    def newest(self, source):
        """Time of the newest stored row of a source over all agents, or 0."""
        times = [entry["last_sample"] or 0 for agent in self.get("/agents")["agents"] for entry in agent["sources"]
                 if entry["source"] == source]
        return max(times, default=0)

    def wait_until_stored(self, moment, sources=("diskstats", "osd", "ceph"), seconds=60):
        for source in sources:
            wait_for(lambda name=source: self.newest(name) > moment, f"rows of {source} after {moment:.1f}",
                     seconds=seconds, every=0.25)

    def rows(self, *count):
        """{(host, source): [Row...]} from the store's files themselves; with another count than `missed` when it is named."""
        # In this order: a row is in the sealed file before it leaves the hot log, and for a while in both.
        hot = self.rows_of([self.database()], "block", *count)
        sealed = self.rows_of(sorted(self.databases("raw-")), "part", *count)
        for key, rows in sealed.items():
            known = {row.time_us for row in hot.get(key, [])}
            hot.setdefault(key, []).extend(row for row in rows if row.time_us not in known)
        return {key: sorted(rows) for key, rows in hot.items()}

    @staticmethod
    def rows_of(paths, table, *count):
        blocks = b""
        for path in paths:
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                blocks += b"".join(row[0] for row in database.execute(f"SELECT data FROM {table}"))
        done = subprocess.run([BLOCK_ROWS, *count], input=blocks, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        found = {}
        for line in done.stdout.decode().splitlines():
            host, _, source, *numbers = line.split()
            sequence, time_us, interval_us, missed = map(int, numbers)
            found.setdefault((host, SOURCES[int(source)]), []).append(Row(time_us, interval_us, sequence, missed))
        return found

    def database(self):
        """The hot log."""
        return os.path.join(self.store, "strata.db")

    def databases(self, prefix):
        return [os.path.join(self.store, name) for name in os.listdir(self.store)
                if name.startswith(prefix) and name.endswith(".db")]


class Agent(Daemon):
    def __init__(self, folder, url, cluster=None, sections=None, name="agentd"):
        state = os.path.join(str(folder), "state")
        os.makedirs(state, exist_ok=True)
        # Sealed each second, so that a test need not wait for its rows.
        base = {"agent": {"state_folder": state, "module_folder": os.path.join(BUILD, "agentd"), "seal_interval": "1s"},
                "collector": {"url": url}}
        if cluster:
            base["osd"] = {"folders": cluster.path("run")}
            base["ceph"] = {"enabled": "yes", "conf": cluster.conf, "name": "client.strata",
                            "keyring": cluster.path("keyring.client.strata")}
        for section, keys in (sections or {}).items():
            base.setdefault(section, {}).update(keys)
        super().__init__(AGENTD, folder, name, base)


class Cluster:
    """A cluster made by tests/ceph/node, with pools and a filled image in each.

    With STRATA_KEEP_NODE in the environment it stays up and is used again: for those who write tests.
    """

    IMAGE_BYTES = 256 << 20

    def __init__(self, directory):
        self.dir = directory
        self.conf = self.path("ceph.conf")
        self.environment = {**os.environ, "CEPH_CONF": self.conf}
        for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
            self.environment.pop(name, None)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def node(self, *arguments):
        subprocess.run([NODE, *arguments], check=True, timeout=240,
                       env={**os.environ, "STRATA_NODE_LOGS": os.path.join(ARTEFACTS, "node")})

    def up(self):
        if os.environ.get("STRATA_KEEP_NODE") and os.path.exists(self.conf):
            return self
        self.node("up", self.dir, "--osds", "3", "--size", "7G")
        return self

    def down(self):
        self.node("down", self.dir)

    def run(self, *command, seconds=120):
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True,
                              timeout=seconds).stdout

    def fsid(self):
        """As the configuration says: asked for at each look at a finding, and the command costs a second of CPU."""
        with open(self.conf, encoding="utf-8") as file:
            return re.search(r"^fsid = (\S+)$", file.read(), re.M).group(1)

    def make_image(self, pool, kind):
        """A pool of this kind with an image in it that is written once, so that later loads overwrite."""
        options = ["--pool", pool]
        if kind.startswith("erasure"):
            options = ["--pool", f"{pool}-meta", "--data-pool", pool]
        if os.environ.get("STRATA_KEEP_NODE") and pool in self.run("ceph", "osd", "pool", "ls").split():
            return Image(self, pool, options[1])
        self.node("pool", self.dir, pool, kind)
        self.run("rbd", "create", "image", "--size", f"{self.IMAGE_BYTES}B", *options)
        image = Image(self, pool, options[1])
        image.load("write", "4m", seconds=None, depth=8)
        return image

    def devices(self):
        """Kernel names of the loop devices behind the OSDs."""
        names = []
        for entry in sorted(os.listdir(self.dir)):
            block = self.path(entry, "block")
            if entry.startswith("osd.") and os.path.islink(block):
                names.append(os.path.basename(os.readlink(block)))
        assert len(names) == 3, names
        return names

    def disk_bytes(self):
        """(read, written) bytes of the OSDs' devices, from the kernel, by hand."""
        devices, sectors = set(self.devices()), [0, 0]
        with open("/proc/diskstats", encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[2] in devices:
                    sectors[0] += int(fields[5])
                    sectors[1] += int(fields[9])
        return sectors[0] * SECTOR, sectors[1] * SECTOR

    def quiet_edge(self, seconds=10.0, calm=1.3):
        """Waits for a moment in the middle of calm devices; the time and the hand reading there.

        The collector interpolates between the rows around an edge, so around it nothing may move.
        """
        limit = time.monotonic() + seconds
        last, since = self.disk_bytes(), time.monotonic()
        while time.monotonic() < limit and time.monotonic() - since < calm:
            time.sleep(0.1)
            now = self.disk_bytes()
            if now != last:
                last, since = now, time.monotonic()
        moment = time.time()
        return moment, self.disk_bytes()


class Image:
    """An RBD image that fio loads; fio's own count is the witness."""

    def __init__(self, cluster, pool, image_pool):
        self.cluster, self.pool, self.image_pool = cluster, pool, image_pool

    def command(self, kind, size, seconds, depth, rate):
        command = ["fio", "--name=load", "--ioengine=rbd", "--clientname=admin", f"--pool={self.image_pool}",
                   "--rbdname=image", f"--rw={kind}", f"--bs={size}", f"--iodepth={depth}", "--output-format=json",
                   f"--size={Cluster.IMAGE_BYTES}", "--randrepeat=0", "--norandommap"]
        if seconds:
            command += ["--time_based", f"--runtime={seconds}"]
        return command + ([f"--rate={rate}"] if rate else [])

    def start(self, kind, size, seconds, depth=16, rate=None):
        # pylint: disable=subprocess-popen-preexec-fn  # no threads here
        return subprocess.Popen(self.command(kind, size, seconds, depth, rate), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.cluster.environment,
                                preexec_fn=die_with_parent)

    @staticmethod
    def finish(process, kind):
        """(bytes, operations) as fio counted them."""
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-1000:]
        report = json.loads(output[output.index("{"):])
        assert len(report["jobs"]) == 1 and report["jobs"][0]["error"] == 0
        counted = report["jobs"][0]["read" if "read" in kind else "write"]
        return counted["io_bytes"], counted["total_ios"]

    def load(self, kind, size, seconds, depth=16):
        return self.finish(self.start(kind, size, seconds, depth), kind)
