"""The house's own commands: quickstart and the throwaway node touch only what is theirs."""
import os
import re
import signal
import subprocess

from system import BUILD, NODE, TOP, wait_for

QUICKSTART = os.path.join(TOP, "quickstart")


def run(*command, seconds=120):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds,
                          env={**os.environ, "STRATA_BUILD": BUILD})


def processes_of(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(word.startswith((f"--config={folder}/", f"{folder}/")) for word in words):
            found.append(words)
    return found


def test_quickstart_without_ceph_shows_this_machines_disks_and_leaves_nothing(tmp_path):
    state = tmp_path / "state"
    done = run(QUICKSTART, "--no-ceph", "--duration", "5", "--state", str(state))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"dashboard: http://127\.0\.0\.1:\d+/", done.stdout)
    assert "storage" in done.stdout
    assert not state.exists() and processes_of(state) == []


def test_quickstart_ended_in_the_middle_leaves_nothing(tmp_path):
    state = tmp_path / "state"
    with open(tmp_path / "out", "wb") as out:
        process = subprocess.Popen([QUICKSTART, "--no-ceph", "--state", str(state)], stdout=out, stderr=out,
                                   env={**os.environ, "STRATA_BUILD": BUILD}, start_new_session=True)
        wait_for(lambda: processes_of(state), "a program of quickstart", seconds=60)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 130, (tmp_path / "out").read_text()
    assert not state.exists() and processes_of(state) == []


def test_quickstart_touches_no_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "precious").write_text("keep")
    done = run(QUICKSTART, "--no-ceph", "--duration", "5", "--state", str(tmp_path))
    assert done.returncode == 1 and str(tmp_path) in done.stderr
    run(QUICKSTART, "--down", "--state", str(tmp_path))
    assert (tmp_path / "precious").read_text() == "keep"


def test_quickstart_names_an_option_that_it_does_not_know():
    done = run(QUICKSTART, "--no-cehp")
    assert done.returncode == 1 and "--no-cehp" in done.stderr


def test_the_node_touches_no_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "precious").write_text("keep")
    for command in ("up", "down"):
        done = run(NODE, command, str(tmp_path))
        assert done.returncode == 1 and str(tmp_path) in done.stderr
    assert (tmp_path / "precious").read_text() == "keep"


def test_the_node_is_down_where_there_is_none(tmp_path):
    assert run(NODE, "down", str(tmp_path / "nothing")).returncode == 0
    assert run(NODE, "status", str(tmp_path / "nothing")).returncode == 1
