"""The real agent against a collector that misbehaves in every way, then is good: nothing is lost, nothing
acknowledged is sent again, and a block that is refused for good does not hold up the others."""
import http.server
import json
import os
import re
import resource
import signal
import struct
import subprocess
import threading
import time

import pytest

from system import BLOCK_ROWS, SOURCES, Agent, wait_for

INTERVAL = 0.1
INTERVAL_US = 100_000
AGENT_ID = "6f7c3f52-5a0e-4bb6-9d5a-0d9d1a2f7c11"


def split_blocks(body):
    """[(source, sequence, rows, is_gap, bytes)] by the fixed header of docs/block.md."""
    blocks, at = [], 0
    while at < len(body):
        flags, size = struct.unpack_from("<HI", body, at + 6)
        source, _, rows = struct.unpack_from("<HHI", body, at + 64)
        (sequence,) = struct.unpack_from("<Q", body, at + 80)
        blocks.append((SOURCES[source], sequence, rows, bool(flags & 1), body[at:at + size]))
        at += size
    assert at == len(body)
    return blocks


class FakeCollector:
    """Answers as `misbehave(blocks)` says, (status, headers, body) or "hang"; None: stores them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.misbehave = lambda blocks: None
        self.plan = None
        self.seen, self.facts, self.headers = 0, [], {}
        self.stored, self.repeats = {}, 0
        self.hang = threading.Event()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def body(self):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def answer(self, status, headers=(), body=b""):
                self.send_response(status)
                for name, value in dict(headers).items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_PUT(self):
                with fake.lock:
                    fake.facts.append((self.path, json.loads(self.body())))
                self.answer(204)

            def do_GET(self):
                with fake.lock:
                    plan = fake.plan
                self.answer(200 if plan else 404, {}, json.dumps(plan or {}).encode())

            def do_POST(self):
                blocks = split_blocks(self.body())
                with fake.lock:
                    fake.seen += 1
                    fake.headers = dict(self.headers)
                    wrong = fake.misbehave(blocks)
                if wrong == "hang":
                    fake.hang.wait(60)
                    self.close_connection = True
                    return
                self.answer(*(wrong or fake.store(blocks, self.headers)))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def store(self, blocks, headers):
        with self.lock:
            new = 0
            for source, sequence, rows, gap, data in blocks:
                known = self.stored.get((source, sequence))
                assert known is None or known[2] == data, "a block of a known name with other content"
                self.repeats += known is not None
                new += known is None
                self.stored[(source, sequence)] = (rows, gap, data)
            answer = {"accepted": new, "duplicates": len(blocks) - new}
            if self.plan and str(self.plan["revision"]) != headers["Strata-Plan-Revision"]:
                answer["plan"] = self.plan
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

    def rows(self, source="diskstats"):
        with self.lock:
            return sum(rows for (name, _), (rows, gap, _) in self.stored.items() if name == source and not gap)

    def close(self):
        self.hang.set()
        self.server.shutdown()
        self.server.server_close()


def plan_of(revision, **sources):
    """Only these sources run."""
    off = {name: {"enabled": False} for name in SOURCES.values()}
    return {"revision": revision, "sources": {**off, **{name: {"enabled": True, **keys} for name, keys in
                                                        sources.items()}}}


def write_plan(folder, plan):
    """What the agent remembers from a run before."""
    with open(folder / "state" / "plan.json", "w", encoding="utf-8") as file:
        json.dump({"plan": plan, "taken": {}}, file)


@pytest.fixture
def fake():
    collector = FakeCollector()
    yield collector
    collector.close()


@pytest.fixture
def agent(fake, tmp_path):
    """Samples diskstats ten times a second, by a plan it remembers."""
    made = Agent(tmp_path, fake.url, sections={"agent": {"host_id": AGENT_ID, "seal_interval": "200ms"}})
    write_plan(tmp_path, plan_of(1, diskstats={"interval": "100ms"}))
    yield made
    if made.is_alive():
        made.kill()


def ticks_of(fake):
    """The sampled ticks (whole intervals since the epoch) by the blocks' own first and last time."""
    ticks = []
    with fake.lock:
        for rows, gap, data in fake.stored.values():
            if not gap:
                first, last = struct.unpack_from("<qq", data, 96)
                # A read is later than its tick, by less than an interval.
                ticks.append((first // INTERVAL_US, last // INTERVAL_US, rows))
    return sorted(ticks)


def assert_unbroken(fake, agent):
    """Every row that was sampled is stored or waits, by the agent's last words; none is there twice."""
    sampled, waiting = map(int, re.search(r"ends: (\d+) rows sampled, (\d+) rows wait", agent.log_text()).groups())
    ticks = ticks_of(fake)
    stored = sum(rows for _, _, rows in ticks)
    # The agent may have ended before it heard the last answer.
    assert sampled - waiting <= stored <= sampled, (sampled, waiting, ticks)
    for (_, last, _), (first, _, _) in zip(ticks, ticks[1:]):
        assert first > last, ticks


def problem(status, **extra):
    return status, {"Content-Type": "application/problem+json"}, json.dumps(
        {"type": "about:blank", "title": "no", "status": status, "detail": "made up for a test", **extra}).encode()


TROUBLES = {
    "garbage": (200, {}, b"<html>please log in</html>"),
    "empty_answer": (200, {}, b""),
    "counts_that_do_not_add_up": (200, {}, b'{"accepted":0,"duplicates":0}'),
    "endless_answer": (200, {}, b"x" * (1 << 20)),
    "no_token": problem(401),
    "forbidden": problem(403),
    "too_large_for_a_proxy": (413, {}, b"<html>Request Entity Too Large</html>"),
    "bad_without_a_block": problem(400),
    "bad_block_that_was_not_sent": problem(400, block=100000),
    "too_many_requests": (429, {"Retry-After": "1"}, b""),
    "server_error": problem(500),
    "busy": (503, {"Retry-After": "1"}, b""),
    "redirect": (302, {"Location": "http://127.0.0.1:1/"}, b""),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_nothing_is_lost_when_the_collector_answers_with(trouble, fake, agent):
    fake.misbehave = lambda blocks: TROUBLES[trouble]
    agent.start()
    wait_for(lambda: fake.seen >= 1, "a refused upload")
    assert not fake.stored
    fake.misbehave = lambda blocks: None
    wait_for(lambda: fake.rows() >= 15, "rows once the collector is good", seconds=70)
    assert agent.stop() == 0
    assert_unbroken(fake, agent)
    assert fake.repeats == 0
    lines = [line for line in agent.log_text().splitlines() if "collector: " in line and "samples" in line]
    assert len(lines) == 2, f"one line when it begins and one when it ends, not: {lines}"
    assert "warning" in lines[0] and "takes the samples again" in lines[1]


def count_of(fake, name):
    """The largest value of one of the agent's own counters that is stored."""
    with fake.lock:
        blocks = b"".join(data for (source, _), (_, gap, data) in fake.stored.items() if source == "agent" and not gap)
    done = subprocess.run([BLOCK_ROWS, name], input=blocks, capture_output=True, check=True)
    return max(int(line.split()[6]) for line in done.stdout.decode().splitlines())


def test_failures_are_counted_each_once(fake, agent, tmp_path):
    write_plan(tmp_path, plan_of(1, agent={"interval": "100ms"}))
    refused = []
    fake.misbehave = lambda blocks: refused.append(time.time()) or problem(500)
    agent.start()
    wait_for(lambda: len(refused) >= 3, "refused uploads", seconds=70)
    fake.misbehave = lambda blocks: None
    wait_for(lambda: fake.rows("agent") >= 60, "rows once the collector is good", seconds=70)
    assert agent.stop() == 0
    assert count_of(fake, "upload_failures") == len(refused)
    assert count_of(fake, "dropped_rows") == 0


def test_the_newest_come_first_after_an_outage_and_live_samples_are_not_held_up(fake, agent, tmp_path):
    # Blocks of its own source are of the same size on every machine. Six rows are a batch at this rate, and sixty wait at least.
    rate = 750
    write_plan(tmp_path, plan_of(1, agent={"interval": "100ms"}))
    agent.sections["collector"]["backfill_rate"] = str(rate)
    agent.configure(agent.sections)
    accepted = []

    def keep(blocks):
        moment = time.time()
        lasts = [struct.unpack_from("<q", data, 104)[0] / 1e6 for *_, data in blocks]
        accepted.append((moment, min(lasts), max(lasts), sum(len(data) for *_, data in blocks)))

    fake.misbehave = lambda blocks: problem(503)
    agent.start()
    time.sleep(6)
    fake.misbehave = keep
    wait_for(lambda: accepted, "an upload", seconds=70)
    begin = accepted[0][0]
    # Sealed each 200 ms; the rest is for a busy machine.
    assert begin - accepted[0][2] < 1.5, "the first answer is for the newest samples"
    wait_for(lambda: int(fake.headers["Strata-Backlog"]) < 8, "the end of the backlog", seconds=120)
    end = accepted[-1][0]
    live = [moment for moment, _, last, _ in accepted if moment - last < 1.5]
    assert max(after - before for before, after in zip(live, live[1:])) < 2.0, "live samples wait for the backlog"
    old = [(moment, size) for moment, first, _, size in accepted if first < begin - 1.5]
    assert len(old) >= 5, "there was no backlog to speak of"
    # Each batch is followed by the pause that its size is worth.
    assert sum(size for _, size in old[:-1]) <= rate * (end - begin) * 1.1 + rate
    assert agent.stop() == 0
    assert_unbroken(fake, agent)
    assert fake.repeats == 0


def test_waits_as_long_as_the_collector_asks(fake, agent):
    times = []
    fake.misbehave = lambda blocks: times.append(time.monotonic()) or (503, {"Retry-After": "2"}, b"")
    agent.start()
    wait_for(lambda: len(times) >= 2, "a second try")
    assert times[1] - times[0] >= 2.0


def test_samples_on_while_the_collector_never_answers_and_ends_within_a_second(fake, agent):
    fake.misbehave = lambda blocks: "hang"
    agent.start()
    wait_for(lambda: fake.seen >= 1, "an upload")
    time.sleep(3)
    began = time.monotonic()
    assert agent.stop() == 0
    assert time.monotonic() - began < 2.0  # one second, and a sanitizer's own end
    fake.misbehave = lambda blocks: None
    fake.hang.set()
    agent.start()
    wait_for(lambda: fake.rows() >= 35, "the rows of both runs")
    assert agent.stop() == 0
    first_run = [entry for entry in ticks_of(fake) if entry[1] * INTERVAL < time.time() - 1.0]
    assert sum(entry[2] for entry in first_run) >= 15


@pytest.mark.parametrize("status", [400, 409, 413, 415])
def test_a_block_refused_for_good_is_put_aside_and_the_others_go_on(status, fake, agent, tmp_path):
    refused = []

    def refuse_the_third(blocks):
        for index, (_, sequence, _, gap, _) in enumerate(blocks):
            if not refused and len(fake.stored) + index >= 2:
                refused.append(sequence)
            if sequence in refused and not gap:
                return problem(status, block=index, sequence=sequence)
        return None

    fake.misbehave = refuse_the_third
    agent.start()
    wait_for(lambda: len(fake.stored) >= 6, "blocks after the refused one")
    wait_for(lambda: status == 409 or ("diskstats", refused[0]) in fake.stored, "the gap of the refused block")
    assert agent.stop() == 0
    assert os.listdir(tmp_path / "state" / "spool" / "rejected") == [f"diskstats-{refused[0]}.block"]
    assert agent.log_text().count("for good") == 1
    if status == 409:  # it is stored under that name already
        assert ("diskstats", refused[0]) not in fake.stored
    else:
        assert fake.stored[("diskstats", refused[0])][1], "a gap stands for it"


def test_many_blocks_go_in_one_body_once_the_collector_is_back(fake, agent):
    sizes = []
    fake.misbehave = lambda blocks: problem(500)
    agent.start()
    time.sleep(6)
    fake.misbehave = lambda blocks: sizes.append(len(blocks))
    wait_for(lambda: sizes, "an upload", seconds=70)
    assert sizes[0] >= 4


def test_facts_come_at_start_and_again_after_the_collector_was_away(fake, agent):
    agent.start()
    wait_for(lambda: fake.facts, "facts")
    path, facts = fake.facts[0]
    assert path == f"/api/v1/facts/{AGENT_ID}"
    assert facts["host_id"] == AGENT_ID and facts["devices"] and facts["hostname"]
    wait_for(lambda: len(fake.stored) >= 2, "blocks")
    assert len(fake.facts) == 1, "unchanged facts are sent once"
    fake.misbehave = lambda blocks: problem(500)
    wait_for(lambda: "status 500" in agent.log_text(), "the trouble")
    fake.misbehave = lambda blocks: None
    wait_for(lambda: len(fake.facts) == 2, "facts again", seconds=70)


def test_tells_who_it_is(fake, agent):
    agent.start()
    wait_for(lambda: fake.stored, "blocks")
    headers = {name.lower(): value for name, value in fake.headers.items()}
    assert headers["strata-host"] == AGENT_ID
    assert headers["strata-sources"] == "diskstats,osd,host,agent,osd_histogram"
    assert headers["strata-plan-revision"] == "1"
    assert abs(int(headers["strata-sent-at"]) / 1e6 - time.time()) < 60
    assert int(headers["strata-backlog"]) >= 1
    assert headers["content-type"] == "application/vnd.strata.blocks"


def test_a_plan_is_applied_at_once_remembered_and_ends_at_its_count(fake, agent):
    agent.start()
    wait_for(lambda: fake.stored, "blocks")
    fake.plan = plan_of(2, diskstats={"interval": "100ms", "count": 25, "metrics": ["read_ops", "write_ops"]})
    wait_for(lambda: "all 25 samples" in agent.log_text(), "the end of the plan")
    assert agent.stop() == 0
    before = fake.rows()
    agent.start()
    time.sleep(2.5)
    assert agent.stop() == 0
    agent.start()
    wait_for(lambda: fake.headers.get("Strata-Plan-Revision") == "2", "the plan in force after a restart")
    fake.plan = plan_of(3, agent={"interval": "100ms"})
    wait_for(lambda: fake.rows("agent") >= 10, "the agent's own rows", seconds=45)
    assert agent.stop() == 0
    assert fake.rows() - before <= 25
    # The first plan's rows, then exactly the count; ticks go on where the first plan's ended.
    counted = [data for rows, gap, data in fake.stored.values() if struct.unpack_from("<I", data, 116)[0] > 0]
    assert counted
    assert_second_plan_rows(fake)


def assert_second_plan_rows(fake):
    """Blocks of the smaller shape: all together 25 rows, next to the rows before without a lost tick."""
    shapes = {}
    for (source, _), (rows, gap, data) in fake.stored.items():
        if source == "diskstats" and not gap:
            (columns,) = struct.unpack_from("<I", data, 116)
            first, last = struct.unpack_from("<qq", data, 96)
            shapes.setdefault(columns, []).append((first, last, rows))
    assert len(shapes) == 2, shapes
    small, large = shapes[min(shapes)], shapes[max(shapes)]
    assert sum(rows for _, _, rows in small) == 25
    step = (min(first for first, _, _ in small) - max(last for _, last, _ in large)) / 1e6
    # To the tick it is a unit test; here a busy machine may be late.
    assert step < 5 * INTERVAL, f"{step} s between the two plans"


def test_a_killed_agent_loses_no_row_and_sends_none_twice(fake, agent):
    # Some kills find sealed blocks, all find open ones.
    agent.sections["agent"]["seal_interval"] = "1s"
    agent.configure(agent.sections)
    fake.misbehave = lambda blocks: problem(503)
    for _ in range(4):
        agent.start()
        time.sleep(1.7)
        agent.kill(signal.SIGKILL)
    fake.misbehave = lambda blocks: None
    agent.start()
    wait_for(lambda: fake.rows() >= 40, "rows of all runs", seconds=70)
    time.sleep(2)
    assert agent.stop() == 0
    assert "recovered" in agent.log_text()
    ticks = ticks_of(fake)
    for (_, last, _), (first, _, _) in zip(ticks, ticks[1:]):
        assert first > last, "no row twice"
    for first, last, rows in ticks:
        assert rows <= last - first + 1, "no row twice within a block"


def test_a_second_agent_on_the_same_state_folder_says_so(fake, agent):
    agent.start()
    wait_for(lambda: fake.stored, "blocks")
    done = agent.run()
    assert done.returncode == 1
    assert "another strata-agentd uses this state folder" in done.stderr


def test_a_collector_that_cannot_be_reached_is_told_once(agent):
    agent.sections["collector"]["url"] = "http://127.0.0.1:1"
    agent.configure(agent.sections)
    agent.start()
    time.sleep(4)
    assert agent.stop() == 0
    assert agent.log_text().count("samples: no answer") == 1, agent.log_text()


@pytest.mark.parametrize("line,words", [
    ("seal_interval = soon", "agentd.conf:2"),
    ("host_id = me", "host_id 'me' is not a UUID"),
    ("colour = red", "unknown key 'colour'"),
    ("log_level = loud", "log_level 'loud'"),
    ("spool_bytes = 1K", "agentd.conf:2"),
    ("spool_age = long", "agentd.conf:2"),
])
def test_a_broken_configuration_line_is_named(line, words, agent):
    with open(agent.conf, "w", encoding="utf-8") as file:
        file.write(f"[agent]\n{line}\n")
    done = agent.run("--check")
    assert done.returncode == 1
    assert words in done.stderr, done.stderr


def test_check_and_version_and_once(agent):
    assert agent.run("--check").stdout == "configuration OK\n"
    assert agent.run("--version").stdout.startswith("strata-agentd ")
    done = agent.run("--once")
    samples = json.loads(done.stdout)
    assert samples["diskstats"]["units"]["read_sectors"] == "sectors"
    assert samples["diskstats"]["entities"] and samples["agent"]["entities"][0]["rss"] > 0
    assert done.returncode == 0, done.stderr


def test_goes_on_in_memory_when_the_state_folder_cannot_be_used(fake, agent):
    agent.sections["agent"]["state_folder"] = "/proc/strata"
    agent.configure(agent.sections)
    fake.plan = plan_of(1, diskstats={"interval": "100ms"})
    agent.start()
    wait_for(lambda: fake.rows() >= 10, "rows")
    assert agent.stop() == 0
    assert "no state folder" in agent.log_text()


def test_a_full_disk_costs_no_row_and_no_crash(fake, agent):
    # A limit on file size gives write errors as a full disk does.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    fake.misbehave = lambda blocks: problem(503)
    agent.start()
    wait_for(lambda: fake.seen, "an upload")
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (2000, limits[1]))
    wait_for(lambda: "kept in memory" in agent.log_text(), "the spool's trouble")
    time.sleep(3)
    fake.misbehave = lambda blocks: None
    wait_for(lambda: fake.rows() >= 30, "rows", seconds=70)
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, limits)
    wait_for(lambda: "takes blocks again" in agent.log_text(), "the spool's recovery")
    assert agent.stop() == 0
    assert_unbroken(fake, agent)
