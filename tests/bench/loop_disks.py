"""Loop devices over sparse files, under numbers of their own so that no `losetup --find` meets them."""
import contextlib
import fcntl
import os
import threading

LOOP_CTL_ADD = 0x4C80
LOOP_CTL_REMOVE = 0x4C81
LOOP_SET_FD = 0x4C00
LOOP_CLR_FD = 0x4C01
NUMBER_FIRST = 200
BYTES = 16 << 20
WRITE_BYTES = 4096


class LoopDisks:
    """@n devices; `with` removes them again. Some of them get a write ten times a second."""

    def __init__(self, folder, n, busy):
        self.folder, self.n, self.n_busy = folder, n, busy
        self.numbers = []
        self.quit = threading.Event()
        self.writer = threading.Thread(target=self.write, daemon=True)

    def __enter__(self):
        try:
            number = NUMBER_FIRST
            while len(self.numbers) < self.n:
                self.add(number)
                number += 1
        except BaseException:
            self.remove()
            raise
        self.writer.start()
        return self

    def __exit__(self, *_):
        self.quit.set()
        self.writer.join()
        self.remove()

    def add(self, number):
        with open("/dev/loop-control", "rb") as control:
            try:
                fcntl.ioctl(control, LOOP_CTL_ADD, number)
            except FileExistsError:
                return
        self.numbers.append(number)
        path = os.path.join(self.folder, f"disk.{number}")
        with open(path, "wb") as file:
            file.truncate(BYTES)
        with open(path, "r+b") as file, open(f"/dev/loop{number}", "r+b", buffering=0) as device:
            fcntl.ioctl(device, LOOP_SET_FD, file.fileno())
            # A first read and write, so that no counter of it is nought.
            os.pread(device.fileno(), WRITE_BYTES, 0)
            self.put(device.fileno(), 0)

    def remove(self):
        for number in self.numbers:
            with contextlib.suppress(OSError), open(f"/dev/loop{number}", "rb", buffering=0) as device:
                fcntl.ioctl(device, LOOP_CLR_FD)
            with contextlib.suppress(OSError), open("/dev/loop-control", "rb") as control:
                fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        self.numbers = []

    @staticmethod
    def put(device, turn):
        os.pwrite(device, os.urandom(WRITE_BYTES), turn * WRITE_BYTES % BYTES)
        os.fdatasync(device)

    def write(self):
        with contextlib.ExitStack() as stack:
            devices = [stack.enter_context(open(f"/dev/loop{number}", "r+b", buffering=0))
                       for number in self.numbers[:self.n_busy]]
            turn = 0
            while not self.quit.wait(0.1):
                turn += 1
                for device in devices:
                    self.put(device.fileno(), turn)
