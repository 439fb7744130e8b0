"""One real cluster for the whole run; collector and agent as each module needs them."""
import os
import shutil
import tempfile

import pytest

from system import ARTEFACTS, Agent, Cluster, Collector


def keep_logs(name, *daemons):
    folder = os.path.join(ARTEFACTS, name)
    os.makedirs(folder, exist_ok=True)
    for daemon in daemons:
        if os.path.exists(daemon.log):
            shutil.copy(daemon.log, folder)


@pytest.fixture(scope="session")
def cluster():
    directory = os.environ.get("STRATA_NODE_DIR") or tempfile.mktemp(prefix="strata-test-", dir="/var/tmp")
    made = Cluster(directory)
    try:
        yield made.up()
    finally:
        if not os.environ.get("STRATA_KEEP_NODE"):
            made.down()


@pytest.fixture(scope="session")
def images(cluster):
    """A filled image on each kind of pool, by the kind."""
    return {kind: cluster.make_image(name, kind) for name, kind in
            (("three", "replicated:3"), ("two", "replicated:2"), ("parity", "erasure:2+1"))}


@pytest.fixture(scope="session")
def system(cluster, tmp_path_factory):
    """Collector and agent that watch the cluster, all sources each second. One pair for the run, so that no
    module waits for a history; who kills them starts them again."""
    folder = tmp_path_factory.mktemp("system")
    collector = Collector(folder).start()
    agent = Agent(folder, collector.url, cluster)
    try:
        collector.plan(diskstats="1s", osd="1s", ceph="1s", host="1s", agent="1s")
        agent.start()
        collector.wait_until_stored(0.0)
        yield collector, agent
        codes = agent.stop(), collector.stop()
        assert codes == (0, 0), f"agent and collector ended with {codes}"
    finally:
        for daemon in (agent, collector):
            if daemon.is_alive():
                daemon.kill()
        keep_logs("system", agent, collector)
