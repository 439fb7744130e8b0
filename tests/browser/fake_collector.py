#!/usr/bin/python3
"""A collector of plausible numbers for the dashboard's tests, after docs/api.md.

It serves the built page and answers from a small model in which every number is a function of
time alone, so that two runs show the same curves. A scenario names a state of the world, also such
as a real collector cannot be put into on demand: gaps, a refused token, names full of markup.

    fake_collector.py --scenario deferred --port 8000 --web build/web
"""

import argparse
import json
import math
import re
import time
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FSID = "6ac2f3c4-8a1d-4c5e-9f1b-0d6f2f6f7a11"
TOKEN = "reader-token"
CSP = "default-src 'self'"
MGR_PERIOD = 5.0
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css",
         ".svg": "image/svg+xml", ".txt": "text/plain"}
HOSTILE = '<img src=x onerror="window.hacked=1">'
UNKNOWN = "The redundancy of pool images is not known."
SCENARIOS = ("healthy", "deferred", "gaps", "idle", "empty", "none", "no_filesystem", "silent",
             "token", "gone", "busy", "hostile", "large", "new_pool",
             "slow_disk", "slow_disk_token")


class ApiProblem(Exception):
    def __init__(self, status, title, detail):
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail


def seconds_of(text, now):
    """A time or duration parameter as docs/api.md, "Windows"."""
    if text == "now":
        return now
    relative = re.fullmatch(r"(?:now)?-(\d+)(ms|s|m|h|d)", text)
    if relative:
        return now - duration_of(relative[1] + relative[2])
    try:
        return float(text)
    except ValueError:
        raise ApiProblem(400, "Bad Request", f"'{text}' is no time") from None


def duration_of(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    if not match or float(match[1]) == 0:
        raise ApiProblem(400, "Bad Request", f"step must be greater than zero, but is '{text}'")
    return float(match[1]) * {"ms": .001, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


class Model:
    """What the cluster does at a time. Rates per second; a window is taken at its middle."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.deferred = scenario in ("deferred", "gaps", "hostile")
        self.request = 16384 if self.deferred else 65536
        self.hosts = ["node1", "node2", "node3"]
        if scenario == "hostile":
            self.hosts[0] = HOSTILE
        per_host = 20 if scenario == "large" else 1
        self.disks = [(host, f"sd{chr(98 + i // 26)}{chr(97 + i % 26)}" if per_host > 1 else "sdb", osd)
                      for osd, (host, i) in enumerate((h, i) for h in self.hosts for i in range(per_host))]
        self.pools = [
            {"id": 2, "name": HOSTILE if scenario == "hostile" else "rbd", "type": "replicated", "size": 3,
             "k": 0, "m": 0, "expected": 3.0, "part": .82},
            {"id": 3, "name": "images", "type": "replicated", "size": 3, "k": 0, "m": 0, "expected": 3.0, "part": .18},
        ]

    def load(self, at):
        wave = 1 + .28 * math.sin(at / 143) + .11 * math.sin(at / 17.3) + .05 * math.sin(at / 5.1)
        burst = 1.5 if math.sin(at / 611) > .82 else 1
        return (21.2e6 if self.deferred else 84e6) * wave * burst

    def state(self, at):
        if self.scenario in ("empty", "silent"):
            return "gap"
        if self.scenario == "idle":
            return "idle"
        if self.scenario == "gaps":
            slot = int(at // 60) % 15
            return {2: "gap", 3: "gap", 6: "partial", 8: "contaminated", 9: "contaminated", 11: "idle",
                    13: "reset"}.get(slot, "ok")
        return "ok"

    def detail(self, state):
        return {
            "partial": "1 of 3 hosts has no samples in this window: node3",
            "contaminated": "recovery moved 212 MB in this window",
            "reset": "osd.1 restarted in this window",
        }.get(state)

    def layers(self, at, direction):
        """{layer: (bytes/s, ops/s)} and the parts of the objectstore."""
        state = self.state(at)
        quiet = {"idle": .0004, "partial": .8}.get(state, 1)
        fs = self.load(at) * quiet * (.35 if direction == "read" else 1)
        ops = fs / self.request
        if direction == "read":
            parts = {"cache_hit": fs * .31, "cache_miss": fs * .69, "bluefs": fs * .012}
            device = parts["cache_miss"] + parts["bluefs"]
            return {"filesystem": (fs, ops), "osd": (fs, ops), "objectstore": (device, ops * .7),
                    "storage": (device * 1.0004, ops * .72)}, parts
        osd = fs * 3 + ops * 2 * 700
        jitter = 1 + .04 * math.sin(at / 31)
        recovery = 14e6 if state == "contaminated" else 0
        if self.deferred:
            parts = {"data": 3 * fs + recovery, "deferred": 3 * fs, "wal": 3.18 * fs * jitter, "sst": .04 * fs,
                     "log": .15 * fs, "padding": .02 * fs}
        else:
            parts = {"data": 3 * fs, "deferred": 0.0, "wal": .055 * fs * jitter, "sst": .004 * fs,
                     "log": .018 * fs, "padding": 0.0}
        store = sum(value for name, value in parts.items() if name != "deferred")
        return {"filesystem": (fs, ops), "osd": (osd + recovery, ops * 3),
                "objectstore": (store, ops * (6.4 if self.deferred else 3.1)),
                "storage": (store * 1.0007, ops * (7.1 if self.deferred else 3.6))}, parts

    def visible(self, layer):
        if self.scenario == "none":
            return layer == "storage"
        return not (layer == "filesystem" and self.scenario == "no_filesystem")


class Answers:
    def __init__(self, scenario, now=time.time):
        self.model, self.now = Model(scenario), now

    @property
    def scenario(self):
        return self.model.scenario

    @property
    def known(self):
        return self.scenario != "new_pool"

    @property
    def fsid(self):
        return "none" if self.scenario == "none" else FSID

    def span(self, query):
        now = self.now()
        start, end = seconds_of(query.get("from", "-15m"), now), seconds_of(query.get("to", "now"), now)
        if start >= end:
            raise ApiProblem(400, "Bad Request", "from must be before to")
        if start > now:
            raise ApiProblem(400, "Bad Request", f"from lies in the future: {query['from']}")
        if query.get("cluster", self.fsid) != self.fsid:
            raise ApiProblem(404, "Not Found", f"no cluster {query['cluster']}")
        return start, end

    def windows(self, query):
        start, end = self.span(query)
        step = duration_of(query.get("step", "10s"))
        return start, end, step, [start + i * step for i in range(int((end - start) / step + 1e-9))]

    def state_at(self, begin, step):
        if begin + step > self.now() - 4:
            return "gap"
        return self.model.state(begin + step / 2)

    # Each call takes the query and gives the answer's members.

    def clusters(self, _query):
        model = self.model
        if self.scenario == "empty":
            return {"clusters": [], "cursor": None}
        if self.scenario == "none":
            return {"clusters": [{"fsid": "none", "name": "(no cluster)", "health": None, "release": None, "hosts": 3,
                                  "osds": 0, "osds_up": 0, "pools": 0, "mgr_stats_period": None, "last_sample": None, "age": None}],
                    "cursor": None}
        age = {"silent": 7260.0, "no_filesystem": None}.get(self.scenario, 2.4)
        return {"clusters": [{
            "fsid": FSID, "name": HOSTILE if self.scenario == "hostile" else "ceph", "health": "HEALTH_WARN" if self.scenario == "gaps" else "HEALTH_OK",
            "release": "16.2.15", "hosts": len(model.hosts), "osds": len(model.disks), "osds_up": len(model.disks), "pools": 2,
            "mgr_stats_period": MGR_PERIOD, "last_sample": age and self.now() - age, "age": age}], "cursor": None}

    def findings(self, _query):
        if self.scenario != "slow_disk":
            return {"verdicts": [], "findings": [], "cursor": None}
        common = {"cluster": self.fsid, "advice": "Look at its SMART data.", "share": .97}
        curves = ["/series?layer=storage&metric=queue,write_await&entity=node2/sdb"]
        slow = {**common, "layer": "storage", "rule": "slow_disk", "curves": curves,
                "sentence": "node2/sdb answers after 382.9 ms where the median of its 2 peers is 0.86 ms."}
        other = {**common, "id": 4, "layer": "objectstore", "rule": "deferred_writes", "kind": "cluster", "entity": "cluster", "open": True,
                 "bottleneck": False, "begin": self.now() - 300, "last": self.now() - 5, "end": None, "curves": [],
                 "sentence": f"BlueStore defers writes: 3.0 of 6.8 bytes. {HOSTILE}"}
        return {"verdicts": [{**slow, "time": self.now() - 5, "from": self.now() - 25, "to": self.now() - 5, "since": self.now() - 90,
                              "entity": {"kind": "device", "name": "node2/sdb"}, "doubts": ["osd.7 started again in this window."]}],
                "findings": [other, {**slow, "id": 3, "kind": "device", "entity": "node2/sdb", "open": True, "bottleneck": True,
                                     "begin": self.now() - 90, "last": self.now() - 5, "end": None}], "cursor": None}

    def agents(self, _query):
        rows = []
        for i, host in enumerate([] if self.scenario == "empty" else self.model.hosts):
            late = self.scenario == "silent" or (self.scenario == "gaps" and i == 2)
            age = 7260.0 if late else 1.2 + i * .7
            sources = ["diskstats", "osd", "host", "agent"] + (["ceph"] if i == 0 else [])
            rows.append({
                "host_id": f"00000000-0000-4000-8000-00000000000{i}", "hostname": host, "kernel": "6.1.0", "version": "0.1.0",
                "first_seen": self.now() - 90000, "last_seen": self.now() - age, "age": age,
                "clock_offset": [.0021, -.0004, 1.72 if self.scenario == "gaps" else .0107][i], "plan_revision": 3,
                "backlog_rows": 4200 if late else 0, "blocks": 40123, "rows": 1203311, "dropped_rows": 120 if late else 0,
                "clusters": [self.fsid],
                "sources": [{"source": s, "last_sample": self.now() - age, "interval": {"ceph": 5.0, "host": 10.0, "agent": 10.0}.get(s, 1.0)}
                            for s in sources]})
        return {"agents": rows, "cursor": None}

    def devices(self, query):
        rows = []
        for host, name, osd in self.model.disks:
            common = {"host_id": "h", "hostname": host, "alias": "", "cluster": self.fsid, "rotational": True, "parents": [],
                      "last_sample": self.now() - 1}
            backs = [] if self.scenario == "none" else [osd]
            rows.append({**common, "name": name, "identity": f"wwn:0x5000c500a1b2c3{osd:02x}", "kind": "disk", "model": "ST4000NM0035",
                         "size": 4000787030016, "osds": backs, "role": "block" if backs else None, "leaf": True})
            rows.append({**common, "name": "sda" if name != "sda" else "sdz", "identity": f"wwn:0x5000aaaa{osd:04x}", "kind": "disk",
                         "model": "SSDSC2KB48", "size": 480103981056, "rotational": False, "osds": [], "role": None, "leaf": self.scenario == "none"})
        first, limit = int(query.get("cursor", 0)), int(query.get("limit", 100))
        return {"devices": rows[first:first + limit], "cursor": str(first + limit) if first + limit < len(rows) else None}

    def pools(self, _query):
        rows = [{"cluster": FSID, **{k: v for k, v in pool.items() if k != "part"}, "last_sample": self.now() - 2} for pool in self.model.pools]
        return {"pools": [] if self.scenario == "none" else rows, "cursor": None}

    def series(self, query):
        start, end, step, times = self.windows(query)
        layer, by = query["layer"], query.get("by", "cluster")
        keys = [("cluster", None, 1.0)]
        if by == "device":
            n = len(self.model.disks)
            keys = [(name, host, (1 + .2 * math.sin(osd)) / n) for host, name, osd in self.model.disks]
        elif by == "pool":
            keys = [(pool["name"], None, pool["part"]) for pool in self.model.pools]
        series = []
        for key, host, part in keys:
            for metric in query["metric"].split(","):
                states = [self.state_at(t, step) for t in times]
                values = [None if state == "gap" or not self.model.visible(layer) else self.value(layer, metric, t + step / 2, part)
                          for t, state in zip(times, states)]
                series.append({"key": key, "host": host, "metric": metric, "unit": "bytes/s", "t": times, "value": values, "state": states})
        return {"cluster": self.fsid, "layer": layer, "from": start, "to": end, "step": step, "series": series}

    def value(self, layer, metric, at, part):
        direction, _, what = metric.partition("_")
        if metric == "utilisation":
            return min(1.0, .55 * part * 3 * self.model.load(at) / self.model.load(0))
        if metric == "queue":
            return 2.6 * part * 3
        if what == "await":
            return (.0123 if direction == "write" else .0041) * (.8 + part)
        rates, _parts = self.model.layers(at, direction)
        return rates[layer][0 if what == "bytes" else 1] * part

    def ratio(self, query):
        if self.scenario == "none":
            raise ApiProblem(400, "Bad Request", "there is no filesystem layer without a cluster")
        start, end, step, times = self.windows(query)
        index = 1 if query.get("measure") == "ops" else 0
        out = {k: [] for k in ("upper", "lower", "ratio", "amplification", "expected", "excess", "state", "detail")}
        expected = None if index else (3.0 if query["direction"] == "write" else 1.0)
        for begin in times:
            state = self.state_at(begin, step)
            rates, _parts = self.model.layers(begin + step / 2, query["direction"])
            seen = state != "gap"
            upper = rates["filesystem"][index] if seen and self.model.visible("filesystem") else None
            lower = rates["storage"][index] if seen else None
            number = upper is not None and state != "idle"
            if upper is None and seen:
                state = "gap"
            if state == "ok" and step < 2 * MGR_PERIOD:
                state = "short"
            amplification = lower / upper if number else None
            out["upper"].append(upper)
            out["lower"].append(lower)
            out["ratio"].append(1 / amplification if number else None)
            out["amplification"].append(amplification)
            out["expected"].append(expected if number and self.known else None)
            out["excess"].append(amplification / expected if number and expected and self.known else None)
            out["state"].append(state)
            out["detail"].append(self.model.detail(state) if self.known else UNKNOWN)
        return {"cluster": self.fsid, "upper": "filesystem", "lower": "storage", "direction": query["direction"],
                "measure": query.get("measure", "bytes"), "by": "cluster", "from": start, "to": end, "step": step,
                "series": [{"key": "cluster", "t": times, **out}]}

    def ladder(self, query):
        start, end = self.span(query)
        at, seconds = (start + end) / 2, end - start
        answer = {"cluster": self.fsid, "from": start, "to": end, "state": self.model.state(at), "detail": None}
        for direction in ("write", "read"):
            answer[direction] = self.side(at, seconds, direction)
        return answer

    def side(self, at, seconds, direction):
        model = self.model
        state = "gap" if not model.visible("filesystem") else model.state(at)
        rates, parts = model.layers(at, direction)
        fs = rates["filesystem"][0]

        def part(name, kind, byte_rate, op_rate=None, **more):
            return {"name": name, "kind": kind, "bytes": byte_rate * seconds, "ops": op_rate and op_rate * seconds,
                    "amplification": byte_rate / fs, "help": f"What {name} moved", **more}

        of = {
            "filesystem": [part(p["name"], "pool", fs * p["part"], rates["filesystem"][1] * p["part"]) for p in model.pools],
            "osd": [part("client", "osd", fs, rates["osd"][1] / (3 if direction == "write" else 1))] +
                   ([part("replica", "osd", rates["osd"][0] - fs, rates["osd"][1] * 2 / 3),
                     part("recovery", "osd", 0.0, 0.0, counted=False)] if direction == "write" else []),
            "objectstore": [part(name, "objectstore", value, **({"included_in": "wal", "counted": False} if name == "deferred" else {}))
                            for name, value in parts.items()],
            "storage": [part(f"{host}/{name}", "device", rates["storage"][0] / len(model.disks), rates["storage"][1] / len(model.disks))
                        for host, name, _osd in model.disks],
        }
        rungs = []
        for layer, (byte_rate, op_rate) in rates.items():
            seen = model.visible(layer) and model.state(at) != "gap"
            rungs.append({"layer": layer, "bytes": byte_rate * seconds if seen else None, "ops": op_rate * seconds if seen else None,
                          "bytes_per_second": byte_rate if seen else None, "ops_per_second": op_rate if seen else None,
                          "mean_size": byte_rate / op_rate if seen else None,
                          "amplification": byte_rate / fs if seen and model.visible("filesystem") else None, "note": None,
                          "parts": of[layer] if seen else []})
        number = state not in ("gap", "idle")
        storage, store = rates["storage"][0], rates["objectstore"][0]
        expected = 3.0 if direction == "write" else 1.0
        amplification = storage / fs
        reasons = []
        if number and amplification / expected >= 1.2:
            reasons = [
                {"part": "deferred", "amplification": 3.0, "sentence": "Deferred writes: each write below the deferred threshold (64 KiB on this "
                 "rotational device) goes to the RocksDB WAL and later to the data, so it is written twice."},
                {"part": "metadata", "amplification": .37, "sentence": "Metadata of BlueStore and the PG log, beside deferred data."}]
        if not self.known:
            return {"state": state, "detail": UNKNOWN, "rungs": rungs, "unattributed": {"bytes": None, "share": None},
                    "ratio": 1 / amplification, "amplification": amplification, "expected": None, "excess": None, "reasons": []}
        return {"state": state, "detail": model.detail(state), "rungs": rungs,
                "unattributed": {"bytes": (storage - store) * seconds, "share": (storage - store) / storage} if number else {"bytes": None, "share": None},
                "ratio": 1 / amplification if number else None, "amplification": amplification if number else None,
                "expected": expected if number else None, "excess": amplification / expected if number else None, "reasons": reasons}


CALLS = ("clusters", "agents", "devices", "pools", "series", "ratio", "ladder", "findings")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "fake-collector"
    disable_nagle_algorithm = True

    def log_message(self, *_arguments):
        pass

    def send(self, status, content_type, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), "Content-Security-Policy": CSP,
                            "X-Content-Type-Options": "nosniff", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def problem(self, status, title, detail):
        body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "instance": self.path.partition("?")[0]}
        self.send(status, "application/problem+json", json.dumps(body).encode())

    def do_GET(self):
        path, _, query = self.path.partition("?")
        self.server.requests.append(self.path)
        if path.startswith("/api/v1/"):
            self.api(path.removeprefix("/api/v1/"), dict(urllib.parse.parse_qsl(query)))
        else:
            self.static("index.html" if path == "/" else path.lstrip("/"))

    def static(self, name):
        file = self.server.web / name
        if "/" in name or not file.is_file():
            self.problem(404, "Not Found", f"no file {name}")
            return
        self.send(200, TYPES.get(file.suffix, "application/octet-stream"), file.read_bytes())

    def api(self, call, query):
        scenario = self.server.scenario
        if scenario == "gone":
            self.close_connection = True
            return
        if scenario == "busy":
            self.problem(503, "Service Unavailable", "the query took longer than its time budget of 5 s; ask for a shorter range or a longer step")
            return
        if scenario.endswith("token"):
            given = self.headers.get("Authorization")
            if given != f"Bearer {TOKEN}":
                self.problem(401, "Unauthorized", "the token is not known" if given else "no token was given")
                return
            scenario = scenario.removesuffix("token").rstrip("_") or "healthy"
        try:
            if call not in CALLS:
                raise ApiProblem(404, "Not Found", f"no path /api/v1/{call}")
            answer = getattr(Answers(scenario), call)(query)
        except ApiProblem as error:
            self.problem(error.status, error.title, error.detail)
            return
        self.send(200, "application/json", json.dumps(answer).encode(), Cache_Control="no-store")


class FakeCollector(ThreadingHTTPServer):
    """Runs in a thread of its own; .scenario may be changed while it runs."""

    daemon_threads = True

    def __init__(self, web, scenario="healthy", port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.web, self.scenario, self.requests = Path(web), scenario, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def stop(self):
        self.shutdown()
        self.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scenario", choices=SCENARIOS, default="healthy")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--web", default="build/web", help="the folder with the built page")
    arguments = parser.parse_args()
    server = FakeCollector(arguments.web, arguments.scenario, arguments.port)
    print(server.url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
