"""A store, asked in SQL by the stock sqlite3 shell; the examples of docs/sql.md among the questions."""
import json
import os
import re
import subprocess

import pytest

from system import BUILD, TOP, Collector

LOAD = os.path.join(BUILD, "tests", "load", "load-agents")
TRACE = os.path.join(TOP, "tests", "fixtures", "diskstats-1s.txt.gz")
MODULE = os.path.join(BUILD, "collectord", "strata-sqlite")
AGENTS, DEVICES, SECONDS = 3, 2, 26
SOURCES = {1: "diskstats", 2: "osd", 4: "host", 5: "agent"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """(folder, what was acknowledged) of some seconds of three hosts; the collector runs on."""
    folder = tmp_path_factory.mktemp("sql")
    collector = Collector(folder).start()
    with subprocess.Popen(["zcat", TRACE], stdout=subprocess.PIPE) as trace:
        done = subprocess.run([LOAD, f"--port={collector.port}", f"--agents={AGENTS}", f"--devices={DEVICES}", "--interval=1s",
                               f"--seconds={SECONDS}", "--facts", f"--list={folder}/acknowledged"], stdin=trace.stdout, check=True,
                              capture_output=True, text=True, timeout=120)
    yield collector, json.loads(done.stdout), (folder / "acknowledged").read_text().splitlines()
    assert collector.stop() == 0, collector.log_text()[-2000:]


def preload():
    """The sanitizer that the extension was built with has to come first in a program that was not."""
    libraries = subprocess.run(["ldd", MODULE + ".so"], capture_output=True, text=True, check=True).stdout
    return " ".join(line.split()[2] for line in libraries.splitlines() if "libasan" in line or "libubsan" in line)


def shell(folder, text):
    environment = {**os.environ, "STRATA_STORE": str(folder), "LD_PRELOAD": preload(), "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(["sqlite3", "-batch", "-json"], input=f".load {MODULE}\n{text}\n", capture_output=True, text=True,
                          env=environment, timeout=120, check=False)


def sqlite(folder, text):
    """The rows, as the shell prints them in JSON."""
    done = shell(folder, text)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout) if done.stdout else []


def refusal(folder, text):
    done = shell(folder, text)
    assert done.stderr, done.stdout
    return done.stderr


def test_every_acknowledged_value_is_there_once_at_its_time(store):
    collector, report, lines = store
    (count,) = sqlite(collector.store, "SELECT count(*) AS n, count(DISTINCT printf('%.6f %s %s %s', time, host, entity, metric)) AS d "
                                       "FROM samples;")
    assert count == {"n": report["values"], "d": report["values"]}
    times = sorted(int(moment) for line in lines if line.split()[2] == "1" for moment in line.split()[4:])
    rows = sqlite(collector.store, "SELECT CAST(round(time * 1e6) AS INTEGER) AS t FROM samples WHERE metric = 'write_ops' "
                                   "AND entity = 'sda' OR metric = 'write_ops' AND entity = 'sdaa' ORDER BY time;")
    assert [row["t"] for row in rows] == times


@pytest.mark.parametrize("condition", ["host = 'node1'", "entity = 'osd.1'", "metric = 'write_ops'", "layer = 'objectstore'",
                                       "time > {middle}", "time >= {middle}", "time < {middle}", "time <= {middle}", "time = {some}",
                                       "host = 'node2' AND layer = 'storage' AND metric = 'write_ops' AND time > {middle}",
                                       "host = 'nobody'", "host IN ('node0', 'node2')", "metric = NULL"])
def test_what_is_looked_up_is_what_looking_through_finds(store, condition):
    collector = store[0]
    (moment,) = sqlite(collector.store, "SELECT (min(time) + max(time)) / 2 AS middle, max(time) AS some FROM samples;")
    condition = condition.format(**{name: repr(value) for name, value in moment.items()})
    # A plus before a column hides it from the index; a copy of all rows has none.
    columns = "time, cluster, host, layer, entity, metric, value"
    hidden = re.sub(r"\b(host|entity|metric|layer|time) (=|>|<|IN)", r"+\1 \2", condition)
    found = sqlite(collector.store, f"SELECT {columns} FROM samples WHERE {condition} ORDER BY 1, 3, 5, 6;")
    assert found == sqlite(collector.store, f"SELECT {columns} FROM samples WHERE {hidden} ORDER BY 1, 3, 5, 6;")
    assert bool(found) == ("nobody" not in condition and "NULL" not in condition)


def test_a_lookup_reads_less_than_a_look_through(store):
    plan = shell(store[0].store, "EXPLAIN QUERY PLAN SELECT * FROM samples WHERE host = 'node1' AND time > 5 AND metric = 'x';").stdout
    (number,) = re.findall(r"VIRTUAL TABLE INDEX (\d+)", plan)
    assert bin(int(number)).count("1") == 3, plan


def test_the_ratio_is_the_api_s(store):
    collector = store[0]
    newest = sqlite(collector.store, "SELECT max(time) AS t FROM samples WHERE layer = 'osd';")[0]["t"]
    begin, end = int(newest) - 20, int(newest) - 4
    curves = collector.get("/ratio", upper="osd", lower="storage", by="host", step="2s", from_=begin, to=end,
                           cluster="0b0e8d54-0000-4000-8000-000000000001")["series"]
    rows = sqlite(collector.store, "SELECT key, time, lower, amplification, state FROM ratio WHERE upper_layer = 'osd' AND \"by\" = 'host' "
                                   f"AND step = '2s' AND time >= {begin} AND time < {end};")
    expected = [(curve["key"], *point) for curve in curves for point in zip(curve["t"], curve["lower"], curve["amplification"],
                                                                          curve["state"])]
    assert len(expected) == AGENTS * 8
    assert [tuple(row.values()) for row in rows] == expected


def test_refusals_say_why(store):
    assert "upper must be one of" in refusal(store[0].store, "SELECT * FROM ratio WHERE upper_layer = 'sky';")
    assert "/nonexistent" in refusal(store[0].store, "SELECT * FROM samples('/nonexistent');")
    assert "may not be modified" in refusal(store[0].store, "DELETE FROM samples;")


def examples():
    with open(os.path.join(TOP, "docs", "sql.md"), encoding="utf-8") as file:
        return re.findall(r"```sql\n(.*?)```", file.read(), re.S)


@pytest.mark.parametrize("example", examples(), ids=["disks", "amplification"])
def test_the_examples_of_the_documentation_give_rows(store, example):
    rows = sqlite(store[0].store, example)
    # All simulated hosts say that their OSDs are those of the first one.
    assert rows and all(value is not None for value in rows[0].values()), rows
