"""The manuals are well-formed and complete: options of the help, keys of the shipped configuration."""
import glob
import os
import re
import subprocess

import pytest

from system import STRATA, TOP

MANUALS = sorted(glob.glob(os.path.join(TOP, "docs", "man", "*.[158]")))


def plain(name):
    path = os.path.join(TOP, "docs", "man", name)
    text = subprocess.run(["mandoc", "-T", "ascii", path], capture_output=True, text=True, check=True).stdout
    return re.sub(".\b", "", text)


@pytest.mark.parametrize("path", MANUALS, ids=[os.path.basename(path) for path in MANUALS])
def test_mandoc_finds_nothing_to_say(path):
    done = subprocess.run(["mandoc", "-T", "lint", os.path.basename(path)], cwd=os.path.dirname(path),
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_all_five_manuals_are_installed():
    with open(os.path.join(TOP, "docs", "meson.build"), encoding="utf-8") as file:
        installed = re.findall(r"'man/([^']+)'", file.read())
    assert sorted(installed) == [os.path.basename(path) for path in MANUALS] and len(installed) == 5


def test_strata_1_describes_every_option_and_subcommand():
    page = plain("strata.1")
    overview = subprocess.run([STRATA, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+)  ", overview, re.M)
    assert len(commands) == 8
    options = set()
    for command in commands:
        text = subprocess.run([STRATA, command, "--help"], capture_output=True, text=True, check=True).stdout
        options.update(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.M))
        assert re.search(rf"^     {command} ", page, re.M), f"{command} is not described"
    assert len(options) > 15
    assert sorted(option for option in options if option not in page) == []


@pytest.mark.parametrize("name", ["strata-agentd", "strata-collectord"])
def test_the_configuration_page_and_the_shipped_file_have_the_same_keys(name):
    with open(os.path.join(TOP, "systemd", f"{name}.conf"), encoding="utf-8") as file:
        keys = re.findall(r"^\[(\w+)\]|^#?(\w+) =", file.read(), re.M)
    with open(os.path.join(TOP, "docs", "man", f"{name}.conf.5"), encoding="utf-8") as file:
        described = re.findall(r"^\.Ss Section (\w+)|^\.It Cm (\w+)", file.read(), re.M)
    assert described == keys
