"""More connections than it takes, half-open ones, slow ones, and questions without measure: the rest is unharmed."""
import contextlib
import os
import socket
import struct
import subprocess
import sys
import time

import pytest
import requests

from conftest import keep_logs
from system import Collector, die_with_parent, wait_for

CONNECTIONS = 20000
LIMIT = 16384  # the default of [collector] connections
MEMORY_KIB = 40  # of a connection, with sanitizers


def memory_mb(collector):
    with open(f"/proc/{collector.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


@pytest.fixture
def collector(tmp_path, request):
    made = Collector(tmp_path, {"collector": {"request_timeout": "15s", "idle_timeout": "120s"}}).start()
    yield made
    assert made.stop() == 0, made.log_text()[-2000:]
    keep_logs(f"test_limits/{request.node.name[:60]}", made)


def counter(collector, name):
    text = collector.request("GET", "/metrics").text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"strata_collector_{name} ")))


def connect(port, number, head):
    """Connections that have sent @head. What the collector does not take waits in the kernel."""
    clients = []
    for _ in range(number):
        client = socket.socket()
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            client.connect(("127.0.0.1", port))
        clients.append(client)
        if len(clients) % 250 == 0:
            time.sleep(0.05)  # the kernel's queue holds a thousand
    for client in clients:
        with contextlib.suppress(OSError):
            client.send(head)
    return clients


# A process may have 20,000 descriptors here and there: the connections are spread over some.
HOLD = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.realpath(__file__))!r})
import test_limits
held = test_limits.connect(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode())
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(collector, number, head):
    """So many connections, while it lasts."""
    parts = 4
    holders = [subprocess.Popen([sys.executable, "-c", HOLD, str(collector.port), str(number // parts), head], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent)  # pylint: disable=subprocess-popen-preexec-fn
               for _ in range(parts)]
    try:
        for holder in holders:
            assert holder.stdout.readline() == "held\n"
        yield
    finally:
        for holder in holders:
            holder.communicate(timeout=60)


@pytest.mark.parametrize("head", ["", "GET /api/v1/clusters HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "half a head"])
def test_twenty_thousand_connections_harm_nobody_who_is_there(collector, head):
    assert collector.get("/clusters")["clusters"] == []  # by a connection that stays
    before = memory_mb(collector)
    with held(collector, CONNECTIONS, head):
        wait_for(lambda: counter(collector, "connections") >= LIMIT, "the connections", seconds=60)
        begin = time.monotonic()
        assert collector.get("/clusters")["clusters"] == []
        assert time.monotonic() - begin < 2
        assert counter(collector, "connections") <= LIMIT and counter(collector, "connections_full_total") >= 1
        assert (memory_mb(collector) - before) * 1024 / LIMIT < MEMORY_KIB
    wait_for(lambda: counter(collector, "connections") <= 2, "the connections to end", seconds=60)
    assert requests.get(collector.url + "/api/v1/clusters", timeout=10).status_code == 200


def test_connections_whose_other_end_vanished_are_given_up(tmp_path):
    collector = Collector(tmp_path, {"collector": {"request_timeout": "2s", "idle_timeout": "60s"}}).start()
    try:
        clients = connect(collector.port, 200, b"POST /api/v1/blocks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
                                          b"Content-Type: application/vnd.strata.blocks\r\n\r\nabc")
        wait_for(lambda: counter(collector, "connections") > 200, "the connections")
        for number, client in enumerate(clients):
            if number % 2:  # half of them reset, half just say no more
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
        wait_for(lambda: counter(collector, "connections") <= 1, "the connections to be given up", seconds=20)
        assert counter(collector, "requests_cut_total") >= 100
        for client in clients:
            client.close()
    finally:
        assert collector.stop() == 0


ABSURD = [
    "/series?layer=storage&metric=write_bytes&from=0&to=now&step=1s",
    "/series?layer=storage&metric=write_bytes&from=1900-01-01T00:00:00Z",
    "/series?layer=storage&metric=write_bytes&from=-100000d&step=1d",
    "/series?layer=storage&metric=write_bytes&step=1ns",
    "/series?layer=storage&metric=write_bytes&step=1000000000000000000d",
    "/series?layer=storage&metric=" + ",".join(["write_bytes"] * 17),
    "/series?layer=storage&metric=write_bytes&top=1000000000",
    "/series?layer=storage&metric=write_bytes&top=5&limit=5",
    "/ratio?from=now&to=-1h",
    "/ratio?from=2500-01-01T00:00:00Z",
    "/ratio?cluster=" + "f" * 36,
    "/ratio?cluster=b0570000-0000-0000-0000-000000000001",
    "/ladder?from=1e400",
    "/devices?limit=1001",
    "/devices?limit=-1",
    "/export?what=export",
    "/export?what=../clusters",
    "/export?what=series&layer=storage&metric=write_bytes&format=xml",
]


def test_questions_without_measure_are_refused_at_once(collector):
    for question in ABSURD:
        begin = time.monotonic()
        detail = collector.problem("GET", question, 404 if "cluster=b" in question else 400)
        assert detail and time.monotonic() - begin < 1, question
    assert counter(collector, "queries_late_total") == 0
