"""systemd's own tools read the units, users and folders. They run no unit: no systemd is needed as process 1."""
import os
import re
import shutil
import subprocess

import pytest

from system import BUILD, TOP

UNITS = {"strata-agentd": "agentd", "strata-collectord": "collectord"}
EXPOSURE_MAX = 2.0


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"})


def read_unit(name):
    with open(os.path.join(BUILD, "systemd", f"{name}.service"), encoding="utf-8") as file:
        return file.read()


def settings(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


@pytest.fixture
def unit(request, tmp_path):
    """The unit as built, with its program where the build left it."""
    name = request.param
    program = os.path.join(BUILD, UNITS[name], name)
    text, count = re.subn(rf"^ExecStart=\S+/{name} ", f"ExecStart={program} ", read_unit(name), flags=re.M)
    assert count == 1
    path = tmp_path / f"{name}.service"
    path.write_text(text)
    return path


def exposure(path):
    done = run("systemd-analyze", "security", "--offline=yes", "--no-pager", str(path))
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found.group(1)), done.stdout


@pytest.mark.parametrize("unit", UNITS, indirect=True)
def test_the_unit_verifies_without_a_word(unit):
    done = run("systemd-analyze", "verify", "--man=no", str(unit))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", UNITS, indirect=True)
def test_a_misspelt_setting_would_be_noticed(unit):
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSecs="))
    assert "WatchdogSecs" in run("systemd-analyze", "verify", "--man=no", str(unit)).stderr


@pytest.mark.parametrize("unit", UNITS, indirect=True)
def test_the_unit_is_hardened(unit):
    level, table = exposure(unit)
    assert level <= EXPOSURE_MAX, table
    unit.write_text(unit.read_text().replace("NoNewPrivileges=yes\n", "").replace("CapabilityBoundingSet=\n", ""))
    assert exposure(unit)[0] > level


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_tells_when_it_is_ready_and_is_watched(name):
    unit = settings(read_unit(name))
    assert unit["Type"] == "notify" and int(unit["WatchdogSec"]) > 0 and unit["Restart"] == "on-failure"


def test_the_agent_sees_the_processes_of_the_osds():
    unit = settings(read_unit("strata-agentd"))
    assert unit["ProtectProc"] == "default" and unit["ProcSubset"] == "all"
    assert "PrivateUsers" not in unit


@pytest.mark.parametrize("name", UNITS)
def test_the_state_folder_is_the_default_of_the_program(name):
    folder = settings(read_unit(name))["StateDirectory"]
    with open(os.path.join(TOP, "systemd", f"{name}.conf"), encoding="utf-8") as file:
        assert f"/var/lib/{folder}\n" in file.read()


@pytest.mark.parametrize("name", UNITS)
def test_the_shipped_configuration_is_right_with_every_default_written_out(name, tmp_path):
    with open(os.path.join(TOP, "systemd", f"{name}.conf"), encoding="utf-8") as file:
        text, count = re.subn(r"^#(\w+ =)", r"\1", file.read(), flags=re.M)
    assert count > 10
    conf = tmp_path / "all.conf"
    conf.write_text(text)
    done = run(os.path.join(BUILD, UNITS[name], name), "--check", f"--config={conf}")
    assert (done.returncode, done.stdout) == (0, "configuration OK\n"), done.stderr


def make_root(path, group=""):
    """A root with just enough for sysusers and tmpfiles."""
    etc = path / "etc"
    etc.mkdir(parents=True)
    (etc / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (etc / "group").write_text("root:x:0:\n" + group)
    return etc


def make_users(path):
    done = run("systemd-sysusers", f"--root={path}", os.path.join(TOP, "systemd", "sysusers.d", "strata.conf"))
    assert done.returncode == 0, done.stderr
    with open(path / "etc" / "group", encoding="utf-8") as file:
        return {line.split(":")[0]: line.strip().split(":")[2:] for line in file}


def test_users_are_made_also_where_ceph_is_not_installed(tmp_path):
    etc = make_root(tmp_path / "root")
    groups = make_users(tmp_path / "root")
    assert groups["ceph"] == ["64045", "strata-agent"]
    assert "strata-collector" in groups
    passwd = (etc / "passwd").read_text()
    assert re.search(r"^strata-agent:.*:/var/lib/strata-agentd:\S*nologin$", passwd, re.M)
    assert re.search(r"^strata-collector:.*nologin$", passwd, re.M)


def test_a_group_ceph_that_is_there_stays_as_it_is(tmp_path):
    make_root(tmp_path / "root", "ceph:x:167:\n")
    assert make_users(tmp_path / "root")["ceph"] == ["167", "strata-agent"]


def test_folders_are_made_and_an_edited_configuration_survives(tmp_path):
    root = tmp_path / "root"
    etc = make_root(root)
    with open(os.path.join(BUILD, "systemd", "strata-tmpfiles.conf"), encoding="utf-8") as file:
        rules = file.read()
    sources = re.findall(r"^C (\S+) .* (\S+)$", rules, re.M)
    assert [target for target, _ in sources] == ["/etc/strata/agentd.conf", "/etc/strata/collectord.conf"]
    for _, shipped in sources:
        path = root / shipped.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(TOP, "systemd", os.path.basename(shipped)), path)
    conf = tmp_path / "strata.conf"
    conf.write_text(rules)
    for _ in range(2):
        done = run("systemd-tmpfiles", "--create", f"--root={root}", str(conf))
        assert done.returncode == 0, done.stderr
        assert "[" in (etc / "strata" / "agentd.conf").read_text()
        (etc / "strata" / "collectord.conf").write_text("edited\n")
    assert (etc / "strata" / "collectord.conf").read_text() == "edited\n"
    for folder in ("agentd.credentials", "collectord.credentials"):
        assert (etc / "strata" / folder).stat().st_mode & 0o777 == 0o700
