"""Bad input to the two real programs: each gives one clear sentence that names the thing, nothing is
lost, nothing crashes, and what is not concerned goes on. No cluster is needed here."""
import contextlib
import os
import re
import signal
import socket
import sqlite3
import threading
import time

import pytest

from conftest import keep_logs
from system import AGENTD, COLLECTORD, Agent, Collector, Daemon, free_port, wait_for, write

BLOCKS = {"Content-Type": "application/vnd.strata.blocks"}
# lib/block.h: the fixed header, whose bytes 4 and 5 are the version.
HEADER_BYTES = 128
VERSION_AT = 4
# What a few seconds of an agent that delivers each second may leave in its spool.
BACKLOG_MAX = 50


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Collector and agent that watch just this machine's disks."""
    folder = tmp_path_factory.mktemp("pair")
    collector = Collector(folder).start()
    agent = Agent(folder, collector.url, sections={"osd": {"folders": str(folder / "run")}})
    os.mkdir(folder / "run")
    try:
        agent.start()
        collector.wait_until_stored(0.0, ("diskstats",))
        yield collector, agent
        assert (agent.stop(), collector.stop()) == (0, 0)
    finally:
        for daemon in (agent, collector):
            if daemon.is_alive():
                daemon.kill()
        keep_logs("test_faults", agent, collector)


def one_sentence(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    assert len(lines) == 1, f"one sentence is wanted, not: {text}"
    return lines[0]


# ---- configuration ----

@pytest.mark.parametrize("program, section", [(AGENTD, "agent"), (COLLECTORD, "collector")], ids=["agentd", "collectord"])
@pytest.mark.parametrize("text, line, named", [
    ("log_level = info\nthis is no key\n", 3, ""),
    ("# comment\nlog_level = info\nintervall = 1s\n", 4, "intervall"),
    ("log_level = info\n\n[nowhere]\nkey = 1\n", 4, "nowhere"),
], ids=["line", "key", "section"])
@pytest.mark.parametrize("check", [True, False], ids=["check", "start"])
def test_a_bad_configuration_is_refused_with_file_and_line(tmp_path, program, section, text, line, named, check):
    daemon = Daemon(program, tmp_path, "bad", {})
    write(daemon.conf, f"[{section}]\n{text}")
    done = daemon.run(*(["--check"] if check else []))
    assert done.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT)
    sentence = one_sentence(done.stderr)
    assert f"{daemon.conf}:{line}:" in sentence
    assert named in sentence


@pytest.mark.parametrize("program", [AGENTD, COLLECTORD], ids=["agentd", "collectord"])
def test_a_missing_configuration_is_named(tmp_path, program):
    daemon = Daemon(program, tmp_path, "absent", {})
    os.unlink(daemon.conf)
    done = daemon.run("--check")
    assert done.returncode != 0 and daemon.conf in one_sentence(done.stderr)


def test_a_good_configuration_passes_the_check(pair):
    for daemon in pair:
        done = daemon.run("--check")
        assert (done.returncode, done.stdout.strip()) == (0, "configuration OK"), done.stderr


# ---- sources that fail ----

class BrokenSocket:
    """An admin socket of an OSD that answers every request with half a document."""

    def __init__(self, path):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(4096)
                    client.sendall(b"\x00\x00\x00\x20{\"osd\": {\"op_w\": 1, ")

    def close(self):
        self.server.close()


def test_an_unreadable_admin_socket_is_named_once_and_the_disks_go_on(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    write(run / "ceph-osd.7.asok", "no socket at all")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(run / "ceph-osd.8.asok"))
    stale.close()
    broken = BrokenSocket(str(run / "ceph-osd.9.asok"))
    collector = Collector(tmp_path).start()
    agent = Agent(tmp_path, collector.url, sections={"osd": {"folders": str(run)}})
    try:
        agent.start()
        collector.wait_until_stored(0.0, ("diskstats",))
        collector.wait_until_stored(time.time() + 5, ("diskstats",))
        lines = agent.log_text().splitlines()
        for name in ("osd.8", "osd.9"):
            about = [line for line in lines if name in line]
            assert len(about) == 1, f"{name} is to be reported once, not: {about}"
        rows = next(rows for (_, source), rows in collector.rows().items() if source == "diskstats")
        ticks = [row.time_us // row.interval_us for row in rows]
        assert ticks == list(range(ticks[0], ticks[0] + len(ticks))), "a disk sample is missing"
        assert agent.stop() == 0 and collector.stop() == 0
    finally:
        broken.close()
        for daemon in (agent, collector):
            if daemon.is_alive():
                daemon.kill()
        keep_logs("test_faults_socket", agent, collector)


def test_absent_monitors_are_named_once_and_the_disks_go_on(tmp_path):
    conf = write(tmp_path / "ceph.conf", f"[global]\nfsid = 0b0e4b64-5a3c-4d2c-9f8e-2f1b3a6c7d8e\n"
                 f"mon host = v2:127.0.0.1:{free_port()}\nauth client required = none\n")
    keyring = write(tmp_path / "keyring", "[client.strata]\n\tkey = AQBnRS9lAAAAABAAJ1qj0mXlXh4n7b6lY2b2Xg==\n", 0o600)
    collector = Collector(tmp_path).start()
    agent = Agent(tmp_path, collector.url, sections={
        "osd": {"folders": str(tmp_path)},
        "ceph": {"enabled": "yes", "conf": conf, "name": "client.strata", "keyring": keyring}})
    try:
        collector.plan(diskstats="1s", ceph="1s")
        agent.start()
        wait_for(lambda: "ceph" in agent.log_text(), "a line on the monitors", seconds=30)
        collector.wait_until_stored(time.time() + 12, ("diskstats",), seconds=40)
        about = [line for line in agent.log_text().splitlines()
                 if re.search(r"\bceph\b", line) and re.search(r"error|warning", line)]
        assert about and len(about) == len(set(about)), f"the monitors are to be reported once, not: {about}"
        assert any(conf in line and "monitor" in line for line in about), about
        rows = next(rows for (_, source), rows in collector.rows().items() if source == "diskstats")
        ticks = [row.time_us // row.interval_us for row in rows]
        assert ticks == list(range(ticks[0], ticks[0] + len(ticks))), "a disk sample is missing"
        begin = time.monotonic()
        assert agent.stop() == 0
        assert time.monotonic() - begin < 15, "the agent waits for monitors when it is to end"
        assert collector.stop() == 0
    finally:
        for daemon in (agent, collector):
            if daemon.is_alive():
                daemon.kill()
        keep_logs("test_faults_monitors", agent, collector)


# ---- bodies ----

@pytest.fixture(scope="module")
def block(pair):
    """A real block's bytes, its host, and how to send others."""
    collector, _ = pair

    def newest():
        with contextlib.closing(sqlite3.connect(f"file:{collector.database()}?mode=ro", uri=True)) as database:
            return database.execute("SELECT data FROM block ORDER BY id DESC LIMIT 1").fetchone()

    (data,) = wait_for(newest, "a block in the hot log")
    (agent,) = collector.get("/agents")["agents"]
    return bytes(data), {**BLOCKS, "Strata-Host": agent["host_id"], "Strata-Plan-Revision": "0",
                         "Strata-Sent-At": str(int(time.time() * 1e6))}


def with_byte(data, at, value):
    return data[:at] + bytes([value]) + data[at + 1:]


def test_a_block_that_is_sent_again_is_accepted_and_not_stored_twice(pair, block):
    data, headers = block
    answer = pair[0].request("POST", "/blocks", data=data, headers=headers)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["accepted"], answer.json()["duplicates"]) in ((1, 1), (0, 1))


BODIES = {
    "empty": (400, lambda data: b""),
    "text": (400, lambda data: b"hello, this is no block at all" * 10),
    "shorter than its header": (400, lambda data: data[:HEADER_BYTES // 2]),
    "cut": (400, lambda data: data[:-1]),
    "of a wrong checksum": (400, lambda data: with_byte(data, len(data) - 1, data[-1] ^ 1)),
    "of another version": (415, lambda data: with_byte(data, VERSION_AT, 99)),
    "good, then cut": (400, lambda data: data + data[:-5]),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_refused_as_a_whole_with_a_sentence(pair, block, name):
    collector, _ = pair
    data, headers = block
    status, spoil = BODIES[name]
    detail = collector.problem("POST", "/blocks", status, data=spoil(data), headers=headers)
    assert len(detail) > 10
    assert collector.is_alive()


def test_a_refused_block_is_named_by_its_place(pair, block):
    data, headers = block
    answer = pair[0].request("POST", "/blocks", data=data + with_byte(data, VERSION_AT, 99), headers=headers)
    assert answer.status_code == 415 and answer.json()["block"] == 1


def test_a_body_that_is_too_large_is_refused(pair, block):
    collector, _ = pair
    _, headers = block
    with contextlib.closing(socket.create_connection(("127.0.0.1", collector.port), timeout=30)) as client:
        lines = ["POST /api/v1/blocks HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {1 << 40}"]
        lines += [f"{key}: {value}" for key, value in headers.items()]
        client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        # The refusal may come before the body or within it.
        with contextlib.suppress(OSError):
            for _ in range(64):
                client.sendall(b"\0" * (1 << 20))
        answer = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in answer and (more := client.recv(65536)):
                answer += more
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
    assert collector.is_alive() and collector.get("/agents")["agents"]


def test_a_host_header_that_is_no_host_is_refused(pair, block):
    data, headers = block
    for host in (None, "nobody", "00000000-0000-0000-0000-00000000000"):
        sent = {key: value for key, value in {**headers, "Strata-Host": host}.items() if value}
        assert "host" in pair[0].problem("POST", "/blocks", 400, data=data, headers=sent).lower()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{\"host_id\": 7}", b"\xff\xfe", b"[" * 100000],
                         ids=["empty", "cut", "list", "number", "bytes", "deep"])
def test_broken_facts_are_refused_with_a_sentence(pair, block, body):
    host = block[1]["Strata-Host"]
    assert pair[0].problem("PUT", f"/facts/{host}", 400, data=body)
    assert pair[0].is_alive()


@pytest.mark.parametrize("body, named", [
    ({"sources": {"diskstats": {"interval": "0s"}}}, "interval"),
    ({"sources": {"diskstats": {"interval": "soon"}}}, "interval"),
    ({"sources": {"weather": {"enabled": True}}}, "weather"),
    ({"sources": {"diskstats": {"metrics": ["no_such_metric"]}}}, "no_such_metric"),
    ({"sources": {"diskstats": {"count": -1}}}, "count"),
], ids=["zero", "word", "source", "metric", "count"])
def test_a_broken_plan_is_refused_and_the_field_named(pair, body, named):
    assert named in pair[0].problem("PUT", "/plans/*", 400, json=body)


# ---- questions ----

UNKNOWN = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("path", ["/ratio", "/ladder", "/series?layer=storage&metric=write_bytes"],
                         ids=["ratio", "ladder", "series"])
@pytest.mark.parametrize("query, status, named", [
    (f"cluster={UNKNOWN}", 404, UNKNOWN),
    ("cluster=nonsense", 400, "nonsense"),
    ("cluster=none&from=now&to=-5m", 400, "from"),
    ("cluster=none&from=-5m&to=-10m", 400, "-10m"),
    ("cluster=none&from=2199-01-01T00:00:00Z&to=2199-01-02T00:00:00Z", 400, "2199-01-01"),
    ("cluster=none&from=yesterday", 400, "yesterday"),
    ("cluster=none&from=-5m&from=-6m", 400, "from"),
    ("cluster=none&form=-5m", 400, "form"),
], ids=["unknown-cluster", "no-cluster-id", "now-to-past", "backwards", "future", "no-time", "twice", "unknown"])
def test_a_bad_question_is_refused_and_the_thing_named(pair, path, query, status, named):
    url = path + ("&" if "?" in path else "?") + query
    assert named in pair[0].problem("GET", url, status)


@pytest.mark.parametrize("path, named", [
    ("/ratio?cluster=none&step=0s", "step"),
    ("/ratio?cluster=none&step=0", "step"),
    ("/ratio?cluster=none&step=-1s", "step"),
    ("/ratio?cluster=none&from=-7d&step=1s", "step"),
    ("/ratio?cluster=none&upper=storage&lower=filesystem", "upper"),
    ("/ratio?cluster=none&upper=cellar", "cellar"),
    ("/ratio?cluster=none&measure=litres", "litres"),
    ("/series?cluster=none&layer=storage&metric=mood", "mood"),
    ("/series?cluster=none&layer=attic&metric=write_bytes", "attic"),
    ("/series?cluster=none&layer=host&metric=cpu_user,cpu_time", "cpu_time"),
    ("/devices?limit=0", "limit"),
    ("/devices?limit=many", "limit"),
])
def test_a_bad_parameter_is_refused_and_named(pair, path, named):
    assert named in pair[0].problem("GET", path, 400)


def test_an_unknown_path_and_a_wrong_method_say_so(pair):
    assert "/api/v1/nothing" in pair[0].problem("GET", "/nothing", 404)
    assert pair[0].problem("DELETE", "/ratio", 405)


def test_the_agent_tells_of_itself(pair):
    collector, agent = pair
    names = ["cpu_time", "rss", "lateness_max", "sample_time", "socket_time", "spool_rows", "dropped_rows", "failed_parts"]

    def numbers():
        series = collector.get("/series", cluster="none", layer="host", metric=",".join(names), from_="-20s", step="5s")["series"]
        return {one["metric"]: [value for value in one["value"] if value is not None] for one in series}
    wait_for(lambda: all(numbers().get(name) for name in names), f"numbers of the agent itself, not {numbers()}", seconds=60)
    assert max(numbers()["cpu_time"]) > 0 and max(numbers()["rss"]) > 1000
    assert agent.is_alive()


def test_after_all_this_the_agent_still_delivers(pair):
    collector, agent = pair
    collector.wait_until_stored(time.time(), ("diskstats",))
    assert agent.is_alive() and collector.is_alive()
    assert all(entry["backlog_rows"] < BACKLOG_MAX for entry in collector.get("/agents")["agents"])
