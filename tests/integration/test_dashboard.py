"""The dashboard's own tests once more, in Chromium, on the real collector under a load that is written twice."""
import os
import subprocess
import sys

from system import ARTEFACTS, BUILD, TOP, die_with_parent, wait_for

LOAD_SECONDS = 720
TEST_SECONDS = 600
NUMBERS = ("ok", "short", "contaminated")
# Those tests that take whatever site they are given and look at its numbers; layout and keyboard are the fake's, and
# so are states of the world that a real cluster does not take when asked.
SELECT = """
import re, sys, pytest
LAYOUT = re.compile("readable|keyboard|link_restores|dragging")
class Site:
    @staticmethod
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if "site" in item.fixturenames and not LAYOUT.search(item.name)]
sys.exit(pytest.main(sys.argv[1:], plugins=[Site()]))
"""


def test_the_dashboard_shows_a_real_cluster(cluster, images, system):
    collector, _ = system
    fio = images["replicated:3"].start("randwrite", "16k", LOAD_SECONDS, rate="4m")
    try:
        # The page shows the last minute; until samples cover it, it rightly says that there are none.
        wait_for(lambda: collector.get("/ladder", from_="-1m", cluster=cluster.fsid())["write"]["state"] in NUMBERS,
                 "a minute of samples", seconds=90, every=2)
        log = os.path.join(ARTEFACTS, "real", "dashboard.log")
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "wb") as file:
            code = subprocess.run([sys.executable, "-c", SELECT, "-p", "no:cacheprovider", "-v", "--tb=short",
                                   os.path.join(TOP, "tests", "browser")], stdout=file, stderr=file, check=False,
                                  timeout=TEST_SECONDS, preexec_fn=die_with_parent,
                                  env={**os.environ, "STRATA_URL": collector.url, "STRATA_BUILD": BUILD,
                                       "STRATA_ARTEFACTS": os.path.join(ARTEFACTS, "real")}).returncode
    finally:
        fio.kill()
        fio.communicate()
    with open(log, encoding="utf-8", errors="replace") as file:
        told = file.read()
    assert code == 0, told[-6000:]
    assert " passed" in told
