"""TLS and tokens between the two real programs: who may not deliver does not, and loses nothing by it."""
import os
import re
import subprocess
import time

import pytest
import requests

from conftest import keep_logs
from system import AGENTD, COLLECTORD, Agent, Collector, Daemon, free_port, wait_for, write

HOST = "7d6f3c1e-93a4-4a34-8f0e-0c2f5a1d9b11"
OTHER_HOST = "1f0b7a52-5f6e-4c1d-a3b8-6b0d2c9e4f22"
HOSTILE_SECONDS = 6


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_authority(folder, name):
    """A certificate authority, and a certificate for 127.0.0.1 that it signed: paths of ca, certificate, key."""
    ca, ca_key = folder / f"{name}-ca.pem", folder / f"{name}-ca.key"
    certificate, key, request = folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}.csr"
    extensions = write(folder / f"{name}.ext", "subjectAltName=IP:127.0.0.1\n")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new_key, "-keyout", str(ca_key), "-out", str(ca), "-days", "2", "-subj", f"/CN={name} authority")
    openssl("req", *new_key, "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}")
    openssl("x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key), "-CAcreateserial", "-days", "2",
            "-extfile", extensions, "-out", str(certificate))
    return str(ca), str(certificate), str(key)


def make_token(kind, *name):
    """The token and its line of the token file, from the program that operators use."""
    done = subprocess.run([COLLECTORD, "--make-token", kind, *name], capture_output=True, text=True, check=True)
    token = done.stdout.split()[0]
    line = next(line for line in done.stdout.splitlines() if re.search(rf"{kind} \S+ [0-9a-f]{{64}}$", line))
    return token, line.strip()


class Fortress:
    """A collector with a certificate and tokens."""

    def __init__(self, folder):
        self.folder = folder
        self.ca, certificate, key = make_authority(folder, "right")
        self.wrong_ca, _, _ = make_authority(folder, "wrong")
        self.tokens, lines = {}, []
        for who, kind, name in (("agent", "agent", [HOST]), ("other", "agent", [OTHER_HOST]), ("reader", "reader", []),
                                ("operator", "operator", [])):
            self.tokens[who], line = make_token(kind, *name)
            lines.append(line)
        tokens = write(folder / "tokens", "\n".join(lines) + "\n", 0o600)
        self.collector = Collector(folder, {"tls": {"certificate": certificate, "key": key}, "tokens": {"file": tokens}},
                                   scheme="https")
        self.collector.session.verify = self.ca
        self.collector.start()

    def headers(self, who):
        return {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}

    def hosts(self):
        answer = self.collector.request("GET", "/agents", headers=self.headers("reader"))
        assert answer.status_code == 200, answer.text
        return [agent["host_id"] for agent in answer.json()["agents"] if agent["rows"]]

    def agent(self, name, token, ca=None, host=HOST):
        folder = self.folder / name
        folder.mkdir()
        token_file = write(folder / "token", token + "\n", 0o600) if token is not None else None
        return Agent(folder, self.collector.url, name=name, sections={
            "agent": {"host_id": host}, "osd": {"folders": str(folder)},
            "collector": {"token_file": token_file, "ca_file": ca or self.ca}})


@pytest.fixture(scope="module")
def fortress(tmp_path_factory):
    made = Fortress(tmp_path_factory.mktemp("fortress"))
    try:
        yield made
        assert made.collector.stop() == 0
    finally:
        if made.collector.is_alive():
            made.collector.kill()
        keep_logs("test_security", made.collector)


@pytest.mark.parametrize("name, token, ca, host, named", [
    ("wrong-token", lambda f: "x" * 43, None, HOST, "401|token"),
    ("no-token", lambda f: None, None, HOST, "401|token"),
    ("reader-token", lambda f: f.tokens["reader"], None, HOST, "403|token"),
    ("wrong-certificate", lambda f: f.tokens["agent"], "wrong_ca", HOST, "certificate"),
    ("for-another-host", lambda f: f.tokens["other"], None, HOST, "403|host"),
], ids=lambda value: value if isinstance(value, str) and value.islower() else "")
def test_an_agent_that_may_not_deliver_says_why_keeps_its_rows_and_stores_nothing(fortress, name, token, ca, host, named):
    agent = fortress.agent(name, token(fortress), getattr(fortress, ca) if ca else None, host)
    agent.start()
    try:
        wait_for(lambda: re.search(named, agent.log_text()), f"a line on {named}", seconds=30)
        time.sleep(HOSTILE_SECONDS)
        assert fortress.hosts() == [], "a row came in"
        assert agent.is_alive()
        lines = agent.log_text().splitlines()
        assert any(re.match(rf"(error|warning): collector: samples: .*({named})", line) for line in lines), lines
        assert len(lines) == len(set(lines)), f"the same failure is told again and again: {lines}"
        for secret in fortress.tokens.values():
            assert secret not in agent.log_text() and secret not in fortress.collector.log_text()
        assert agent.stop() == 0
    finally:
        if agent.is_alive():
            agent.kill()
        keep_logs("test_security", agent)
    kept = sum(os.path.getsize(os.path.join(folder, file))
               for folder, _, files in os.walk(os.path.join(agent.folder, "state")) for file in files)
    assert kept > 0, "the refused rows are gone"


def test_the_right_agent_delivers_over_tls(fortress):
    agent = fortress.agent("right-agent", fortress.tokens["agent"])
    agent.start()
    try:
        wait_for(lambda: fortress.hosts() == [HOST], "the agent's rows", seconds=40)
        assert agent.stop() == 0
    finally:
        if agent.is_alive():
            agent.kill()
        keep_logs("test_security", agent)


@pytest.mark.parametrize("who, method, path, status", [
    (None, "GET", "/agents", 401),
    (None, "GET", "/ratio", 401),
    (None, "GET", "/metrics", 401),
    (None, "PUT", "/plans/*", 401),
    (None, "POST", "/blocks", 401),
    ("agent", "GET", "/agents", 403),
    ("agent", "PUT", "/plans/*", 403),
    ("agent", "GET", f"/plans/{OTHER_HOST}", 403),
    ("agent", "PUT", f"/facts/{OTHER_HOST}", 403),
    ("agent", "GET", f"/plans/{HOST}", 200),
    ("reader", "GET", "/agents", 200),
    ("reader", "PUT", "/plans/*", 403),
    ("reader", "POST", "/blocks", 403),
    ("operator", "PUT", "/plans/*", 200),
    (None, "GET", "/openapi.json", 200),
])
def test_each_token_opens_its_own_doors_only(fortress, who, method, path, status):
    body = {"json": {"sources": {}}} if method == "PUT" else {}
    answer = fortress.collector.request(method, path, headers=fortress.headers(who), **body)
    assert answer.status_code == status, answer.text[:300]
    if status == 401:
        assert answer.headers.get("WWW-Authenticate", "").startswith("Bearer")


def test_plain_http_is_not_answered_where_tls_is_on(fortress):
    with pytest.raises(requests.RequestException):
        requests.get(f"http://127.0.0.1:{fortress.collector.port}/api/v1/openapi.json", timeout=5)


@pytest.mark.parametrize("sections, named", [
    ({}, "tls|certificate"),
    ({"tls": True}, "token"),
    ({"tokens": True}, "tls|certificate"),
])
def test_a_collector_that_others_can_reach_starts_only_with_tls_and_tokens(fortress, tmp_path, sections, named):
    port = free_port()
    given = {name: fortress.collector.sections[name] for name in sections}
    daemon = Daemon(COLLECTORD, tmp_path, "open", {"collector": {"listen": f"0.0.0.0:{port}", "store_folder": str(tmp_path)}, **given})
    done = daemon.run(seconds=20)
    assert done.returncode != 0
    assert re.search(named, done.stderr.lower())


def test_a_token_file_with_a_broken_line_is_refused_with_file_and_line(fortress, tmp_path):
    tokens = write(tmp_path / "tokens", "# who may\nreader somebody nothexadecimal\n", 0o600)
    daemon = Daemon(COLLECTORD, tmp_path, "broken", {
        "collector": {"listen": f"127.0.0.1:{free_port()}", "store_folder": str(tmp_path)}, "tokens": {"file": tokens}})
    done = daemon.run(seconds=20)
    assert done.returncode != 0 and f"{tokens}:2:" in done.stderr
