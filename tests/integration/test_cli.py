"""The command line against a small collector that gives prepared answers (docs/api.md)."""
import contextlib
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import urllib.parse

import pytest

from system import STRATA

FSID = "11111111-2222-3333-4444-555555555555"
NODE1 = "aaaaaaaa-0000-0000-0000-000000000001"
NODE2 = "aaaaaaaa-0000-0000-0000-000000000002"
NOW = 1796034770.0  # 2026-11-30T10:32:50Z
MIB = 1 << 20
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def cluster(**changes):
    return {"fsid": FSID, "name": "ceph", "health": "HEALTH_OK", "release": "16.2.15", "hosts": 2, "osds": 3,
            "osds_up": 3, "pools": 2, "mgr_stats_period": 5.0, "last_sample": NOW - 2, "age": 2.0, **changes}


def source(name, age, interval=1.0):
    return {"source": name, "last_sample": NOW - age, "interval": interval}


def agent(host_id=NODE1, hostname="node1", age=1.0, sources=None, **changes):
    return {"host_id": host_id, "hostname": hostname, "kernel": "6.1.0", "version": "0.1.0", "first_seen": NOW - 9e5,
            "last_seen": NOW - age, "age": age, "clock_offset": 0.00021, "plan_revision": 0, "backlog_rows": 0,
            "blocks": 10, "rows": 3000, "dropped_rows": 0, "clusters": [FSID],
            "sources": sources if sources is not None else [source("diskstats", 2.0), source("osd", 2.0)], **changes}


def plan(whose="*", of="default", revision=0, **sources):
    built_in = {name: {"enabled": name not in ("ceph", "osd_histogram"), "interval": interval, "count": 0, "start": 0, "metrics": []}
                for name, interval in (("diskstats", "1s"), ("osd", "1s"), ("ceph", "5s"), ("host", "10s"),
                                       ("agent", "10s"), ("osd_histogram", "60s"))}
    for name, changes in sources.items():
        built_in[name].update(changes)
    return {"revision": revision, "host": whose, "of": of, "sources": built_in}


def ratio(states=("ok", "ok", "idle"), key="cluster", by="cluster", **changes):
    numbers = {"upper": 20 * MIB, "lower": 128 * MIB, "ratio": 0.15625, "amplification": 6.4, "expected": 3.0,
               "excess": 2.1333}
    series = {"key": key, "t": [NOW - 30 + 10 * i for i in range(len(states))], "state": list(states),
              "detail": [None if state == "ok" else f"a sentence on {state}" for state in states]}
    for name, value in numbers.items():
        series[name] = [None if state in ("idle", "gap") else value for state in states]
    return {"cluster": FSID, "upper": "filesystem", "lower": "storage", "direction": "write", "measure": "bytes",
            "by": by, "from": NOW - 30, "to": NOW, "step": 10.0, "series": [series] if states else [], **changes}


def rung(layer, factor, parts=(), note=None):
    size = 16384 if layer != "objectstore" else 0
    return {"layer": layer, "bytes": 1200 * MIB * factor, "ops": 76800 * factor if size else None,
            "bytes_per_second": 20 * MIB * factor, "ops_per_second": None, "mean_size": None,
            "amplification": factor, "note": note, "parts": list(parts)}


def part(name, factor, **changes):
    return {"name": name, "kind": "part", "bytes": 1200 * MIB * factor, "ops": None, "amplification": factor, **changes}


def ladder(direction=None, devices=("node1/sda", "node1/sdb", "node2/sda"), state="ok", detail=None):
    write = {
        "state": state, "detail": detail,
        "rungs": [rung("filesystem", 1.0, [part("rbd", 1.0)]), rung("osd", 3.05, [part("client", 1.0), part("replica", 2.05)]),
                  rung("objectstore", 6.38, [part("data", 3.0), part("deferred", 3.0, included_in="wal"),
                                             part("wal", 3.3), part("log", 0.08)], note="EC pools are missing here"),
                  rung("storage", 6.39, [part(name, 6.39 / len(devices)) for name in devices])],
        "unattributed": {"bytes": 12 * MIB, "share": 0.0015}, "ratio": 0.156, "amplification": 6.39, "expected": 3.0,
        "excess": 2.13, "reasons": [{"part": "deferred", "amplification": 3.0, "sentence": "Deferred writes go twice."}]}
    read = {"state": "idle", "detail": "1.2 KiB were read", "rungs": [rung("filesystem", 0.0)], "reasons": [],
            "unattributed": {"bytes": None, "share": None}, "ratio": None, "amplification": None, "expected": 1.0,
            "excess": None}
    answer = {"cluster": FSID, "from": NOW - 60, "to": NOW, "state": state, "detail": detail}
    answer.update({name: way for name, way in (("write", write), ("read", read)) if direction in (None, name)})
    return answer


def series():
    values = {"read_ops": 0, "write_ops": 500.0, "read_bytes": 0, "write_bytes": 40 * MIB, "read_await": None,
              "write_await": 0.00036, "queue": 1.8, "utilisation": 0.4}
    return {"cluster": FSID, "layer": "storage", "from": NOW - 10, "to": NOW, "step": 10.0, "series": [
        {"key": name, "host": host, "metric": metric, "unit": "x", "t": [NOW - 10], "state": ["ok"],
         "value": [0.97 if metric == "utilisation" and host == "node2" else value]}
        for host, name in (("node1", "sda"), ("node2", "sdb")) for metric, value in values.items()]}


def device(name, hostname, osds, role="block"):
    return {"host_id": NODE1, "hostname": hostname, "name": name, "osds": osds, "role": role, "leaf": True}


class Collector(http.server.ThreadingHTTPServer):
    """Answers (method, path) from a table of a status and a document, or of functions of the query and body."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.routes = {
            ("GET", "/clusters"): {"clusters": [cluster()], "cursor": None},
            ("GET", "/agents"): {"agents": [agent(), agent(NODE2, "node2")], "cursor": None},
            ("GET", "/devices"): {"devices": [device("sda", "node1", [0, 1]), device("sdb", "node2", [2], "db")],
                                  "cursor": None},
            ("GET", "/plans"): {"plans": []},
            ("GET", "/plans/*"): plan(),
            ("GET", "/ratio"): ratio(),
            ("GET", "/ladder"): lambda query, body: ladder(query.get("direction")),
            ("GET", "/series"): series(),
        }
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address):
        """A program that was ended does not read its answer."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, path, method="GET"):
        """The queries (or bodies) that reached this path."""
        return [query if body is None else body for m, p, query, body, _ in self.seen if (m, p) == (method, path)]

    def headers(self):
        return self.seen[-1][4]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        query = {key: values[0] for key, values in urllib.parse.parse_qs(url.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = url.path[len("/api/v1"):] if url.path.startswith("/api/v1") else url.path
        self.server.seen.append((self.command, path, query, body, dict(self.headers)))
        found = self.server.routes.get((self.command, path), (404, {"detail": f"no such path: {path}", "status": 404}))
        if callable(found):
            found = found(query, body)
        status, document = found if isinstance(found, tuple) else (200, found)
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        if status == 204:
            text = b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_DELETE = answer


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def row(self, *begin):
        """The words of the one line that begins with these words."""
        lines = [line.split() for line in self.out.splitlines() if line.split()[:len(begin)] == list(begin)]
        assert len(lines) == 1, f"{len(lines)} lines begin with {begin} in:\n{self.out}"
        return lines[0]


def environment(**changes):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("STRATA_TOKEN")}
    return {**clean, "TZ": "CET-1", "LC_ALL": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "", **changes}


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def strata(collector):
    def run(*words, **variables):
        done = subprocess.run([STRATA, *words], env=environment(STRATA_URL=collector.url, **variables),
                              capture_output=True, text=True, timeout=30, check=False)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        return Result(done)
    return run


# usage


@pytest.mark.parametrize("words, sentence", [
    ([], "a subcommand is missing"),
    (["statsu"], "unknown subcommand 'statsu'"),
    (["ratio", "--colour"], "unknown option '--colour'"),
    (["ratio", "--stepp=1s"], "unknown option '--stepp=1s'"),
    (["ratio", "--set", "a"], "option --set is not one of 'strata ratio'"),
    (["status", "node1"], "unexpected argument 'node1'"),
    (["plan", "a", "b"], "unexpected argument 'b'"),
    (["ratio", "--step"], "option --step needs a value: --step DURATION"),
    (["status", "--json=yes"], "option --json takes no value"),
    (["status", "--max-age", "soon"], "--max-age must be a duration"),
    (["status", "--url", "collector:7440"], "must begin with http:// or https://"),
    (["top", "-n", "0"], "-n must be a whole number above 0"),
    (["top", "-n", "1x"], "-n must be a whole number above 0"),
    (["top", "--interval", "10ms"], "--interval must be a duration from 1s to 1h"),
    (["plan", "--reset"], "say whose plan"),
    (["plan", "*", "--reset", "--set", "osd.enabled=no"], "exclude each other"),
])
def test_wrong_usage_is_a_sentence_and_status_2(strata, collector, words, sentence):
    result = strata(*words)
    assert result.status == 2
    assert result.err.startswith("strata: ") and sentence in result.err
    assert result.out == "" and collector.seen == []


def test_help_of_the_program_and_of_each_subcommand_names_what_it_takes(strata):
    overview = strata("--help")
    assert overview.status == 0
    for name in ("status", "ratio", "ladder", "top", "plan"):
        assert re.search(rf"^  {name} ", overview.out, re.M)
        text = strata(name, "--help")
        assert text.status == 0 and f"Usage: strata {name}" in text.out and "--json" in text.out
        assert max(len(line) for line in text.out.splitlines()) <= 110
    assert strata("--version").out == "strata 0.1.0\n"


# what goes wrong on the way


def test_a_refused_connection_says_what_to_check(strata):
    result = strata("status", "--url", "http://127.0.0.1:1")
    assert result.status == 1 and result.out == ""
    assert "strata: no collector answers at http://127.0.0.1:1 " in result.err
    assert "systemctl status strata-collectord" in result.err and "--url or STRATA_URL" in result.err


def test_an_unknown_host_says_so(strata):
    assert "the host of http://nowhere.invalid:7440 is unknown" in strata(
        "status", "--url", "http://nowhere.invalid:7440").err


def test_a_problem_document_is_printed_as_its_detail(strata, collector):
    collector.routes["GET", "/ratio"] = (400, {"type": "about:blank", "title": "Bad Request", "status": 400,
                                               "detail": "step must be greater than zero, but is '0s'"})
    result = strata("ratio", "--step", "0s")
    assert (result.status, result.out) == (1, "")
    assert result.err == "strata: step must be greater than zero, but is '0s'\n"


def test_a_missing_token_says_how_to_give_one(strata, collector):
    collector.routes["GET", "/clusters"] = (401, {"title": "Unauthorized", "status": 401, "detail": "no token was given"})
    result = strata("status")
    assert result.status == 1 and "no token was given" in result.err and "--token-file" in result.err


@pytest.mark.parametrize("status, body, sentence", [
    (404, b"<html>not here</html>", "answered with status 404 and not as a strata collector does"),
    (200, b"<html>welcome</html>", "answered with something that is not JSON"),
    (200, b'{"clusters":[{"fsid":"1', "answered with something that is not JSON"),
    (200, b"", "has no list 'clusters'"),
    (200, b"[]", "has no list 'clusters'"),
    (200, b'{"clusters":5}', "has no list 'clusters'"),
])
def test_an_answer_of_something_else_is_not_taken_for_data(strata, collector, status, body, sentence):
    collector.routes["GET", "/clusters"] = (status, body)
    for command in ("status", "ratio", "ladder"):
        result = strata(command)
        assert (result.status, result.out) == (1, "") and sentence in result.err


@pytest.mark.parametrize("document", [{}, [], None, 5, {"series": 5}, {"series": [5, {}, {"t": 5}]},
                                      {"write": {"rungs": [5, {}]}, "read": 5}, {"series": [{"t": [1, None, "x"]}]}])
def test_strange_documents_do_not_crash_it(strata, collector, document):
    for path in ("/ratio", "/ladder", "/series", "/plans", "/plans/*"):
        collector.routes["GET", path] = document
    collector.routes["GET", "/clusters"] = {"clusters": [5, {}, None]}
    for words in (["status"], ["top", "-n", "1"], ["plan"], ["plan", "*"]):
        assert strata(*words).status in (0, 1, 3)
    collector.routes["GET", "/clusters"] = {"clusters": [{"fsid": FSID}]}
    for words in (["ratio"], ["ladder"], ["top", "-n", "1"]):
        assert strata(*words).status in (0, 1)


def test_control_characters_of_a_name_do_not_reach_the_terminal(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(hostname="no\x1b[2Jde\x9b1\x07é")]}
    result = strata("status")
    assert "no?[2Jde??1?é" in result.out
    assert "\x1b" not in result.out and "\x9b" not in result.out


# tokens


def test_the_token_comes_from_the_file_the_variable_or_not_at_all(strata, collector, tmp_path):
    file = tmp_path / "token"
    file.write_text("from-file\n")
    strata("status")
    assert "Authorization" not in collector.headers()
    strata("status", STRATA_TOKEN="from-variable")
    assert collector.headers()["Authorization"] == "Bearer from-variable"
    strata("status", STRATA_TOKEN="from-variable", STRATA_TOKEN_FILE=str(file))
    assert collector.headers()["Authorization"] == "Bearer from-file"
    file.write_text("from-option")
    strata("status", "--token-file", str(file), STRATA_TOKEN_FILE="/nonexistent")
    assert collector.headers()["Authorization"] == "Bearer from-option"


def test_a_bad_token_is_refused_and_never_printed(strata, collector, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    assert f"cannot read a token from {empty}: it is empty" in strata("status", "--token-file", str(empty)).err
    assert "No such file" in strata("status", "--token-file", "/nonexistent").err
    result = strata("status", STRATA_TOKEN="secret\r\nX-Other: 1")
    assert result.status == 2 and "control character" in result.err and "secret" not in result.err
    assert collector.seen == []


# status


def test_status_lists_clusters_and_agents_and_ends_well(strata):
    result = strata("status")
    assert result.status == 0 and result.err == ""
    assert result.row("ceph") == ["ceph", FSID, "HEALTH_OK", "16.2.15", "2", "3/3", "2", "2.0", "s", "ago", "ok"]
    assert result.row("node1") == ["node1", "diskstats", "osd", "1.0", "s", "ago", "2.0", "s", "ago", "+0.21", "ms", "0",
                                   "0", "ok"]
    assert "All is well." in result.out


def test_status_of_a_silent_agent_says_since_when_and_where_to_look(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(), agent(NODE2, "node2", age=300.0, sources=[
        source("diskstats", 301.0), source("osd", 301.0)])]}
    result = strata("status")
    assert result.status == 3
    assert result.row("node2")[-1] == "silent" and result.row("node1")[-1] == "ok"
    assert "1 thing needs attention" in result.out
    assert "node2: nothing heard for 5 min (since 2026-11-30T11:27:50+01:00)" in result.out
    assert "systemctl status strata-agentd" in result.out


def test_status_finds_a_source_that_stopped_while_its_agent_lives(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(sources=[source("diskstats", 1.0), source("osd", 90.0)])]}
    result = strata("status")
    assert result.status == 3 and result.row("node1")[-1] == "stale"
    assert "node1: the source 'osd' gave its last sample 90 s ago" in result.out


@pytest.mark.parametrize("sources, host", [({"osd": {"enabled": False}}, "*"), ({"osd": {"count": 20}}, "*"),
                                           ({"osd": {"enabled": False}}, NODE1)])
def test_status_does_not_miss_a_source_that_the_plan_stopped(strata, collector, sources, host):
    collector.routes["GET", "/agents"] = {"agents": [agent(sources=[source("diskstats", 1.0), source("osd", 90.0)])]}
    collector.routes["GET", "/plans"] = {"plans": [plan(host, host, 3, **sources)]}
    assert strata("status").status == 0


def test_status_allows_a_slow_source_three_intervals(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(sources=[source("host", 170.0, interval=60.0)])]}
    assert strata("status").status == 0
    collector.routes["GET", "/agents"] = {"agents": [agent(sources=[source("host", 190.0, interval=60.0)])]}
    assert strata("status").status == 3


def test_status_takes_another_limit(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(age=50.0, sources=[])]}
    assert strata("status").status == 3
    assert strata("status", "--max-age", "2m").status == 0


def test_status_reports_a_wrong_clock_and_rows_that_were_lost(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(clock_offset=-3.2, dropped_rows=1234, backlog_rows=17)]}
    result = strata("status")
    assert result.status == 3
    assert result.row("node1")[-5:] == ["-3.20", "s", "17", "1234", "clock"]
    assert "its clock is 3.20 s behind the collector's" in result.out


def test_status_reports_a_cluster_whose_pool_statistics_stopped_or_never_came(strata, collector):
    collector.routes["GET", "/clusters"] = {"clusters": [cluster(age=400.0), cluster(name="new", age=None)]}
    result = strata("status")
    assert result.status == 3
    assert result.row("ceph")[-1] == "stale" and result.row("new")[-2:] == ["no", "data"]
    assert "the last pool statistics are 6 min old" in result.out


def test_machines_without_a_cluster_are_not_stale(strata, collector):
    collector.routes["GET", "/clusters"] = {"clusters": [cluster(
        fsid="none", name="(no cluster)", health=None, release=None, osds=0, osds_up=0, age=None, mgr_stats_period=None)]}
    assert strata("status").status == 0


def test_status_of_a_new_collector_says_that_nobody_reported(strata, collector):
    collector.routes["GET", "/clusters"] = {"clusters": []}
    collector.routes["GET", "/agents"] = {"agents": []}
    result = strata("status")
    assert result.status == 0 and "No agent has reported to this collector yet" in result.out


def test_status_reads_every_page(strata, collector):
    pages = {None: ({"agents": [agent()], "cursor": "a/b&c"}), "a/b&c": ({"agents": [agent(NODE2, "node2")], "cursor": None})}
    collector.routes["GET", "/agents"] = lambda query, body: pages[query.get("cursor")]
    result = strata("status")
    assert result.row("node1") and result.row("node2")


def test_status_as_json_has_the_lists_and_the_problems(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [agent(age=300.0)]}
    result = strata("status", "--json")
    document = json.loads(result.out)
    assert result.status == 3
    assert document["clusters"][0]["fsid"] == FSID and document["agents"][0]["hostname"] == "node1"
    assert len(document["problems"]) == 1


# choice of the cluster


def test_several_clusters_ask_for_a_choice(strata, collector):
    other = "99999999-2222-3333-4444-555555555555"
    collector.routes["GET", "/clusters"] = {"clusters": [cluster(), cluster(fsid=other, name="backup")]}
    result = strata("ratio")
    assert result.status == 1 and "choose one with --cluster" in result.err
    assert FSID in result.err and f"{other}  backup" in result.err
    strata("ratio", "--cluster", "backup")
    strata("ratio", "--cluster", FSID.upper())
    assert [query["cluster"] for query in collector.asked("/ratio")] == [other, FSID]
    assert "knows no cluster 'beta'" in strata("ratio", "--cluster", "beta").err


def test_a_cluster_is_preferred_to_machines_without_one(strata, collector):
    collector.routes["GET", "/clusters"] = {"clusters": [cluster(fsid="none", name="(no cluster)"), cluster()]}
    assert strata("ladder").status == 0
    assert collector.asked("/ladder")[0]["cluster"] == FSID


def test_an_empty_collector_has_no_cluster_to_show(strata, collector):
    collector.routes["GET", "/clusters"] = {"clusters": []}
    for command in ("ratio", "ladder", "top"):
        result = strata(command)
        assert result.status == 1 and "no agent has reported" in result.err


# ratio


def test_ratio_is_a_table_a_sparkline_and_a_summary(strata):
    result = strata("ratio")
    assert result.status == 0
    assert result.out.startswith("ceph: write bytes, filesystem / storage, in windows of 10s\n")
    assert result.row("2026-11-30T11:32:20+01:00")[1:] == ["20.0", "MiB/s", "128", "MiB/s", "0.156", "6.40", "3.00", "2.13",
                                                          "ok"]
    assert result.row("2026-11-30T11:32:40+01:00", "-")[1:] == ["-"] * 6 + ["idle"]
    assert "ratio 0.156 to 0.156  |▅▅ |" in result.out
    assert "Ratio 0.156, amplification 6.40, expected 3.00, excess 2.13; 2 of 3 windows have a number, 2 are ok." in result.out
    assert "2026-11-30T11:32:40+01:00 idle: a sentence on idle" in result.out


def test_ratio_divides_sums_and_does_not_average_ratios(strata, collector):
    document = ratio(("ok", "ok"))
    document["series"][0].update(upper=[9e6, 1e6], lower=[27e6, 13e6], ratio=[1 / 3, 1 / 13], expected=[3.0, 2.0])
    collector.routes["GET", "/ratio"] = document
    assert "Ratio 0.250, amplification 4.00, expected 2.90, excess 1.38;" in strata("ratio").out


def test_ratio_without_utf8_stays_ascii(strata, collector):
    document = ratio(("ok", "ok", "gap", "ok"))
    document["series"][0]["ratio"] = [0.1, 0.2, None, 0.16]
    document["series"][0]["detail"] = [None, None, "no samples of nöde1", None]
    collector.routes["GET", "/ratio"] = document
    result = strata("ratio", LC_ALL="C")
    assert result.out.isascii() and "|_# =|" in result.out and "n?de1" in result.out
    assert "|▁█ ▅|" in strata("ratio").out


def test_ratio_chooses_a_round_step_for_the_range(strata, collector):
    strata("ratio")
    strata("ratio", "--from", "-1m")
    strata("ratio", "--from", "-1h")
    strata("ratio", "--from", "2026-11-30T00:00:00Z", "--to", "2026-12-07T00:00:00Z")
    strata("ratio", "--from", "-1h", "--step", "7s", "--direction", "read", "--measure", "ops", "--upper", "osd",
           "--lower", "objectstore", "--by", "osd")
    assert [query["step"] for query in collector.asked("/ratio")] == ["1m", "10s", "5m", "12h", "7s"]
    last = collector.asked("/ratio")[-1]
    assert last == {"cluster": FSID, "upper": "osd", "lower": "objectstore", "direction": "read", "measure": "ops",
                    "by": "osd", "from": "-1h", "step": "7s"}


def test_ratio_lets_the_collector_judge_a_wrong_time(strata, collector):
    collector.routes["GET", "/ratio"] = (400, {"detail": "from is no time: 'yesterday'"})
    assert strata("ratio", "--from", "yesterday").err == "strata: from is no time: 'yesterday'\n"


def test_ratio_without_a_number_says_so(strata, collector):
    collector.routes["GET", "/ratio"] = ratio(("gap", "idle"))
    assert "No ratio: none of the 2 windows has a number (last state: idle)." in strata("ratio").out
    collector.routes["GET", "/ratio"] = ratio(())
    assert "No data in this range." in strata("ratio").out


def test_ratio_by_host_has_a_table_for_each(strata, collector):
    document = ratio(by="host", key="node1")
    document["series"].append({**document["series"][0], "key": "node2"})
    collector.routes["GET", "/ratio"] = document
    result = strata("ratio", "--by", "host")
    assert "\nhost node1\n" in result.out and "\nhost node2\n" in result.out


def test_ratio_by_pool_has_no_ratio_and_says_why(strata, collector):
    document = ratio(by="pool", key="rbd")
    for name in ("lower", "ratio", "amplification", "excess"):
        document["series"][0][name] = [None] * 3
    collector.routes["GET", "/ratio"] = document
    result = strata("ratio", "--by", "pool")
    assert "There is no ratio by pool" in result.out and "No ratio" not in result.out
    assert result.row("2026-11-30T11:32:20+01:00") == ["2026-11-30T11:32:20+01:00", "20.0", "MiB/s", "-", "-", "-", "3.00",
                                                      "-", "ok"]


# ladder


def test_ladder_shows_rungs_parts_rates_and_reasons(strata):
    result = strata("ladder")
    assert result.status == 0
    assert result.out.startswith("ceph, 2026-11-30T11:31:50+01:00 to 2026-11-30T11:32:50+01:00 (60 s)\n")
    write = Result(subprocess.CompletedProcess([], 0, result.out.split("\nread\n")[0], ""))
    assert write.row("filesystem") == ["filesystem", "20.0", "MiB/s", "1.28", "k", "16.0", "KiB", "1.00"]
    assert write.row("replica")[-1] == "2.05"
    assert write.row("objectstore")[-6:] == ["6.38", "EC", "pools", "are", "missing", "here"]
    assert write.row("deferred")[-3:] == ["part", "of", "wal"]
    assert write.out.index("  wal ") < write.out.index("    deferred ") < write.out.index("  log ")
    assert write.row("unattributed") == ["unattributed", "205", "KiB/s", "0.1", "%", "of", "the", "storage", "bytes"]
    assert "amplification 6.39 (ratio 0.156), expected 3.00, excess 2.13" in result.out
    assert "because\n  3.00 x  Deferred writes go twice." in result.out


def test_ladder_spells_out_a_state_that_is_not_ok(strata, collector):
    collector.routes["GET", "/ladder"] = ladder(state="contaminated", detail="recovery moved 12 GiB")
    result = strata("ladder")
    assert "the window is contaminated: recovery moved 12 GiB" in result.out
    assert "this ladder is contaminated: recovery moved 12 GiB" in result.out
    assert "this ladder is idle: 1.2 KiB were read" in result.out


def test_ladder_columns_are_aligned(strata):
    lines = strata("ladder", "--direction", "write").out.split("\nwrite\n")[1].splitlines()[:14]
    end = lines[0].index("AMPLIFICATION") + len("AMPLIFICATION")
    for line in lines[1:]:
        if not line.startswith("unattributed"):
            assert re.search(r"\d$", line[:end]), line


def test_ladder_asks_for_what_was_given(strata, collector):
    result = strata("ladder", "--from", "-5m", "--to", "now-1m", "--direction", "write")
    assert collector.asked("/ladder") == [{"cluster": FSID, "from": "-5m", "to": "now-1m", "direction": "write"}]
    assert "\nread\n" not in result.out


def test_ladder_of_many_devices_shows_the_largest_unless_all_are_wanted(strata, collector):
    document = ladder("write", devices=[f"node{i}/sda" for i in range(40)])
    document["write"]["rungs"][3]["parts"][39].update(bytes=1e12)
    collector.routes["GET", "/ladder"] = document
    result = strata("ladder")
    assert len(re.findall(r"node\d+/sda", result.out)) == 8 and "node39/sda" in result.out
    assert "(32 idle or small parts not shown: --all)" in result.out
    assert len(re.findall(r"node\d+/sda", strata("ladder", "--all").out)) == 40


def test_ladder_as_json_is_the_answer(strata):
    assert json.loads(strata("ladder", "--json").out) == ladder()
    assert json.loads(strata("ratio", "--json").out) == ratio()


# report

HOSTILE = "<script>alert('x')</script>\"&"


def use(**changes):
    rates = {"bytes_per_second": 20 * MIB, "ops_per_second": 1280.0, "mean_size": 16384}
    return {"direction": "write", "order": "random", "size": "16k", "windows": 12, "seconds": 120, "filesystem": rates,
            "osd": {"bytes_per_second": None, "ops_per_second": None, "mean_size": 16900}, "storage": rates, "joined": 0.01,
            "merged": 0.7, "utilisation": 0.9, "queue": 5.0, "ratio": 0.156, "amplification": 6.4, "expected": 3.0,
            "excess": 2.13, "ability": {"state": "seen", "bytes_per_second": 130 * MIB, "ops_per_second": 9000.0,
                                        "utilisation": 0.95},
            "share": 0.154, "used": 0.98, "of_best": 0.46, "grade": "fair", "in_class": 1.0, "p50": 0.0128, "p99": 0.1024,
            "detail": None, "sentence": "Random writes of 16k: clients get 20 MiB/s.", **changes}


def report(**changes):
    unseen = {name: None for name in use() if name not in ("direction", "ability", "filesystem", "osd", "storage")}
    rates = {"bytes_per_second": None, "ops_per_second": None, "mean_size": None}
    detail = "Not known, because no steady window of the range has such a load."
    unseen |= {"direction": "read", "order": "unknown", "size": "4k", "windows": 0, "seconds": 0, "filesystem": rates,
               "osd": rates, "storage": rates, "ability": {"state": "unknown"}, "detail": detail,
               "sentence": "Reads of 4k: n" + detail[1:]}
    return {"cluster": FSID, "name": "ceph", "from": NOW - 30, "to": NOW, "step": 10, "histograms": True,
            "windows": {"all": 3, "used": 1}, "summary": ["Fair for random writes of 16k."], "uses": [use(), unseen],
            "findings": [{"layer": "storage", "kind": "device", "entity": "node1/sda", "open": True, "begin": NOW - 20,
                          "last": NOW, "sentence": "It is slow.", "advice": "Replace it."}],
            "curves": {"t": [NOW - 30, NOW - 20, NOW - 10], "filesystem_read": [0, 0, 0], "storage_read": [0, 0, None],
                       "filesystem_write": [1.0, 2.0, 3.0], "storage_write": [6.0, None, 18.0],
                       "utilisation": [0.9, 0.8, 0.7]}, **changes}


def test_report_says_what_the_cluster_is_good_for_and_what_is_not_known(strata, collector):
    collector.routes["GET", "/report"] = report()
    result = strata("report", "--from=-2h", "--step", "30s")
    assert result.status == 0, result.err
    assert result.row("random", "write", "16k")[-1] == "fair"
    assert "Fair for random writes of 16k." in result.out
    assert "Reads of 4k: not known, because no steady window of the range has such a load." in result.out
    assert "1 finding in this time" in result.out
    assert collector.seen[-1][2] == {"cluster": FSID, "from": "-2h", "step": "30s"}


def test_report_as_json_is_the_answer(strata, collector):
    collector.routes["GET", "/report"] = report()
    assert json.loads(strata("report", "--json").out) == report()


def test_report_as_a_page_needs_nothing_from_outside_and_keeps_names_as_text(strata, collector):
    collector.routes["GET", "/clusters"] = {"clusters": [cluster(name=HOSTILE)], "cursor": None}
    finding = {**report()["findings"][0], "entity": HOSTILE, "sentence": HOSTILE}
    collector.routes["GET", "/report"] = report(name=HOSTILE, findings=[finding], summary=[HOSTILE], uses=[use(sentence=HOSTILE)])
    result = strata("report", "--html")
    assert result.status == 0 and result.out.startswith("<!DOCTYPE html>"), result.err
    assert "<script" not in result.out and result.out.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;") >= 5
    assert not re.search(r"src=|href=|url\(|https?:", result.out)
    # Well-formed as far as tags go: what is opened is closed.
    opened = ["html"]
    for end, name, empty in re.findall(r"<(/?)([a-z0-9]+)[^>]*?(/?)>", result.out.split("</head>")[1]):
        if name in ("br", "meta") or empty:
            continue
        if not end:
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []


def test_report_is_a_page_or_json_and_not_both(strata, collector):
    result = strata("report", "--html", "--json")
    assert result.status == 2 and "exclude each other" in result.err and collector.seen == []


# top


def test_top_to_a_pipe_prints_views_one_after_the_other(strata, collector):
    result = strata("top", "-n", "2", "-i", "1s")
    assert result.status == 0 and "\x1b" not in result.out
    assert result.out.count("LAYER") == 2
    view = Result(subprocess.CompletedProcess([], 0, result.out.split("\n\nceph")[0], ""))
    assert view.row("storage")[0] == "storage" and "6.39" in view.row("storage")
    # The busiest first, with what stands on it.
    assert view.out.index("node2/sdb") < view.out.index("node1/sda")
    assert view.row("node1/sda") == ["node1/sda", "osd.0", "osd.1", "500", "40.0", "MiB/s", "0.36", "ms", "0", "0", "B/s",
                                     "-", "1.80", "40", "%"]
    assert view.row("node2/sdb")[1:3] == ["osd.2", "(db)"] and view.row("node2/sdb")[-2:] == ["97", "%"]


def test_top_ends_its_window_where_the_slowest_layer_is(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": [
        agent(sources=[source("diskstats", 2.3), source("ceph", 6.6, 5.0), source("host", 9.0, 10.0)]),
        agent(NODE2, "node2", sources=[source("diskstats", 3.0), source("ceph", 500.0, 5.0)]),
        agent(NODE2, "gone", age=9999.0, sources=[source("diskstats", 9999.0)])]}
    assert strata("top", "-n", "1").status == 0
    assert strata("top", "-n", "1", "-i", "60s").status == 0
    windows = [(float(query["from"]), float(query["to"])) for query in collector.asked("/ladder")]
    assert windows == [(NOW - 17, NOW - 7), (NOW - 67, NOW - 7)]
    assert collector.asked("/series")[1]["step"] == "60s"


def test_top_without_samples_says_so(strata, collector):
    collector.routes["GET", "/agents"] = {"agents": []}
    assert "no agent of this cluster has sent disk samples" in strata("top", "-n", "1").err


def test_top_as_json_is_one_document_a_line(strata):
    lines = strata("top", "--json", "-n", "2", "-i", "1s").out.splitlines()
    assert len(lines) == 2 and all(json.loads(line)["ladder"]["write"]["expected"] == 3.0 for line in lines)


def test_top_goes_on_after_a_failure_but_not_when_it_is_the_first(strata, collector):
    answers = iter([ladder(), (503, {"detail": "busy, over the time budget"}), ladder()])
    collector.routes["GET", "/ladder"] = lambda query, body: next(answers)
    result = strata("top", "-n", "3", "-i", "1s")
    assert result.status == 0 and result.out.count("LAYER") == 2
    assert "strata: busy, over the time budget\nTrying again.\n" in result.out
    collector.routes["GET", "/ladder"] = (503, {"detail": "busy"})
    result = strata("top", "-n", "3")
    assert (result.status, result.err) == (1, "strata: busy\n")


@contextlib.contextmanager
def on_terminal(*words, lines=24, **variables):
    """The program on a terminal of its own: its process and the descriptor that reads the screen."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 120, 0, 0))
    process = subprocess.Popen([STRATA, *words], env=environment(**variables), stdin=side, stdout=side, stderr=side,
                               start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(side)
    try:
        yield process, main
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(main)


def read_screen(descriptor, until=None, seconds=20.0):
    """What was written up to a text, or to the end."""
    data, limit = b"", time.monotonic() + seconds
    while time.monotonic() < limit and (until is None or until.encode() not in data):
        if select.select([descriptor], [], [], 0.1)[0]:
            try:
                chunk = os.read(descriptor, 65536)
            except OSError:
                return data.decode()
            if not chunk:
                return data.decode()
            data += chunk
    assert until is None or until.encode() in data, data.decode()
    return data.decode()


def test_top_on_a_terminal_overwrites_and_ends_well_at_ctrl_c(collector):
    with on_terminal("top", "-i", "1s", STRATA_URL=collector.url) as (process, screen):
        text = read_screen(screen, until="\x1b[J")
        text += read_screen(screen, until="\x1b[J")
        assert text.count("\x1b[H") == 2 and "\x1b[K" in text
        os.write(screen, b"\x03")
        process.wait(10)
        assert process.returncode == 0


def test_top_ends_at_ctrl_c_also_while_the_collector_is_silent(collector):
    asked = threading.Event()
    release = threading.Event()

    def hang(query, body):
        asked.set()
        release.wait(30)
        return ladder()
    collector.routes["GET", "/ladder"] = hang
    with on_terminal("top", STRATA_URL=collector.url) as (process, screen):
        assert asked.wait(10)
        os.write(screen, b"\x03")
        process.wait(10)
        assert process.returncode == 0
    release.set()


def test_top_shows_as_many_devices_as_fit(collector):
    document = series()
    document["series"] = [{**entry, "key": f"sd{i}"} for entry in document["series"][:8] for i in range(100)]
    collector.routes["GET", "/series"] = document
    with on_terminal("top", "-n", "1", lines=24, STRATA_URL=collector.url) as (process, screen):
        text = ESCAPE.sub("", read_screen(screen))
        process.wait(10)
    assert text.count("node1/sd") == 11 and "(89 less busy devices not shown: --all)" in text
    assert len(text.splitlines()) <= 24


# colours


def test_colours_only_on_a_terminal_that_wants_them(collector, strata):
    assert "\x1b" not in strata("status").out
    for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with on_terminal("status", STRATA_URL=collector.url, **variables) as (process, screen):
            text = read_screen(screen)
            process.wait(10)
        assert ("\x1b[32m" in text) == coloured
        assert ESCAPE.sub("", text).replace("\r", "") == strata("status").out


# plan


def test_plan_shows_the_shared_plan_and_those_of_hosts(strata, collector):
    collector.routes["GET", "/plans"] = {"plans": [plan(NODE1, "host", 7, osd={"metrics": ["op_w", "op_r"], "count": 20})]}
    result = strata("plan")
    assert result.status == 0
    assert "*: the built-in plan (revision 0)" in result.out
    assert f"{NODE1}: its own plan (revision 7)" in result.out
    shared = Result(subprocess.CompletedProcess([], 0, result.out.split("\n\n")[0], ""))
    assert shared.row("ceph") == ["ceph", "no", "5s", "for", "ever", "at", "once", "all"]
    assert "op_w,op_r" in result.out and " 20 " in result.out


def test_plan_tells_which_agents_do_not_have_it_yet(strata, collector):
    followers = {"in_force": 3, "waiting": 2, "waiting_hosts": [
        {"host_id": NODE2, "revision": 6, "last_seen": time.time() - 300},
        {"host_id": "00000000-0000-0000-0000-000000000009", "revision": 0, "last_seen": time.time() - 2}]}
    collector.routes["GET", "/plans/*"] = {**plan("*", "*", 7), "agents": followers}
    lines = strata("plan", "*").out.splitlines()
    assert "in force on 3 agents, not yet on 2" in lines
    assert "  not yet on node2: it has revision 6, heard 5 min ago" in lines
    assert any(line.startswith("  not yet on 00000000-0000-0000-0000-000000000009: it has revision 0") for line in lines)


def test_plan_of_a_host_by_name_or_id(strata, collector):
    collector.routes["GET", f"/plans/{NODE2}"] = plan(NODE2, "*", 4)
    assert "node2: follows * (revision 4)" in strata("plan", "node2").out
    assert strata("plan", NODE2.upper()).status == 0
    assert "knows no host 'node9'" in strata("plan", "node9").err
    collector.routes["GET", "/agents"] = {"agents": [agent(), agent(NODE2)]}
    assert "2 hosts are named 'node1'" in strata("plan", "node1").err


def test_plan_is_changed_by_read_modify_write(strata, collector):
    def store(query, body):
        return {**plan("*", "*", 8), "sources": body["sources"]}
    collector.routes["PUT", "/plans/*"] = store
    result = strata("plan", "*", "--set", "diskstats.interval=500ms", "--set=osd.enabled=no", "--set", "host.count=20",
                    "--set", "osd.metrics=op_r,op_w", "--set", "agent.start=1796034770.5")
    assert result.status == 0, result.err
    assert "*: for every host without its own plan (revision 8)" in result.out
    expected = plan(diskstats={"interval": "500ms"}, osd={"enabled": False, "metrics": ["op_r", "op_w"]},
                    host={"count": 20}, agent={"start": 1796034770.5})
    assert collector.asked("/plans/*", "PUT") == [{"sources": expected["sources"]}]
    assert result.row("diskstats")[2] == "500ms" and result.row("osd")[1] == "no"


@pytest.mark.parametrize("change, sentence", [
    ("osd", "--set takes SOURCE.FIELD=VALUE"),
    ("osd=no", "--set takes SOURCE.FIELD=VALUE"),
    ("osd.enabled", "--set takes SOURCE.FIELD=VALUE"),
    ("disk.enabled=no", "there is no source 'disk'"),
    ("osd.enabled=maybe", "'maybe' is no value of osd.enabled: it takes yes or no"),
    ("osd.count=-1", "'-1' is no value of osd.count"),
    ("osd.count=99999999999999999999", "is no value of osd.count"),
    ("osd.start=soon", "'soon' is no value of osd.start: it takes a time such as"),
    ("osd.intervall=1s", "sources.osd has no field 'intervall'; it has: enabled, interval, count, start, metrics"),
    ("ceph.clusters=x", "sources.ceph.clusters"),
    ("osd.interval=1ms", "sources.osd.interval must be between 100ms and 1h, but is \"1ms\""),
    ("osd.metrics=op_w,nope", "sources.osd.metrics: unknown metric 'nope'; it has: op_r, op_r_out_bytes, "),
])
def test_a_wrong_change_is_refused_before_it_is_sent(strata, collector, change, sentence):
    result = strata("plan", "*", "--set", change)
    assert result.status == 2 and sentence in result.err
    assert collector.asked("/plans/*", "PUT") == []


def test_plan_is_reset(strata, collector):
    collector.routes["DELETE", f"/plans/{NODE1}"] = (204, b"")
    collector.routes["GET", f"/plans/{NODE1}"] = plan(NODE1, "*", 9)
    result = strata("plan", "node1", "--reset")
    assert result.status == 0 and "node1: follows * (revision 9)" in result.out
    assert [method for method, path, *_ in collector.seen if path == f"/plans/{NODE1}"] == ["DELETE", "GET"]


def test_a_reader_may_not_change_a_plan(strata, collector):
    collector.routes["PUT", "/plans/*"] = (403, {"detail": "a reader's token may not change plans"})
    result = strata("plan", "*", "--set", "osd.enabled=no")
    assert (result.status, result.err) == (1, "strata: a reader's token may not change plans\n")


def test_a_full_disk_is_noticed(collector):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([STRATA, "status"], env=environment(STRATA_URL=collector.url), stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "cannot write: No space left on device" in done.stderr


def test_a_pipe_that_is_closed_ends_it_by_signal(collector):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([STRATA, "status"], env=environment(STRATA_URL=collector.url), stdout=write, timeout=30,
                          check=False, restore_signals=True)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
