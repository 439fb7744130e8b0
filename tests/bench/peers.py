"""The collector beside Prometheus and VictoriaMetrics: the same values into each by its own best protocol.

An hour of 125 hosts with 24 disks each, samples every ten seconds; every disk is the recorded one at a moment of its
own (tests/bench/world.h). All arrives in the order of time, a host's next rows in one request. Whatever the client
does is done before or not measured: only the server's CPU clock counts. The peers get what suits them: bodies are
made beforehand, compressed as they like it, over connections that stay open; neither of them waits for the disk
before it answers, as the collector does.

- collector: a block of six rows a request (a minute), and of 60
- Prometheus: remote write, six and 60 rows of a host's series a request
- VictoriaMetrics: remote write as above, and what it exported by /api/v1/export/native, imported again
"""
import gzip
import json
import os
import struct
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import numpy
import snappy

from measure import TRACE, Client, Process, cpu_seconds, folder_bytes, free_port, percentile

HOSTS, DEVICES, METRICS = 125, 24, 17
INTERVAL, ROWS = 10, 360
SECONDS = INTERVAL * ROWS
VALUES = HOSTS * DEVICES * METRICS * ROWS
BUSY_DISK = "vda"
# Of the metrics in lib/metric-list.h: the kernel's milliseconds wrap, requests in flight is no counter.
WRAPS, GAUGE = (3, 7, 9, 10, 14, 16), 8
NAMES = ("read_ops", "read_merges", "read_sectors", "read_time", "write_ops", "write_merges", "write_sectors", "write_time",
         "in_flight", "busy_time", "weighted_time", "discard_ops", "discard_merges", "discard_sectors", "discard_time",
         "flush_ops", "flush_time")
INGEST_GOAL = 10
QUERY_RUNS, SUM_RUNS = 200, 20
QUERY_GOAL_MS, SUM_GOAL_MS = 1, 25
CONNECTIONS = 4
UPKEEP_SECONDS = 35  # the collector moves what has been quiet for 30 s
ENTITY = (7, 2)  # host, device
FSID = "0b0e8d54-0000-4000-8000-000000000001"


def device_name(device):
    return "sd" + chr(ord("a") + device // 26) + chr(ord("a") + device % 26)


class World:
    """The values of tests/bench/world.c, as an array of a host's rows."""

    def __init__(self, begin):
        with gzip.open(TRACE, "rt") as file:
            rows = [line.split()[3:] for line in file if line.split()[2:3] == [BUSY_DISK]]
        self.trace = numpy.array(rows, dtype=numpy.uint64)[:, :METRICS]
        self.begin = begin

    def values(self, host, first, n):
        """[row][device][metric] of rows first.. as numbers of 64 bits."""
        seconds = self.begin + INTERVAL * numpy.arange(first, first + n)
        phases = (host * DEVICES + numpy.arange(DEVICES)) * 7919
        ticks = seconds[:, None] % 100000000 + phases[None, :]
        length = len(self.trace) - 1
        found = self.trace[ticks % length].copy()
        rounds = (ticks // length).astype(numpy.uint64)
        increase = self.trace[-1] - self.trace[0]
        increase[GAUGE] = 0
        found += rounds[:, :, None] * increase
        for metric in WRAPS:
            found[:, :, metric] &= numpy.uint64(0xffffffff)
        return found


def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


class RemoteWrite:
    """Prometheus' protocol: snappy over protobuf, WriteRequest{TimeSeries{Label{name, value}, Sample{value, ms}}}."""

    HEADERS = ("Content-Type: application/x-protobuf", "Content-Encoding: snappy", "X-Prometheus-Remote-Write-Version: 0.1.0")
    SAMPLE = numpy.dtype([("head", "S3"), ("value", "<f8"), ("tag", "u1"), ("time", "S6")])

    def __init__(self, world):
        self.world = world

    @staticmethod
    def labels(host, device, metric):
        pairs = (("__name__", "disk_" + NAMES[metric]), ("device", device_name(device)), ("host", f"node{host}"))
        return b"".join(field(1, field(1, name.encode()) + field(2, value.encode())) for name, value in pairs)

    def body(self, host, first, n):
        samples = numpy.zeros((DEVICES * METRICS, n), dtype=self.SAMPLE)
        # A sample is 16 bytes: double (9 with its tag) and 6 bytes of milliseconds behind theirs.
        samples["head"], samples["tag"] = b"\x12\x10\x09", 0x10
        samples["value"] = self.world.values(host, first, n).transpose(1, 2, 0).reshape(DEVICES * METRICS, n)
        times = [varint((self.world.begin + INTERVAL * row) * 1000) for row in range(first, first + n)]
        assert all(len(moment) == 6 for moment in times)
        samples["time"] = times
        series = []
        for index in range(DEVICES * METRICS):
            series.append(field(1, self.labels(host, *divmod(index, METRICS)) + samples[index].tobytes()))
        return snappy.compress(b"".join(series))


def post_all(port, path, headers, bodies):
    """Over a few connections; all must be taken."""
    def post(share):
        client = Client(port)
        for body in filter(None, share):
            status, answer = client.request("POST", path, body, headers)
            assert status in (200, 204), (status, answer[:200])
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(post, [bodies[i::CONNECTIONS] for i in range(CONNECTIONS)]))


def timed(port, path, runs):
    """((p50, p99) in ms, the last answer)"""
    client, seconds = Client(port), []
    for _ in range(runs):
        begin = time.perf_counter()
        status, body = client.request("GET", path)
        seconds.append(time.perf_counter() - begin)
        assert status == 200, body[:300]
    return (percentile(seconds, 0.5) * 1000, percentile(seconds, 0.99) * 1000), json.loads(body)


class Prometheus:
    name = "Prometheus"

    def __init__(self, folder):
        self.port, self.data = free_port(), os.path.join(folder, "data")
        conf = os.path.join(folder, "prometheus.yml")
        os.makedirs(folder, exist_ok=True)
        with open(conf, "w", encoding="ascii") as file:
            file.write("global: {scrape_interval: 1h}\n")
        self.process = Process(folder, "prometheus", [
            "prometheus", f"--config.file={conf}", f"--storage.tsdb.path={self.data}", "--web.enable-remote-write-receiver",
            "--web.enable-admin-api", f"--web.listen-address=127.0.0.1:{self.port}"])

    def write(self, bodies):
        # Of one host in order: series may not go back.
        post_all(self.port, "/api/v1/write", RemoteWrite.HEADERS, bodies)

    def stored(self):
        """What its blocks will have: without the log that goes when a block is made."""
        status, answer = Client(self.port).request("POST", "/api/v1/admin/tsdb/snapshot")
        assert status == 200, answer
        return folder_bytes(os.path.join(self.data, "snapshots", json.loads(answer)["data"]["name"]))


class Victoria:
    name = "VictoriaMetrics"

    def __init__(self, folder):
        self.port, self.data = free_port(), os.path.join(folder, "data")
        self.process = Process(folder, "victoria", [
            "victoria-metrics", f"-storageDataPath={self.data}", f"-httpListenAddr=127.0.0.1:{self.port}", "-retentionPeriod=100y",
            "-search.disableCache", "-search.latencyOffset=0s"])

    def write(self, bodies):
        post_all(self.port, "/api/v1/write", RemoteWrite.HEADERS, bodies)

    def flush(self):
        for path in ("/internal/force_flush", "/internal/force_merge"):
            Client(self.port).request("GET", path)
        time.sleep(5)

    def stored(self):
        self.flush()
        return folder_bytes(os.path.join(self.data, "data")) + folder_bytes(os.path.join(self.data, "indexdb"))

    def export(self):
        self.flush()
        client = Client(self.port)
        bodies = []
        for host in range(HOSTS):
            match = urllib.parse.quote(f'{{host="node{host}"}}')
            status, body = client.request("GET", f"/api/v1/export/native?match%5B%5D={match}&start=0")
            assert status == 200 and body
            bodies.append(body)
        return bodies


def cpu_of(process, work):
    """The server's CPU until all is acknowledged, and until it is idle again: what is done later counts, too."""
    begin = cpu_seconds(process.pid)
    work()
    acknowledged = cpu_seconds(process.pid)
    time.sleep(UPKEEP_SECONDS)
    last = cpu_seconds(process.pid)
    while True:
        time.sleep(1.0)
        now = cpu_seconds(process.pid)
        if now - last < 0.02:
            return acknowledged - begin, now - begin
        last = now


def note_ingest(results, name, cpu):
    results.ingest[name], results.ingest_all[name] = VALUES / cpu[0], VALUES / cpu[1]


def promql(world):
    """One device, all of them: mean size of a write, a curve of two counters' ratio, over 360 steps."""
    host, device = ENTITY
    one = f'{{host="node{host}",device="{device_name(device)}"}}'
    window = {"start": world.begin + 30, "end": world.begin + SECONDS - 10, "step": INTERVAL}
    queries = (f"rate(disk_write_sectors{one}[20s]) / rate(disk_write_ops{one}[20s])",
               "sum(rate(disk_write_sectors[20s])) / sum(rate(disk_write_ops[20s]))")
    return ["/api/v1/query_range?" + urllib.parse.urlencode({"query": query, **window}) for query in queries]


def strata_queries(world):
    host, device = ENTITY
    window = f"cluster={FSID}&from={world.begin + 20}&to={world.begin + SECONDS - 10}&step={INTERVAL}s"
    common = f"/api/v1/series?layer=storage&metric=write_size&{window}"
    return [common + f"&entity=node{host}/{device_name(device)}", common]


class Results:
    def __init__(self):
        self.ingest, self.ingest_all, self.stored, self.one, self.all = {}, {}, {}, {}, {}


def ingest_peer(peer_class, folder, bodies, results, label, then=None):
    peer = peer_class(folder)
    with peer.process:
        peer.process.wait_for(peer.port)
        # Of each host in order, hosts at the same time: a connection has its hosts.
        cpu = cpu_of(peer.process, lambda: peer.write(bodies))
        note_ingest(results, f"{peer.name}, {label}", cpu)
        if then:
            then(peer)


def run_remote(peer_class, folder, world, results, then):
    remote = RemoteWrite(world)
    for rows in (6, 60):
        # CONNECTIONS shares by the host: what a connection sends of a host is in order.
        order = [(first, host) for first in range(0, ROWS, rows) for host in range(HOSTS + (-HOSTS) % CONNECTIONS)]
        bodies = [remote.body(host, first, rows) if host < HOSTS else None for first, host in order]
        ingest_peer(peer_class, os.path.join(folder, f"{peer_class.name}-{rows}"), bodies, results,
                    f"remote write of {rows} rows", then if rows == 60 else None)


def query_peer(peer, world, results):
    one, everything = promql(world)
    for found, query, runs in ((results.one, one, QUERY_RUNS), (results.all, everything, SUM_RUNS)):
        found[peer.name], answer = timed(peer.port, query, runs)
        assert len(answer["data"]["result"][0]["values"]) > 350


def run_prometheus(folder, world, results):
    def then(peer):
        query_peer(peer, world, results)
        results.stored[peer.name] = peer.stored() / VALUES
    run_remote(Prometheus, folder, world, results, then)


def run_victoria(folder, world, results):
    exported = []

    def then(peer):
        results.stored[peer.name] = peer.stored() / VALUES
        exported.extend(peer.export())
        query_peer(peer, world, results)
    run_remote(Victoria, folder, world, results, then)

    class Native(Victoria):
        def write(self, bodies):
            post_all(self.port, "/api/v1/import/native", (), bodies)
    ingest_peer(Native, os.path.join(folder, "native"), exported, results, "native import")


def run_strata(arguments, folder, world, results, collector_class, load_class):
    for rows in (6, 60):
        at = os.path.join(folder, f"strata-{rows}")
        os.makedirs(at)
        with collector_class(arguments.build, at) as collector:
            def work(port=collector.port, n=rows):
                load = load_class(arguments.build, port, f"--agents={HOSTS}", f"--devices={DEVICES}", "--sources=diskstats",
                                  f"--interval={INTERVAL}s", f"--rows={n}", f"--history={ROWS // n}", "--facts",
                                  f"--begin={world.begin}")
                report = load.finish()
                assert report["values"] == VALUES and report["unacknowledged"] == 0, report
            note_ingest(results, f"collector, blocks of {rows} rows", cpu_of(collector, work))
            if rows == 60:
                one, everything = strata_queries(world)
                for found, query, runs in ((results.one, one, QUERY_RUNS), (results.all, everything, SUM_RUNS)):
                    found["collector"], answer = timed(collector.port, query, runs)
                    assert sum(value is not None for value in answer["series"][0]["value"]) > 350
        results.stored[f"collector, blocks of {rows} rows"] = folder_bytes(collector.store) / VALUES


def print_ingest(table, what, found):
    print(f"  millions of values a second and core, {what}")
    for name, value in found.items():
        table.line(f"    {name}", value / 1e6)
    ours = max(value for name, value in found.items() if name.startswith("collector"))
    peers = {name: value for name, value in found.items() if not name.startswith("collector")}
    table.line("    collector / the better peer, each at its best", ours / max(peers.values()), "", at_least=INGEST_GOAL)
    small = max(value for name, value in peers.items() if name.endswith(" 6 rows"))
    table.line("    the same in requests of 6 rows", found["collector, blocks of 6 rows"] / small)


def print_queries(table, title, found, goal_ms):
    for name, (p50, p99) in found.items():
        what = f"  {name}: ratio curve of {title}, 360 steps"
        table.line(f"{what}, p50", p50, "ms")
        table.line(f"{what}, p99", p99, "ms", at_most=goal_ms if name == "collector" else None)
    for place, name in enumerate(("p50", "p99")):
        better = min(times[place] for peer, times in found.items() if peer != "collector")
        table.line(f"    collector / the better peer, {name}", found["collector"][place] / better)


def run(arguments, table, folder, collector_class, load_class):
    world = World(int(time.time()) // 86400 * 86400 - 86400 + 36000)
    results = Results()
    run_strata(arguments, folder, world, results, collector_class, load_class)
    run_prometheus(folder, world, results)
    run_victoria(folder, world, results)
    print(f"{HOSTS * DEVICES} disks, {METRICS} metrics, an hour at {INTERVAL} s: {VALUES} values")
    print_ingest(table, "until all is acknowledged", results.ingest)
    print_ingest(table, "until the server is idle: merged, summed, compacted", results.ingest_all)
    for name, value in results.stored.items():
        table.line(f"  {name}: stored bytes a value", value)
    ours = min(value for name, value in results.stored.items() if name.startswith("collector"))
    for peer in (Prometheus.name, Victoria.name):
        table.line(f"    collector / {peer}", ours / results.stored[peer])
    print_queries(table, "one device", results.one, QUERY_GOAL_MS)
    print_queries(table, "3,000 devices", results.all, SUM_GOAL_MS)
