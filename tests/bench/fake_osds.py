"""A process that stands for the OSDs of a node: admin sockets that replay a captured perf dump with counters
that move, and as many processes of the name ceph-osd, with the threads of a real one, to whom the sockets belong.

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
import threading
import uuid

QUESTION_MAX = 4096
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
# Of an OSD on a disk that turns: those on the way of an operation, and the others.
THREADS = ["msgr-worker-%d" % i for i in range(3)] + ["tp_osd_tp"] * 8 + [
    "bstore_aio", "bstore_aio", "bstore_kv_sync", "bstore_kv_final"] + ["safe_timer"] * 44
THREAD_STACK_BYTES = 64 << 10
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


def serve(servers, osds):
    selector = selectors.DefaultSelector()
    for server, osd in zip(servers, osds):
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


def sockets_bind(folder, n):
    servers = [socket.socket(socket.AF_UNIX) for _ in range(n)]
    for number, server in enumerate(servers):
        server.bind(os.path.join(folder, f"ceph-osd.{number}.asok"))
    return servers


def processes_start(folder, servers):
    """Programs under the name and with the arguments of OSDs, each with a socket: who listens is whom the kernel names."""
    program = os.path.join(folder, "ceph-osd")
    shutil.copy(os.path.realpath(sys.executable), program)
    # pylint: disable=subprocess-popen-preexec-fn,consider-using-with  # no threads here; they live as long as we do
    processes = [subprocess.Popen([program, "-S", os.path.realpath(__file__), "--owner", str(server.fileno()),
                                   "-n", f"osd.{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  pass_fds=[server.fileno()], preexec_fn=die_with_parent)
                 for number, server in enumerate(servers)]
    for process in processes:
        assert process.stdout.readline() == b"listens\n", "the process of an OSD does not start"
    return processes


def owner_main(fd):
    """Listens, and leaves the answers to the parent, which has the socket, too."""
    libc, started = ctypes.CDLL(None), threading.Barrier(len(THREADS) + 1)

    def thread(name):
        libc.prctl(PR_SET_NAME, name.encode())
        started.wait()
        threading.Event().wait()

    socket.socket(fileno=fd).listen(64)
    threading.stack_size(THREAD_STACK_BYTES)
    for name in THREADS:
        threading.Thread(target=thread, args=(name,), daemon=True).start()
    started.wait()
    print("listens", flush=True)
    sys.stdin.read()


def main():
    if sys.argv[1] == "--owner":
        owner_main(int(sys.argv[2]))
        return
    folder, n, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "rb") as file:
        dump = file.read()
    servers = sockets_bind(folder, n)
    processes = processes_start(folder, servers)
    try:
        with open(os.path.join(folder, "pids"), "w", encoding="ascii") as file:
            file.writelines(f"{process.pid}\n" for process in processes)
        serve(servers, [Osd(number, dump) for number in range(n)])
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
