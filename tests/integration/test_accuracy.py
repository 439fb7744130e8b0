"""How right the numbers are: fio and the kernel are the witnesses, on three kinds of pool.

Each cell is one load of some seconds between two calm moments. Everything measured is written to
artefacts/accuracy.json and, as a table, to artefacts/accuracy.md.
"""
import json
import os
import time
from dataclasses import asdict, dataclass

import pytest

from system import ARTEFACTS, MGR_STATS_PERIOD

KINDS = {"replicated:3": 3.0, "replicated:2": 2.0, "erasure:2+1": 1.5}
LOADS = (("randwrite", "64k"), ("randwrite", "16k"), ("write", "1m"), ("randread", "64k"), ("read", "1m"))
LOAD_SECONDS = 7
SOURCE_INTERVAL = 1.0

FILESYSTEM_TOLERANCE = 0.002
OPERATIONS_TOLERANCE = 0.01
# fio's client reads header, metadata and lock of an image when it opens it: 28 operations as seen, whatever the load.
OPEN_OPERATIONS = 32
STORAGE_TOLERANCE = 0.001
UNATTRIBUTED_MAX = 0.01


@dataclass
class Cell:
    kind: str
    load: str
    size: str
    fio_bytes: int
    fio_operations: int
    filesystem_bytes: float
    filesystem_operations: float
    hand_bytes: int
    storage_bytes: float
    amplification: float
    expected: float
    excess: float
    unattributed_share: float
    reasons: list
    state: str

    @property
    def reads(self):
        return "read" in self.load

    def row(self):
        return (f"| {self.kind} | {self.load} {self.size} | {self.fio_bytes / 1e6:.1f} | {self.filesystem_bytes / 1e6:.1f} | "
                f"{off(self.filesystem_bytes, self.fio_bytes):+.3%} | {self.fio_operations} | "
                f"{off(self.filesystem_operations, self.fio_operations):+.2%} | {self.hand_bytes / 1e6:.1f} | "
                f"{self.storage_bytes / 1e6:.1f} | {off(self.storage_bytes, self.hand_bytes):+.3%} | "
                f"{self.amplification:.2f} | {self.expected:.2f} | {self.excess:.2f} | "
                f"{self.unattributed_share:+.3%} | {', '.join(self.reasons)} |")


HEADER = ("| pool | load | fio MB | filesystem MB | off | fio ops | off | diskstats MB | storage MB | off | "
          "amplification | expected | excess | unattributed | reasons |\n" + "|---" * 15 + "|\n")


def off(measured, truth):
    return measured / truth - 1 if truth else 0.0


def rung(side, layer):
    return next(one for one in side["rungs"] if one["layer"] == layer)


class Bench:
    """Measures a cell once and keeps it; one calm moment serves two cells."""

    def __init__(self, cluster, images, collector):
        self.cluster, self.images, self.collector = cluster, images, collector
        self.cells = {}
        self.edge = None

    def settle(self):
        """Pool totals are complete two periods after the load, and one row later all agree on it."""
        time.sleep(2 * MGR_STATS_PERIOD + SOURCE_INTERVAL)
        self.edge = self.cluster.quiet_edge()
        time.sleep(SOURCE_INTERVAL)

    def measure(self, kind, load, size):
        if self.edge is None:
            self.settle()
        before, disk_before = self.edge
        fio_bytes, fio_operations = self.images[kind].load(load, size, LOAD_SECONDS)
        self.settle()
        after, disk_after = self.edge
        self.collector.wait_until_stored(after)
        ladder = self.collector.get("/ladder", from_=f"{before:.6f}", to=f"{after:.6f}", cluster=self.cluster.fsid())
        direction = 0 if "read" in load else 1
        side = ladder["read" if direction == 0 else "write"]
        filesystem = rung(side, "filesystem")
        cell = Cell(kind, load, size, fio_bytes, fio_operations, filesystem["bytes"], filesystem["ops"],
                    disk_after[direction] - disk_before[direction], rung(side, "storage")["bytes"],
                    side["amplification"], side["expected"], side["excess"] or 0.0, side["unattributed"]["share"] or 0.0,
                    [reason["part"] for reason in side["reasons"]], side["state"])
        self.cells[(kind, load, size)] = cell
        self.write()
        return cell

    def write(self):
        os.makedirs(ARTEFACTS, exist_ok=True)
        cells = list(self.cells.values())
        with open(os.path.join(ARTEFACTS, "accuracy.json"), "w", encoding="utf-8") as file:
            json.dump([asdict(cell) for cell in cells], file, indent=1)
        with open(os.path.join(ARTEFACTS, "accuracy.md"), "w", encoding="utf-8") as file:
            file.write(HEADER + "".join(cell.row() + "\n" for cell in cells))


@pytest.fixture(scope="module")
def bench(cluster, images, system):
    return Bench(cluster, images, system[0])


@pytest.fixture(scope="module", params=[(kind, *load) for kind in KINDS for load in LOADS],
                ids=lambda param: "-".join(param).replace(":", ""))
def cell(bench, request):
    return bench.measure(*request.param)


@pytest.fixture(scope="module")
def measured(bench):
    """A cell by its name; measured now when the run is of single tests."""
    def get(*key):
        return bench.cells.get(key) or bench.measure(*key)
    return get


def test_filesystem_bytes_agree_with_fio(cell):
    assert cell.filesystem_bytes == pytest.approx(cell.fio_bytes, rel=FILESYSTEM_TOLERANCE)


def test_filesystem_operations_agree_with_fio(cell):
    beyond = cell.filesystem_operations - cell.fio_operations
    assert -OPERATIONS_TOLERANCE * cell.fio_operations <= beyond
    assert beyond <= OPERATIONS_TOLERANCE * cell.fio_operations + OPEN_OPERATIONS


def test_storage_bytes_equal_a_hand_difference_of_diskstats(cell):
    # A read load that the OSDs' caches answer moves next to nothing: a few KiB of the collector's edges.
    assert cell.storage_bytes == pytest.approx(cell.hand_bytes, rel=STORAGE_TOLERANCE, abs=256 << 10)


def test_expected_is_what_the_redundancy_explains(cell):
    assert cell.expected == pytest.approx(1.0 if cell.reads else KINDS[cell.kind], rel=0.01)


def test_amplification_is_storage_over_filesystem(cell):
    assert cell.amplification == pytest.approx(cell.storage_bytes / cell.filesystem_bytes, rel=1e-6)
    assert cell.state in ("ok", "contaminated")


@pytest.mark.parametrize("load", [("randwrite", "64k"), ("write", "1m")], ids="-".join)
def test_steady_large_writes_leave_at_most_one_per_cent_unattributed(measured, load):
    for kind in KINDS:
        assert abs(measured(kind, *load).unattributed_share) <= UNATTRIBUTED_MAX, kind


@pytest.mark.parametrize("kind", ["replicated:3", "replicated:2"])
def test_small_random_writes_on_rotational_devices_are_written_twice_and_deferral_is_named(measured, kind):
    small = measured(kind, "randwrite", "16k")
    assert 1.8 <= small.excess <= 2.6
    assert small.reasons[0] == "deferred"


def test_64k_random_writes_on_three_copies_show_almost_no_excess(measured):
    large = measured("replicated:3", "randwrite", "64k")
    assert 1.0 <= large.excess < 1.2
    assert large.reasons == []
