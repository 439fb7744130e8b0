"""SIGKILL at random moments of the two real programs: every row that was sampled is stored exactly once.

What was sampled is known from a witness that neither program knows of. The agent reads a made-up /proc, whose diskstats
and stat have a counter that the test raises every 20 ms. The kernel tells the test (inotify) of each read, in its
order among the test's own writes; so of each read the test knows the counter's value, to within one step. At an interval
of 100 ms no two reads have the same. Then:

  * each read that the kernel saw has its row in the store. One may lack it: the last of a life whose kill came while the
    agent was still at work on it, which is when not all of its threads slept just before the kill;
  * each row in the store has its read: none is made up, none is of another moment;
  * no two rows of a source have the same time or the same value: none is there twice, under whatever name;
  * the agent's own rows, which read no file, stand at the same ticks.

STRATA_KILLS says how many lives the agent has (60), STRATA_SEED repeats a run's moments.
"""
import contextlib
import ctypes
import os
import random
import shutil
import signal
import sqlite3
import struct
import threading
import time

import pytest

from conftest import keep_logs
from system import TOP, Agent, Collector, wait_for

KILLS = int(os.environ.get("STRATA_KILLS", "60"))
SEED = int(os.environ.get("STRATA_SEED", "0")) or int(time.time() * 1000)
INTERVAL_US = 100_000
STEP = 0.02
BASE = 1_000_000_000
LIFE = (0.05, 0.55)
# Of the lives that are ended, so many right upon a read, where the agent is at work.
UPON_A_READ = 0.5
IN_ACCESS, IN_MODIFY, IN_ATTRIB = 1, 2, 4
TEXTS = {
    "diskstats": ("proc/diskstats", "   8       0 sda 5 0 40 5 {} 0 80 9 0 9 14 0 0 0 0 0 0\n", "write_ops"),
    "host": ("proc/stat", "cpu  {0} 0 7 9 0 0 0 0 0 0\ncpu0 {0} 0 7 9 0 0 0 0 0 0\n", "cpu_user"),
}


class Witness:
    """A file with a counter, and what the kernel tells of it: [the counter's value at each read]."""

    def __init__(self, root, name, text):
        self.path, self.text, self.step = os.path.join(root, name), text, 0
        with open(self.path, "w", encoding="ascii") as file:
            file.write(text.format(BASE))
        self.file = os.open(self.path, os.O_WRONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        self.inotify = libc.inotify_init1(os.O_CLOEXEC)
        assert libc.inotify_add_watch(self.inotify, self.path.encode(), IN_ACCESS | IN_MODIFY | IN_ATTRIB) >= 0
        self.seen, self.reads = 0, []
        self.read_now = threading.Event()
        threading.Thread(target=self.listen, daemon=True).start()

    def advance(self):
        """A step is a write and a change of time, so that the kernel never takes two events for one."""
        self.step += 1
        os.pwrite(self.file, self.text.format(BASE + self.step).encode(), 0)
        os.utime(self.file)

    def listen(self):
        while True:
            data = os.read(self.inotify, 65536)
            for at in range(0, len(data), 16):
                _, mask, _, length = struct.unpack_from("iIII", data, at)
                assert length == 0 and not mask & 0x4000, "the queue of the kernel was too short"
                if mask & IN_MODIFY:
                    self.seen += 1
                elif mask & IN_ACCESS:
                    self.reads.append(self.seen)
                    self.read_now.set()


class Clock:
    """Raises the counters of all witnesses."""

    def __init__(self, witnesses):
        self.witnesses, self.stopping = witnesses, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping:
            for witness in self.witnesses:
                witness.advance()
            time.sleep(STEP)

    def stop(self):
        self.stopping = True
        self.thread.join()


class Restless(threading.Thread):
    """A collector that goes up and down at random, mostly by SIGKILL."""

    def __init__(self, collector, chance):
        super().__init__(daemon=True)
        self.collector, self.random, self.stopping, self.kills = collector, chance, threading.Event(), 0

    def run(self):
        while not self.stopping.wait(self.random.uniform(0.3, 3.0)):
            if not self.collector.is_alive():
                self.collector.start()
            elif self.random.random() < 0.8:
                self.kills += 1
                self.collector.kill()
            else:
                self.collector.stop()
        # It would die with this thread.
        if self.collector.is_alive():
            self.collector.kill()

    def end(self):
        self.stopping.set()
        self.join()


class Stored:
    """The rows of the store's file: {source: [(time, value)]}."""

    def __init__(self, collector, metric):
        with contextlib.closing(sqlite3.connect(f"file:{collector.database()}?mode=ro", uri=True)) as database:
            self.gaps = database.execute("SELECT count(*) FROM gap").fetchone()[0]
        self.rows = {}
        for (_, source), rows in collector.rows(metric).items():
            self.rows.setdefault(source, []).extend((row.time_us, row.missed) for row in rows)
        for rows in self.rows.values():
            rows.sort()


def sleeps(pid):
    """Whether all threads of the process wait for something: nothing it began is unfinished."""
    states = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as file:
            states.append(file.read().rpartition(")")[2].split()[0])
    return set(states) == {"S"}


def near(step, steps):
    """A value is right to within one step: the kernel tells of a read after it."""
    return not steps.isdisjoint((step - 1, step, step + 1))


def match(reads, values):
    """(reads without a row, rows without a read). Of two reads in a moment the second is the sample: a source that meets
    new lines reads again."""
    samples = [step for step, after in zip(reads, [*reads[1:], reads[-1] + 10]) if after - step > 1]
    return ([step for step in samples if not near(step, set(values))],
            [value for value in values if not near(value, set(reads))])


class Run:
    """What happened."""

    def __init__(self, folder):
        chance = random.Random(SEED)
        self.root = os.path.join(str(folder), "root")
        shutil.copytree(os.path.join(TOP, "tests", "fixtures", "node"), self.root, symlinks=True)
        self.witnesses = {source: Witness(self.root, path, text) for source, (path, text, _) in TEXTS.items()}
        self.clock = Clock(list(self.witnesses.values()))
        self.collector = Collector(folder)
        self.collector.start()
        self.collector.plan(diskstats="100ms", host="100ms", agent="100ms")
        self.agent = Agent(folder, self.collector.url, sections={
            "agent": {"seal_interval": "100ms", "root": self.root, "log_level": "info"},
            "osd": {"folders": self.root}})
        self.agent.start()
        wait_for(lambda: "is in force" in self.agent.log_text(), "the plan")
        # Of each source, the reads after which the agent was at work until its kill.
        self.at_work = {source: set() for source in TEXTS}
        self.asleep = 0
        self.end_life()
        restless = Restless(self.collector, random.Random(SEED + 1))
        restless.start()
        for _ in range(KILLS - 1):
            self.live(chance)
        restless.end()
        self.collector_kills = restless.kills
        self.finish()

    def end_life(self):
        assert self.agent.is_alive(), self.agent.log_text()[-2000:]
        # Heard of before the look: these are over if the agent sleeps then.
        heard = {source: len(witness.reads) for source, witness in self.witnesses.items()}
        asleep = sleeps(self.agent.process.pid)
        self.agent.kill(signal.SIGKILL)
        self.asleep += asleep
        time.sleep(0.005)  # for the threads that hear of the last reads
        for source, witness in self.witnesses.items():
            if not asleep or len(witness.reads) > heard[source]:
                self.at_work[source].update(witness.reads[-1:])

    def live(self, chance):
        self.agent.start()
        time.sleep(chance.uniform(*LIFE))
        if chance.random() < UPON_A_READ:
            witness = self.witnesses[chance.choice(list(TEXTS))]
            witness.read_now.clear()
            witness.read_now.wait(1.0)
            time.sleep(chance.uniform(0.0, 0.002))
        self.end_life()

    def finish(self):
        """The last life has time to bring everything to the collector and ends well."""
        self.collector.start()
        self.agent.start()
        wait_for(lambda: self.collector.get("/agents")["agents"][0]["backlog_rows"] < 50, "the end of the backlog",
                 seconds=120)
        time.sleep(1.0)
        assert self.agent.stop() == 0
        # What the agent sealed at its very end waits in the spool for its next life.
        self.clock.stop()
        self.agent.start()
        time.sleep(2.0)
        assert self.agent.stop() == 0
        assert self.collector.stop() == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kill")
    print(f"seed {SEED}")
    made = Run(folder)
    try:
        yield made
    finally:
        keep_logs("test_kill", made.agent, made.collector)


@pytest.mark.parametrize("source", TEXTS)
def test_every_read_has_its_row_and_every_row_its_read(run, source):
    stored = Stored(run.collector, TEXTS[source][2])
    # After the clock has stopped all reads are of the same step.
    last = run.witnesses[source].step
    values = [value - BASE for _, value in stored.rows[source] if value - BASE < last]
    reads = [step for step in run.witnesses[source].reads if step < last - 1]
    assert len(reads) > KILLS, "too few reads: nothing is tested"
    missing, made_up = match(reads, values)
    made_up = [value for value in made_up if value < last - 2]
    print(f"{source}: {KILLS} kills of the agent ({run.asleep} asleep), {run.collector_kills} of the collector, {len(reads)} "
          f"reads, {len(values)} rows, {len(missing)} reads cut by a kill")
    assert run.asleep > KILLS / 4, "too few kills of an agent at rest: nothing is tested"
    assert made_up == [], f"rows that nobody read (seed {SEED})"
    assert [step for step in missing if step not in run.at_work[source]] == [], f"rows are lost (seed {SEED})"


@pytest.mark.parametrize("source", [*TEXTS, "agent"])
def test_no_row_is_there_twice(run, source):
    rows = Stored(run.collector, "ticks").rows[source]
    times = [time_us for time_us, _ in rows]
    assert len(times) == len(set(times))
    ticks = [time_us // INTERVAL_US for time_us in times]
    # A life may begin within the tick in which another ended.
    assert len(ticks) - len(set(ticks)) <= KILLS + 3


def test_the_agents_own_rows_stand_at_the_same_ticks(run):
    stored = Stored(run.collector, "ticks")
    ticks = {source: {time_us // INTERVAL_US for time_us, _ in rows} for source, rows in stored.rows.items()}
    # Sources go one after the other: a kill may come in between, once a life.
    assert len(ticks["diskstats"] ^ ticks["agent"]) <= KILLS + 3


def test_nothing_was_dropped_for_it(run):
    assert Stored(run.collector, "ticks").gaps == 0
