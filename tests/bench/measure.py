"""What benchmarks of servers share: CPU clocks, processes that end with us, a table with goals, and a small HTTP client."""
import os
import signal
import socket
import subprocess
import time

from system import die_with_parent, free_port  # pylint: disable=unused-import  # for those who import this

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRACE = os.path.join(TOP, "tests", "fixtures", "diskstats-1s.txt.gz")


def cpu_seconds(pid):
    """Of all threads, ended ones too: the process's CPU clock (see clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def status_mb(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:")) / 1024


def resident_max_mb(pid):
    return status_mb(pid, "VmHWM")


def anonymous_mb(pid):
    return status_mb(pid, "RssAnon")


def folder_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)


def release_build(folder, targets):
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, TOP, "--buildtype=release", "-Db_lto=true", "-Dtests=true",
                        "-Dweb=disabled"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, *targets], check=True, stdout=subprocess.DEVNULL)


class Process:
    """A server with a log in a folder; ends at the end of the `with`."""

    def __init__(self, folder, name, command):
        os.makedirs(folder, exist_ok=True)
        self.name, self.log = name, os.path.join(folder, f"{name}.log")
        with open(self.log, "ab") as log:
            # pylint: disable=subprocess-popen-preexec-fn,consider-using-with  # __exit__ ends it
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=die_with_parent)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, port, seconds=60):
        limit = time.monotonic() + seconds
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert self.process.poll() is None and time.monotonic() < limit, f"{self.name} does not listen: see {self.log}"
            time.sleep(0.05)


def dechunk(body):
    out, at = [], 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        if size == 0:
            return b"".join(out)
        out.append(body[end + 2:end + 2 + size])
        at = end + 4 + size


class Client:
    """One connection that stays open, and nothing that costs time: a request is milliseconds at most."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, method, path, body=b"", headers=()):
        """(status, body)"""
        lines = [f"{method} {path} HTTP/1.1", f"Host: localhost:{self.port}", *headers]
        if body or method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive()
        head, data = data.split(b"\r\n\r\n", 1)
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        status = int(head.split(b" ", 2)[1])
        if b"content-length" in fields:
            parts, have = [data], len(data)
            while have < int(fields[b"content-length"]):
                parts.append(self.receive())
                have += len(parts[-1])
            return status, b"".join(parts)
        if fields.get(b"transfer-encoding") == b"chunked":
            while not data.endswith(b"0\r\n\r\n"):
                data += self.receive()
            data = dechunk(data)
        return status, data

    def receive(self):
        data = self.socket.recv(1 << 20)
        assert data, "the server closed the connection"
        return data


def percentile(values, share):
    """The value that the share stays at or under."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Table:
    """Lines of a value and, with a goal, whether it is met."""

    def __init__(self):
        self.missed = 0

    def line(self, name, value, unit="", at_most=None, at_least=None):
        verdict = ""
        if at_most is not None:
            met = value <= at_most
            verdict = f"at most {at_most:g}: {'met' if met else 'MISSED'}"
        elif at_least is not None:
            met = value >= at_least
            verdict = f"at least {at_least:g}: {'met' if met else 'MISSED'}"
        if verdict:
            self.missed += not met
        print(f"{name:<64} {value:>12.3f} {unit:<10} {verdict}", flush=True)
