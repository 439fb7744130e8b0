"""The real collector, driven by hand over real sockets: bad senders, slow senders, many senders, sudden death."""
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest
import requests

from conftest import keep_logs
from system import BUILD, COLLECTORD, Collector, Daemon, free_port, wait_for, write

MAKE_BLOCKS = os.path.join(BUILD, "tests", "integration", "make-blocks")
HOST = "7d6f3c1e-93a4-4a34-8f0e-0c2f5a1d9b11"
OTHER = "1f0b7a52-5f6e-4c1d-a3b8-6b0d2c9e4f22"
MIB = 1 << 20


def make_blocks(sequence, count=1, rows=10, value=0, host=HOST):
    command = [MAKE_BLOCKS, host, str(sequence), str(count), str(rows), str(value)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def split_blocks(body):
    """The blocks one by one; each says its size at byte 8 (docs/block.md)."""
    at, blocks = 0, []
    while at < len(body):
        (size,) = struct.unpack_from("<I", body, at + 8)
        blocks.append(body[at:at + size])
        at += size
    return blocks


def head(host=HOST, **more):
    headers = {"Content-Type": "application/vnd.strata.blocks", "Strata-Host": host, "Strata-Plan-Revision": "0",
               "Strata-Sent-At": str(int(time.time() * 1e6))}
    return {**headers, **{name.replace("_", "-"): value for name, value in more.items()}}


def post(collector, body, host=HOST, **more):
    return collector.request("POST", "/blocks", data=body, headers=head(host, **more))


def counter(collector, name):
    answer = collector.request("GET", "/metrics")
    assert answer.status_code == 200 and answer.text.endswith("# EOF\n")
    (line,) = [line for line in answer.text.splitlines() if line.startswith(f"strata_collector_{name} ")]
    return float(line.split()[1])


def open_request(collector, method, path, headers):
    client = socket.create_connection(("127.0.0.1", collector.port), timeout=20)
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"] + [f"{name}: {value}" for name, value in headers.items()]
    client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return client


def read_answer(client):
    """(status, headers and body) up to the end of the answer, or None when the connection ends first."""
    data = b""
    with contextlib.suppress(OSError):
        while b"\r\n\r\n" not in data and (more := client.recv(65536)):
            data += more
        lines, _, body = data.partition(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in lines.lower().split(b"\r\n") if line.startswith(b"content-length")), 0)
        while len(body) < length and (more := client.recv(65536)):
            body += more
        data = lines + b"\r\n\r\n" + body
    return (int(data.split()[1]), data) if data.startswith(b"HTTP/1.1 ") else None


@pytest.fixture
def run(tmp_path, request):
    """Starts collectors with these keys of [collector]; all must end well."""
    started = []

    def start(**keys):
        started.append(Collector(tmp_path / str(len(started)), {"collector": keys}).start())
        return started[-1]

    try:
        yield start
        for collector in started:
            assert collector.stop() == 0, collector.log_text()[-2000:]
    finally:
        for collector in started:
            if collector.is_alive():
                collector.kill()
            keep_logs(f"test_collector/{request.node.name[:60]}", collector)


def test_blocks_are_stored_once_and_a_conflict_is_named(run):
    collector = run()
    answer = post(collector, make_blocks(1, 5))
    assert answer.status_code == 200 and answer.json() == {"accepted": 5, "duplicates": 0}
    answer = post(collector, make_blocks(4, 3))
    assert answer.json() == {"accepted": 1, "duplicates": 2}
    answer = post(collector, make_blocks(7, 1) + make_blocks(2, 1, value=1000))
    assert answer.status_code == 409
    assert answer.json()["block"] == 1 and answer.json()["sequence"] == 2
    sequences = sorted({row.sequence for rows in collector.rows().values() for row in rows})
    assert sequences == [1, 2, 3, 4, 5, 6], "the refused body left something behind"
    assert counter(collector, "blocks_total") == 6 and counter(collector, "duplicates_total") == 2


def test_a_body_of_just_the_limit_is_read_and_one_byte_more_is_not(run):
    collector = run()
    filler = b"\0" * (8 * MIB)
    assert post(collector, filler).status_code == 400
    assert post(collector, filler + b"\0").status_code == 413
    assert counter(collector, "bodies_too_large_total") == 1


def test_a_chunked_body_without_length_is_bounded_too(run):
    collector = run()
    body = make_blocks(1, 3)
    answer = collector.request("POST", "/blocks", data=iter([body[:100], body[100:]]), headers=head())
    assert answer.status_code == 200 and answer.json()["accepted"] == 3
    answer = collector.request("POST", "/blocks", data=iter([b"\0" * MIB] * 10), headers=head())
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_endless_body_is_cut_off(run):
    collector = run()
    client = open_request(collector, "POST", "/api/v1/blocks", {**head(), "Transfer-Encoding": "chunked"})
    sent = 0
    with contextlib.closing(client), contextlib.suppress(OSError):
        while sent < 200 * MIB:
            client.sendall(b"100000\r\n" + b"\0" * MIB + b"\r\n")
            sent += MIB
    assert sent < 100 * MIB
    assert counter(collector, "body_bytes") == 0


def test_two_slow_senders_at_once_do_not_hold_up_anybody(run):
    collector = run()
    bodies = [make_blocks(1, 40), make_blocks(1, 40, host=OTHER)]
    clients = [open_request(collector, "POST", "/api/v1/blocks", {**head(host), "Content-Length": len(body)})
               for host, body in zip((HOST, OTHER), bodies)]
    step = len(bodies[0]) // 20
    for at in range(0, len(bodies[0]), step):
        for client, body in zip(clients, bodies):
            client.sendall(body[at:at + step])
        begin = time.monotonic()
        assert collector.get("/agents")["agents"] == [], "a body that is not complete was stored"
        assert time.monotonic() - begin < 1.0
    for client in clients:
        status, data = read_answer(client)
        assert status == 200 and b'"accepted":40' in data
        client.close()


def test_who_is_too_slow_is_cut_off_and_counted(run):
    collector = run(request_timeout="2s", idle_timeout="2s")
    begin = time.monotonic()
    slow = [open_request(collector, "POST", "/api/v1/blocks", {**head(), "Content-Length": 100000})]
    slow.append(socket.create_connection(("127.0.0.1", collector.port), timeout=20))
    slow[1].sendall(b"GET /metrics HTTP/1.1\r\n")
    ended = set()
    while len(ended) < 2:
        assert time.monotonic() - begin < 15, "a byte now and then keeps a connection for ever"
        time.sleep(0.3)
        for index, client in enumerate(slow):
            try:
                # A byte every now and then: silence alone is not what cuts them off.
                client.sendall(b"x" if index == 0 else b"X: y\r\n")
            except OSError:
                ended.add(index)
    assert time.monotonic() - begin > 1.5
    assert counter(collector, "requests_cut_total") >= 1
    for client in slow:
        client.close()


def test_connections_beyond_the_limit_wait_and_do_not_crash_it(run):
    collector = run(connections="8", idle_timeout="2s")
    clients = [socket.create_connection(("127.0.0.1", collector.port), timeout=20) for _ in range(30)]
    wait_for(lambda: collector.listens(), "the collector to live on", seconds=5)
    for client in clients:
        client.close()
    wait_for(lambda: counter(collector, "connections") <= 2, "the connections to end")
    assert counter(collector, "connections_full_total") >= 1


NO_HTTP = [
    b"GET / HTTP/9.9\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"GARBAGE\r\n\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"y" * 100000 + b"\r\n\r\n",
    b"POST /api/v1/blocks HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/v1/blocks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"GET /api/v1/ratio?" + b"a=b&" * 200 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%00%ff%2e%2e/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
]


@pytest.mark.parametrize("request_line", NO_HTTP, ids=[str(number) for number in range(len(NO_HTTP))])
def test_what_is_no_http_does_no_harm(run, request_line):
    collector = run()
    with contextlib.closing(socket.create_connection(("127.0.0.1", collector.port), timeout=5)) as client:
        with contextlib.suppress(OSError):
            client.sendall(request_line)
            client.shutdown(socket.SHUT_WR)
        answer = read_answer(client)
        assert answer is None or answer[0] >= 400
    assert collector.get("/plans")["plans"] == []


def test_a_nul_cuts_neither_path_nor_value(run, tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html><title>strata</title>")
    collector = run(web_folder=str(tmp_path))
    assert read_answer(open_request(collector, "GET", "/", {}))[0] == 200
    assert read_answer(open_request(collector, "GET", "/%00", {}))[0] == 404
    status, data = read_answer(open_request(collector, "GET", "/api/v1/ratio?step=10s%00s", {}))
    assert status == 400 and b"10s%00s" in data


@pytest.mark.parametrize("path", ["/../collectord.conf", "/%2e%2e/collectord.conf", "/..%2fcollectord.conf", "//etc/passwd",
                                  "/.hidden", "/secret.conf", "/sub/../../0/collectord.conf"])
def test_no_path_leads_out_of_the_dashboard_s_folder(run, tmp_path, path):
    web = tmp_path / "web"
    (web / "sub").mkdir(parents=True)
    write(web / "index.html", "<!doctype html><title>strata</title>")
    write(web / "sub" / "a.js", "1")
    write(web / ".hidden", "secret")
    write(web / "secret.conf", "secret")
    collector = run(web_folder=str(web))
    client = open_request(collector, "GET", path, {})
    status, data = read_answer(client)
    client.close()
    assert status == 404 and b"problem+json" in data and b"listen" not in data


def test_the_dashboard_comes_with_its_headers(run, tmp_path):
    web = tmp_path / "web"
    web.mkdir()
    write(web / "index.html", "<!doctype html><title>strata</title>")
    write(web / "a.js", "let a = 1;")
    collector = run(web_folder=str(web))
    page = requests.get(collector.url + "/", timeout=10)
    assert page.status_code == 200 and page.headers["Content-Type"].startswith("text/html")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    script = requests.get(collector.url + "/a.js", timeout=10)
    assert script.headers["Content-Type"].startswith("text/javascript")
    again = requests.get(collector.url + "/a.js", headers={"If-None-Match": script.headers["ETag"]}, timeout=10)
    assert again.status_code == 304 and again.content == b""
    assert requests.head(collector.url + "/a.js", timeout=10).headers["Content-Length"] == "10"


def test_a_page_that_pretends_to_be_local_is_not_served(run):
    collector = run()
    answer = collector.request("GET", "/agents", headers={"Host": "evil.example:7440"})
    assert answer.status_code == 403 and "evil.example" in answer.json()["detail"]
    assert collector.request("GET", "/agents", headers={"Host": "localhost:1"}).status_code == 200
    # What a browser sends without asking first.
    answer = collector.request("POST", "/blocks", data=make_blocks(1), headers={**head(), "Content-Type": "text/plain"})
    assert answer.status_code == 415


def test_a_plan_goes_round(run):
    collector = run()
    stored = collector.request("PUT", "/plans/*", json={"sources": {"diskstats": {"interval": "5s", "metrics": ["write_ops"]}}})
    assert stored.status_code == 200
    plan = stored.json()
    assert plan["of"] == "*" and plan["sources"]["diskstats"]["metrics"] == ["write_ops"]
    assert plan["sources"]["ceph"]["enabled"] is True, "a plan that does not speak of ceph switched it off"
    shown = collector.get(f"/plans/{HOST}")
    assert (shown["of"], shown["host"], shown["revision"]) == ("*", HOST, plan["revision"])
    # What an agent is given: not elected, so no ceph; and under a revision of its own.
    given = post(collector, make_blocks(1)).json()["plan"]
    assert given["sources"]["diskstats"]["interval"] == "5s" and given["sources"]["ceph"]["enabled"] is False
    assert "plan" not in post(collector, make_blocks(2), Strata_Plan_Revision=str(given["revision"])).json()
    asked = collector.request("GET", f"/plans/{HOST}", headers={"Strata-Host": HOST}).json()
    assert asked["revision"] == given["revision"] and asked["sources"] == given["sources"]
    # The same document may be sent back as it was shown.
    again = collector.request("PUT", f"/plans/{HOST}", json=shown)
    assert again.status_code == 200 and again.json()["revision"] > plan["revision"]
    assert [entry["host"] for entry in collector.get("/plans")["plans"]] == ["*", HOST]
    assert collector.request("DELETE", f"/plans/{HOST}").status_code == 204
    collector.problem("DELETE", f"/plans/{HOST}", 404)
    assert collector.get("/agents")["agents"][0]["plan_revision"] == plan["revision"]


def test_an_agent_alone_is_elected_at_its_first_upload_and_stays_over_a_restart(run):
    collector, fsid = run(), "0b0e4b64-5a3c-4d2c-9f8e-2f1b3a6c7d8e"
    able = {"Strata_Sources": "diskstats,ceph", "Strata_Clusters": fsid}
    plan = post(collector, make_blocks(1), **able).json()["plan"]
    assert plan["sources"]["ceph"]["enabled"] is True and plan["sources"]["ceph"]["clusters"] == [fsid]
    assert "plan" not in post(collector, make_blocks(2), **able,
                              Strata_Plan_Revision=str(plan["revision"])).json()
    other = post(collector, make_blocks(1, host=OTHER), OTHER, **able).json()
    assert "plan" not in other or other["plan"]["sources"]["ceph"]["enabled"] is False
    facts = {"host_id": HOST, "hostname": "node1", "kernel": "6.1", "agent_version": "0.1.0", "devices": [],
             "clusters": [{"fsid": fsid, "name": "ceph", "health": "HEALTH_OK",
                           "release": "16.2.15", "mgr_stats_period": 5.0, "osds": [], "pools": []}]}
    assert collector.request("PUT", f"/facts/{HOST}", json=facts).status_code == 204
    assert collector.stop() == 0
    collector.start()
    other = post(collector, make_blocks(2, host=OTHER), OTHER, **able).json()
    assert "plan" not in other or other["plan"]["sources"]["ceph"]["enabled"] is False
    assert "plan" not in post(collector, make_blocks(3), **able,
                              Strata_Plan_Revision=str(plan["revision"])).json()


def test_a_full_store_says_so_and_takes_the_same_blocks_later(run):
    collector = run(store_max="256K")
    for first in range(0, 100000, 500):
        body = make_blocks(first, 500, rows=100)
        answer = post(collector, body)
        if answer.status_code != 200:
            break
    assert answer.status_code == 507 and "space" in answer.json()["detail"]
    assert collector.get("/agents") is not None, "reading must go on"
    assert counter(collector, "commit_failures_total") >= 1
    assert collector.log_text().count("the store cannot be written") == 1
    assert collector.stop() == 0
    collector.configure({"collector": {**collector.sections["collector"], "store_max": "0"}})
    collector.start()
    assert post(collector, body).status_code == 200


def test_every_acknowledged_block_is_there_once_after_sigkill(run):
    collector = run()
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    bodies = split_blocks(make_blocks(0, 400))
    assert len(bodies) == 400
    acknowledged, stop = set(), threading.Event()

    def send(sequences):
        session = requests.Session()
        for sequence in sequences:
            while not stop.is_set():
                with contextlib.suppress(requests.RequestException):
                    answer = session.post(collector.url + "/api/v1/blocks", data=bodies[sequence], headers=head(), timeout=10)
                    assert answer.status_code == 200, answer.text
                    acknowledged.add(sequence)
                    break
                time.sleep(0.02)

    senders = [threading.Thread(target=send, args=(range(first, 400, 4),)) for first in range(4)]
    for sender in senders:
        sender.start()
    try:
        for _ in range(6):
            before = len(acknowledged)
            wait_for(lambda mark=before: len(acknowledged) > mark or len(acknowledged) == 400, "an acknowledgement", every=0.005)
            time.sleep(chance.random() * 0.1)
            collector.kill(signal.SIGKILL)
            collector.start()
        for sender in senders:
            sender.join(timeout=60)
    finally:
        stop.set()
    assert acknowledged == set(range(400))
    rows = [row for rows in collector.rows().values() for row in rows]
    counts = {}
    for row in rows:
        counts[row.sequence] = counts.get(row.sequence, 0) + 1
    assert counts == {sequence: 10 for sequence in range(400)}


def test_it_ends_within_five_seconds_and_answers_what_it_took(run):
    collector = run()
    body = make_blocks(1, 5)
    client = open_request(collector, "POST", "/api/v1/blocks", {**head(), "Content-Length": len(body)})
    client.sendall(body[:50])
    stuck = open_request(collector, "POST", "/api/v1/blocks", {**head(), "Content-Length": 1000})
    idle = socket.create_connection(("127.0.0.1", collector.port), timeout=20)
    time.sleep(0.3)
    begin = time.monotonic()
    collector.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", collector.port), timeout=5)
    client.sendall(body[50:])
    status, data = read_answer(client)
    assert status == 200 and b'"accepted":5' in data
    assert collector.process.wait(timeout=10) == 0
    assert time.monotonic() - begin < 5.0
    for connection in (client, stuck, idle):
        connection.close()
    assert len(collector.rows()[(HOST, "diskstats")]) == 50


def test_many_questions_at_once_are_answered_or_told_to_come_back(run):
    collector = run()
    post(collector, make_blocks(1, 300))
    codes, lock = [], threading.Lock()

    def ask():
        session = requests.Session()
        for _ in range(20):
            answer = session.get(collector.url + "/api/v1/agents", timeout=20)
            with lock:
                codes.append(answer.status_code)
            if answer.status_code == 503:
                assert "Retry-After" in answer.headers

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 400 and set(codes) <= {200, 503} and 200 in codes


def test_a_query_over_its_time_budget_is_ended(run):
    collector = run(query_timeout="100ms")
    device = {"name": "sda", "alias": "", "identity": "wwn:0x5000", "model": "", "serial": "", "wwn": "wwn:0x5000", "kind": "disk",
              "major": 8, "minor": 0, "rotational": True, "size_bytes": 1 << 40, "parents": []}
    facts = {"host_id": HOST, "hostname": "node1", "kernel": "6.1", "agent_version": "0.1.0", "devices": [device], "clusters": []}
    assert collector.request("PUT", f"/facts/{HOST}", json=facts).status_code == 204
    for first in range(0, 10000, 1000):
        assert post(collector, make_blocks(first, 1000, rows=100)).status_code == 200
    answer = collector.request("GET", "/series?cluster=none&layer=storage&metric=write_bytes&from=-2h&step=1s")
    assert answer.status_code in (200, 503)
    if answer.status_code == 503:
        assert "time budget" in answer.json()["detail"] and "Retry-After" in answer.headers


def test_the_same_store_is_not_used_twice(run, tmp_path):
    collector = run()
    second = Daemon(COLLECTORD, tmp_path, "second",
                    {"collector": {"listen": f"127.0.0.1:{free_port()}", "store_folder": collector.store}})
    done = second.run(seconds=20)
    assert done.returncode != 0 and collector.store in done.stderr and "another" in done.stderr


def test_an_address_in_use_is_named(run, tmp_path):
    collector = run()
    second = Daemon(COLLECTORD, tmp_path, "second",
                    {"collector": {"listen": f"127.0.0.1:{collector.port}", "store_folder": str(tmp_path / "other")}})
    done = second.run(seconds=20)
    assert done.returncode != 0 and str(collector.port) in done.stderr and "in use" in done.stderr


# ---- TLS and tokens ----

def certificate(folder, name):
    """A certificate for 127.0.0.1 that is its own authority."""
    paths = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    paths[1], "-out", paths[0], "-days", "2", "-subj", "/CN=strata", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    return paths


def test_tls_is_of_today_and_its_authority_is_checked(tmp_path):
    right, wrong = certificate(tmp_path, "right"), certificate(tmp_path, "wrong")
    collector = Collector(tmp_path, {"tls": {"certificate": right[0], "key": right[1]}}, scheme="https")
    collector.start()
    try:
        url = collector.url + "/api/v1/plans"
        assert requests.get(url, verify=right[0], timeout=10).status_code == 200
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(url, verify=wrong[0], timeout=10)
        answer = requests.post(collector.url + "/api/v1/blocks", data=make_blocks(1, 2000, rows=100), headers=head(), verify=right[0],
                               timeout=20)
        assert answer.status_code == 200 and answer.json()["accepted"] == 2000
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(right[0])
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(OSError):
            with socket.create_connection(("127.0.0.1", collector.port), timeout=10) as plain:
                old.wrap_socket(plain, server_hostname="127.0.0.1")
        assert collector.stop() == 0
    finally:
        if collector.is_alive():
            collector.kill()


def test_a_key_of_another_certificate_is_refused_at_the_start(tmp_path):
    right, wrong = certificate(tmp_path, "right"), certificate(tmp_path, "wrong")
    daemon = Daemon(COLLECTORD, tmp_path, "mixed", {
        "collector": {"listen": f"127.0.0.1:{free_port()}", "store_folder": str(tmp_path / "store")},
        "tls": {"certificate": right[0], "key": wrong[1]}})
    done = daemon.run(seconds=20)
    assert done.returncode != 0 and right[0] in done.stderr


def test_a_new_token_counts_after_sighup_and_a_broken_file_changes_nothing(tmp_path):
    def token(kind, *name):
        done = subprocess.run([COLLECTORD, "--make-token", kind, *name], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first, first_line = token("reader")
    second, second_line = token("agent", HOST)
    file = write(tmp_path / "tokens", first_line + "\n", 0o600)
    collector = Collector(tmp_path, {"tokens": {"file": file}}).start()
    try:
        def status(secret):
            return collector.request("GET", f"/plans/{HOST}", headers={"Authorization": f"Bearer {secret}"}).status_code

        assert (status(first), status(second)) == (200, 401)
        write(file, first_line + "\n" + second_line + "\n")
        collector.process.send_signal(signal.SIGHUP)
        wait_for(lambda: status(second) == 200, "the new token")
        write(file, "nonsense\n")
        collector.process.send_signal(signal.SIGHUP)
        wait_for(lambda: f"{file}:1:" in collector.log_text(), "a line on the broken file")
        assert (status(first), status(second)) == (200, 200)
        assert post(collector, make_blocks(1, host=OTHER), OTHER, Authorization=f"Bearer {second}").status_code == 403
        assert post(collector, make_blocks(1, host=OTHER), HOST, Authorization=f"Bearer {second}").status_code == 403
        assert post(collector, make_blocks(1), Authorization=f"Bearer {second}").status_code == 200
        log = collector.log_text()
        assert first not in log and second not in log
        assert collector.stop() == 0
    finally:
        if collector.is_alive():
            collector.kill()


def test_the_openapi_document_is_served_as_it_is_in_the_repository(run):
    collector = run()
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "openapi.json"), encoding="utf-8") as file:
        assert collector.get("/openapi.json") == json.load(file)
