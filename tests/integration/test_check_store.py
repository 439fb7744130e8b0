"""strata-collectord --check-store tells by its exit code and its lines whether a store is whole."""
import os

from system import Collector, check_store


def test_says_by_its_exit_code_whether_the_store_is_whole(tmp_path):
    collector = Collector(tmp_path).start()
    done = check_store(collector, collector.store)
    assert (done.returncode, done.stderr) == (0, "")
    assert collector.stop() == 0

    done = check_store(collector, collector.store)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 files, 0 blocks, 0 rows, 0 bytes of blocks: 0 damaged, 0 files unreadable")

    os.mkdir(os.path.join(collector.store, "raw-20261130.db"))
    done = check_store(collector, collector.store)
    assert done.returncode == 2
    assert "raw-20261130.db: is no file\n" in done.stdout and "0 damaged, 1 files unreadable" in done.stdout

    # Damage is said rather than what could not be read.
    path = os.path.join(collector.store, "strata.db")
    os.truncate(path, os.path.getsize(path) - 4096)
    done = check_store(collector, collector.store)
    assert done.returncode == 1
    assert "strata.db: is cut: " in done.stdout and "1 damaged, 1 files unreadable" in done.stdout


def test_says_when_there_is_no_store_or_no_configuration(tmp_path):
    collector = Collector(tmp_path)
    assert check_store(collector, str(tmp_path / "nothing")).returncode == 2
    assert collector.run("--config=/nonexistent", "--check-store").returncode == 2
