"""The dashboard's own tests once more, in Chromium, on the real collector under a load that is written twice."""
import os
import subprocess
import sys
import time

from system import ARTEFACTS, BUILD, TOP

LOAD_SECONDS = 150
# Those tests that take whatever site they are given; the others need states of the world that only a fake has.
SELECT = """
import sys, pytest
class Site:
    @staticmethod
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if "site" in item.fixturenames]
sys.exit(pytest.main(sys.argv[1:], plugins=[Site()]))
"""


def test_the_dashboard_shows_a_real_cluster(cluster, images, system):
    collector, _ = system
    fio = images["replicated:3"].start("randwrite", "16k", LOAD_SECONDS, rate="4m")
    try:
        time.sleep(20)
        done = subprocess.run([sys.executable, "-c", SELECT, "-p", "no:cacheprovider", "-v", "--tb=short",
                               os.path.join(TOP, "tests", "browser")], capture_output=True, text=True, check=False, timeout=240,
                              env={**os.environ, "STRATA_URL": collector.url, "STRATA_BUILD": BUILD,
                                   "STRATA_ARTEFACTS": os.path.join(ARTEFACTS, "real")})
    finally:
        fio.kill()
        fio.communicate()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
