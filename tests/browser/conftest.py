"""One Chromium for the run; each test opens the page in the state of the world it is about."""

import os
import re
import tempfile
from pathlib import Path

import pytest
from fake_collector import FakeCollector
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STRATA_BUILD", ROOT / "build"))
ARTEFACTS = Path(os.environ.get("STRATA_ARTEFACTS", BUILD / "artefacts"))
FLAGS = ("--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage").split()
WAIT_SECONDS = 60


class Page:
    """The dashboard in the browser, and what a reader does with it."""

    def __init__(self, driver):
        self.driver, self.url = driver, None

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def module(self, name, expression):
        """The value of an expression over the exports of one of the page's modules, as `m`."""
        # Part of the script itself, because the page's policy forbids to make code from text.
        return self.driver.execute_async_script(
            "const done = arguments[1]; import(new URL(arguments[0], location.href).href)"
            f".then(m => done({expression})).catch(e => done(`failed: ${{e}}`))", name)

    def wait(self, condition, what):
        text = f"return Boolean({condition})"
        WebDriverWait(self.driver, WAIT_SECONDS, .1).until(lambda _d: self.script(text), f"{what}: {condition}")

    def open(self, url, hash_="", width=1280, height=900, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.url = url
        self.driver.get(url + (f"#{hash_}" if hash_ else ""))
        self.settle(0)
        return self

    @property
    def refreshes(self):
        return self.script("return window.strata.refreshes")

    def settle(self, since):
        self.wait(f"window.strata && window.strata.refreshes > {since}", "the page asked the collector")

    def drawn(self):
        """Waits until what the reader just chose is drawn."""
        self.wait("!window.strata.busy", "the page drew what was chosen")

    def choose(self, name, value):
        """Picks a radio button by its visible half and waits until the answer is drawn."""
        self.driver.find_element("css selector", f"input[name={name}][value='{value}'] + span").click()
        # The click may reach a busy page after chromedriver has answered.
        self.wait(f"window.strata.view()['{name}'] === '{value}'", "the click arrived")
        self.drawn()

    def text(self, selector):
        return self.driver.find_element("css selector", selector).text

    def texts(self, selector):
        return [found.text for found in self.driver.find_elements("css selector", selector)]

    def errors(self, allow="$^"):
        """What the console complains of, content security policy included."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING") and not re.search(allow, entry["message"])]

    def picture(self, name):
        """A screenshot of the whole page, kept with the artefacts."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        width, height = self.script("return [innerWidth, document.documentElement.scrollHeight]")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.save_screenshot(str(ARTEFACTS / f"dashboard-{name}.png"))


@pytest.fixture(scope="session")
def web():
    folder = BUILD / "web"
    if not (folder / "uPlot.esm.js").exists():
        pytest.fail(f"the dashboard is not built in {folder}; STRATA_BUILD names the build folder")
    return folder


@pytest.fixture(scope="session")
def driver():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="strata-chromium-", ignore_cleanup_errors=True) as profile:
        options.add_argument(f"--user-data-dir={profile}")
        made = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        made.set_script_timeout(WAIT_SECONDS)
        try:
            yield made
        finally:
            made.quit()


@pytest.fixture
def page(driver):
    yield Page(driver)
    # The tab is the next test's, too: what it was given is not.
    driver.execute_script("sessionStorage.clear()")


@pytest.fixture(scope="session")
def server(web):
    made = FakeCollector(web).start()
    yield made
    made.stop()


@pytest.fixture
def fake(server):
    """The fake collector; calling it sets the scenario and gives the address."""
    def at(scenario):
        server.scenario = scenario
        server.requests.clear()
        return server.url
    at.server = server
    return at


@pytest.fixture
def site(fake):
    """A collector with a busy cluster: a real one where STRATA_URL names it, else the fake."""
    real = os.environ.get("STRATA_URL")
    return real.rstrip("/") + "/" if real else fake("deferred")
