"""A process that stands for the OSDs of a node: admin sockets that replay a captured perf dump with counters
that move, and, for the source "host", as many processes of the name ceph-osd.

    fake_osds.py FOLDER N DUMP      prints a line when it listens; ends with its standard input

FOLDER then has the sockets, and in the file `pids` the process ids.
Its CPU time is nobody's business: who measures must not count it.
"""
import contextlib
import ctypes
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import uuid

QUESTION_MAX = 4096
PR_SET_PDEATHSIG = 1
NUMBER = re.compile(rb":(\d+)(\.\d+)?(?=[,}])")


class Osd:
    """What one admin socket answers, in the very form in which Ceph prints it."""

    def __init__(self, number, dump):
        self.number, self.dump, self.turn = number, dump.strip(), 0
        self.identity = {"cluster_fsid": str(uuid.UUID(int=1)), "osd_fsid": str(uuid.UUID(int=100 + number)),
                         "whoami": number, "state": "active"}

    def move(self, match):
        """A number grows by its own step at each turn; one that is nought stays so, as most do in real ones."""
        whole, fraction = int(match[1]), match[2] or b""
        if whole or fraction.strip(b".0"):
            whole += self.turn * ((match.start() + self.number) % 4096)
        return b":%d%s" % (whole, fraction)

    def answer(self, question):
        if b"perf dump" in question:
            self.turn += 1
            text = NUMBER.sub(self.move, self.dump)
        elif b"version" in question:
            text = json.dumps({"version": "16.2.15", "release": "pacific", "release_type": "stable"}).encode()
        else:
            text = json.dumps(self.identity).encode()
        return len(text).to_bytes(4, "big") + text


def serve(folder, osds):
    selector = selectors.DefaultSelector()
    for osd in osds:
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.path.join(folder, f"ceph-osd.{osd.number}.asok"))
        server.listen(64)
        selector.register(server, selectors.EVENT_READ, osd)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    print("listens", flush=True)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                return
            client, _ = key.fileobj.accept()
            with client, contextlib.suppress(OSError):
                client.settimeout(1)
                client.sendall(key.data.answer(client.recv(QUESTION_MAX)))


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def processes_start(folder, n):
    """Programs that wait for their input, under the name and with the arguments of OSDs."""
    program = os.path.join(folder, "ceph-osd")
    shutil.copy(shutil.which("cat"), program)
    # pylint: disable=subprocess-popen-preexec-fn,consider-using-with  # no threads here; they live as long as we do
    return [subprocess.Popen([program, "-", "-n", f"osd.{number}"], stdin=subprocess.PIPE, preexec_fn=die_with_parent)
            for number in range(n)]


def main():
    folder, n, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "rb") as file:
        dump = file.read()
    processes = processes_start(folder, n)
    try:
        with open(os.path.join(folder, "pids"), "w", encoding="ascii") as file:
            file.writelines(f"{process.pid}\n" for process in processes)
        serve(folder, [Osd(number, dump) for number in range(n)])
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
