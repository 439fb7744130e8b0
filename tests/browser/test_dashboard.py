"""The dashboard in a real browser.

Tests with `site` hold for any collector with a busy cluster: STRATA_URL names a real one. Tests
with `fake` need a state of the world that only the fake collector can be put into.
"""

import os
import re

import pytest
from fake_collector import HOSTILE, TOKEN
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

LAYERS = ["filesystem", "osd", "objectstore", "storage"]
NUMBER = r"\d[\d\u202f.]*"

# Text against what lies behind it, after WCAG 2: [ratio, text, selector] of all that is too faint.
FAINT = """
function parse(text) {
        const numbers = text.match(/[\\d.]+/g).map(Number);
        return { rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1 };
}
function over(top, below) { return top.rgb.map((c, i) => c * top.alpha + below[i] * (1 - top.alpha)); }
function luminance(rgb) {
        const [r, g, b] = rgb.map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
}
function ground(node) {
        const layers = [];
        for (let at = node; at; at = at.parentElement) {
                const colour = parse(getComputedStyle(at).backgroundColor);
                if (colour.alpha > 0)
                        layers.push(colour);
                if (colour.alpha === 1)
                        break;
        }
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
}
function opacity(node) {
        let value = 1;
        for (let at = node; at; at = at.parentElement)
                value *= Number(getComputedStyle(at).opacity);
        return value;
}
const faint = [];
let seen = 0;
for (const node of document.querySelectorAll('body *')) {
        const own = [...node.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
        const field = ['SELECT', 'INPUT'].includes(node.tagName) && !['radio', 'checkbox'].includes(node.type);
        if (!(own || field) || node.tagName === 'OPTION' || node.tagName === 'NOSCRIPT' || node.closest('.unseen, .skip') || !node.checkVisibility())
                continue;
        seen++;
        const back = ground(node);
        const colour = parse(getComputedStyle(node).color);
        colour.alpha *= opacity(node);
        const [a, b] = [luminance(over(colour, back)), luminance(back)];
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 4.5)
                faint.push([ratio.toFixed(2), (node.textContent || node.value).slice(0, 40), node.className || node.id || node.tagName]);
}
return [seen, faint];
"""


# --- any collector -------------------------------------------------------------------------


def test_loads_without_a_complaint_and_from_nowhere_else(page, site):
    page.open(site)
    page.picture("write")
    assert page.errors() == []
    origins = page.script("return [...new Set(performance.getEntriesByType('resource').map(e => new URL(e.name).origin))]")
    assert origins == [site.rstrip("/")]
    assert page.text("h1") == "strata"
    assert "live" in page.text("#status")


def test_ladder_shows_every_layer_with_its_units(page, site):
    page.open(site)
    rows = page.driver.find_elements("css selector", "tr.rung")
    assert [row.get_attribute("data-layer") for row in rows] == LAYERS
    for row in rows:
        assert re.search(NUMBER + r" [kMG]?B/s", row.text), row.text
        assert re.search(NUMBER + r" (k|M)?/s", row.text), row.text
    first, last = rows[0], rows[-1]
    assert "1.00×" in first.text
    # All segments: one of three devices alone has about the clients' bytes.
    widths = [sum(segment.rect["width"] for segment in row.find_elements("css selector", ".segment")) for row in (first, last)]
    assert widths[1] > widths[0] > 0


def test_answer_is_a_sentence_with_the_two_numbers(page, site):
    page.open(site)
    assert re.match(r"Writes are amplified \d+(\.\d+)?×", page.text(".answer")), page.text(".answer")
    amplification, expected = page.script(
        "const w = strata.data().ladder.write; return [w.amplification, w.expected]")
    assert f"{amplification:.2f}" in page.text(".answer") and f"{expected:.2f}×" in page.text(".answer")


def test_every_layer_is_a_curve_and_both_charts_share_their_axis(page, site):
    page.open(site)
    drawn = page.script("return strata.charts.layers.plot.series.slice(1).map(s => s.label)")
    assert sorted(drawn) == sorted(LAYERS)
    counts = page.script("return strata.charts.layers.plot.data.slice(1).map(c => c.filter(v => v !== null).length)")
    assert min(counts) > 0, counts
    edges = page.script("return ['layers', 'ratio'].map(k => { const p = strata.charts[k].plot;"
                        "return [p.bbox.left, p.bbox.width, p.scales.x.min, p.scales.x.max]; })")
    assert edges[0] == edges[1]


def test_expected_value_is_drawn_as_a_dashed_line(page, site):
    page.open(site)
    expected = page.script("return strata.charts.ratio.plot.data[2].filter(v => v !== null)")
    assert expected and min(expected) > 1
    # Along the line's height the pixels change between line and ground again and again.
    changes = page.script("""
        const plot = strata.charts.ratio.plot;
        const at = plot.data[2].findLastIndex(v => v !== null);
        const begin = plot.data[2].findIndex(v => v !== null);
        const x = Math.round(plot.valToPos(plot.data[0][begin], 'x', true));
        const width = Math.round(plot.valToPos(plot.data[0][at], 'x', true)) - x;
        const y = Math.round(plot.valToPos(plot.data[2][at], 'y', true));
        let most = 0;
        for (const row of [y - 1, y, y + 1]) {
                const pixels = plot.ctx.getImageData(x, row, width, 1).data;
                let changes = 0;
                for (let i = 4; i < pixels.length; i += 4)
                        changes += Math.abs(pixels[i] - pixels[i - 4]) + Math.abs(pixels[i + 3] - pixels[i - 1]) > 90;
                most = Math.max(most, changes);
        }
        return [most, width];""")
    assert changes[0] >= changes[1] / 10 / 2, changes


def test_cursor_is_the_same_in_both_charts_and_tells_the_window(page, site):
    page.open(site, "range=15m&direction=write&live=0")
    chart = page.driver.find_element("id", "layers-chart")
    ActionChains(page.driver).move_to_element(chart).perform()
    page.wait("strata.charts.layers.plot.cursor.idx !== null && strata.charts.layers.plot.cursor.idx === strata.charts.ratio.plot.cursor.idx",
              "one cursor")
    assert re.search(r"\d\d:\d\d:\d\d – \d\d:\d\d:\d\d", page.text("#layers-legend .when"))
    assert "newest" not in page.text("#layers-legend .when")


def test_read_and_write_show_other_numbers(page, site):
    page.open(site)
    page.script("performance.clearResourceTimings()")
    write = page.text("#ladder")
    page.choose("direction", "read")
    page.picture("read")
    assert page.text("#ladder") != write
    asked = page.script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert any("direction=read" in url for url in asked) and any("read_bytes" in url for url in asked)
    assert not any("write_bytes" in url for url in asked)
    assert "direction=read" in page.script("return location.hash")
    assert "reads" in page.text("#ladder-window")


def test_iops_and_throughput_are_a_switch_apart(page, site):
    page.open(site)
    label = "return strata.charts.layers.plot.axes[1]._values.join(' ')"
    assert "B/s" in page.script(label)
    page.choose("measure", "ops")
    assert "B/s" not in page.script(label)
    assert "measure=ops" in page.script("return location.hash")


def test_ratio_is_the_inverse_of_the_amplification(page, site):
    page.open(site, "live=0")
    assert page.script("return strata.charts.ratio.plot.data[1].join() === strata.data().curves.amplification.join()")
    page.choose("curve", "ratio")
    drawn, amplification = page.script("return [strata.charts.ratio.plot.data[1], strata.data().curves.amplification]")
    known = [(a, r) for a, r in zip(amplification, drawn) if a]
    assert len(known) > 0
    assert [r for _a, r in known] == pytest.approx([1 / a for a, _r in known])
    # Clients were served and no device moved (caches, the lag of the pools): an amplification of 0, and no ratio.
    assert all(r is None for a, r in zip(amplification, drawn) if a == 0)
    assert page.text("#ratio-title") == "Ratio"


def test_link_restores_the_view(page, site):
    page.open(site, "range=1h&direction=read&measure=ops&live=0")
    checked = page.script("return [...document.querySelectorAll('input[type=radio]:checked')].map(i => i.value)")
    assert checked[:3] == ["1h", "read", "ops"]
    assert not page.driver.find_element("id", "live").is_selected()
    length = page.script("const d = strata.charts.layers.data; return d.to - d.from")
    assert abs(length - 3600) <= 60


def test_dragging_over_a_chart_shows_that_range(page, site):
    page.open(site)
    plot = page.driver.find_element("css selector", "#layers-chart .u-over")
    ActionChains(page.driver).move_to_element_with_offset(plot, -200, 0).click_and_hold() \
        .move_by_offset(150, 0).move_by_offset(150, 0).release().perform()
    page.wait("location.hash.includes('range=custom')", "the drag chose a range")
    page.drawn()
    assert "range=custom" in page.script("return location.hash")
    length = page.script("const v = strata.view(); return v.to - v.from")
    assert 60 < length < 700
    assert page.driver.find_element("id", "custom").is_displayed()


def test_live_page_asks_again_by_itself(page, site):
    page.open(site)
    first = page.refreshes
    page.wait(f"strata.refreshes >= {first + 1}", "a second refresh within a few seconds")
    page.driver.find_element("id", "live").click()
    page.settle(first + 1)
    assert "live=0" in page.script("return location.hash")


def test_devices_name_the_osd_they_back(page, site):
    page.open(site)
    rows = page.texts("#devices tbody tr")
    assert rows and all(re.search(r"osd\.\d+", row) for row in rows), rows
    assert page.texts("#pools tbody tr") and page.texts("#agents tbody tr")
    page.driver.find_element("css selector", "[data-table=devices][data-sort=utilisation]").click()
    assert page.driver.find_element("css selector", "#devices th[aria-sort=descending]").text.startswith("utilisation")


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_readable_and_nothing_needs_a_horizontal_scroll(page, site, width, dark):
    page.open(site, width=width, dark=dark)
    page.picture(f"{width}-{'dark' if dark else 'light'}")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    assert page.script("return document.querySelectorAll('body *').length") > 100
    seen, faint = page.script(FAINT)
    assert seen > 60 and faint == []
    ground = page.script("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == dark


def test_every_control_is_reached_by_the_keyboard(page, site):
    page.open(site, "live=0")
    reached = set()
    for _ in range(60):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        reached.add(page.script("const e = document.activeElement; return e.name || e.id || e.dataset.open || e.dataset.sort || e.dataset.toggle || e.tagName"))
    assert {"cluster", "range", "direction", "measure", "live", "window", "curve", "layers-chart", "ratio-chart", "objectstore",
            "utilisation"} <= reached, reached
    page.script("document.getElementById('layers-chart').focus()")
    ActionChains(page.driver).send_keys(Keys.HOME).send_keys(Keys.ARROW_RIGHT).perform()
    assert page.script("return strata.charts.ratio.plot.cursor.idx") == 1


def test_parts_of_a_layer_open_and_stay_open(page, site):
    parts = "tr.part[data-part-of=filesystem]"
    page.open(site)
    assert page.texts(parts) == []
    page.driver.find_element("css selector", "[data-open=filesystem]").click()
    pools = [text.split("\n")[0] for text in page.texts(parts)]
    assert pools
    page.settle(page.refreshes)
    assert [text.split("\n")[0] for text in page.texts(parts)] == pools
    assert page.script("return document.activeElement.dataset.open") == "filesystem"


# --- states of the world that only the fake can be put into --------------------------------


def test_amplified_writes_are_explained(page, fake):
    page.open(fake("deferred"))
    assert re.match(r"Writes are amplified 6\.\d\d× where replication explains 3\.00×: deferred writes and", page.text(".answer"))
    assert page.texts(".reasons li")[0].startswith("3.00×\nDeferred writes: each write below")
    assert page.script("return getComputedStyle(document.querySelector('.answer b')).color") != \
        page.script("return getComputedStyle(document.querySelector('.answer')).color")


def test_ordinary_writes_are_called_explained(page, fake):
    page.open(fake("healthy"))
    assert re.match(r"Writes are amplified 3\.\d\d×, as replication explains \(3\.00×\)\.", page.text(".answer"))
    assert page.texts(".reasons li") == []


def test_the_answer_names_the_layer_and_the_entity_that_hold_the_clients_back(page, fake):
    page.open(fake("slow_disk"))
    page.picture("verdict")
    assert page.text(".says") == "The bottleneck is the storage layer: device node2/sdb."
    told = page.text(".bottleneck")
    assert "382.9 ms where the median of its 2 peers is 0.86 ms" in told and "SMART" in told
    assert "osd.7 started again in this window." in told
    assert page.script("return document.querySelectorAll('.bottleneck a').length") == 0
    beside = page.texts(".findings li")
    assert len(beside) == 1 and beside[0].startswith("objectstore the cluster, since ")


def open_curve(page):
    page.driver.find_element("css selector", ".bottleneck button[data-curve]").click()
    page.wait("document.querySelectorAll('.curve').length === 2", "the curve was drawn")


def test_the_curve_of_a_finding_is_drawn_below_it_and_goes_away(page, fake):
    page.open(fake("slow_disk"))
    open_curve(page)
    page.picture("curve")
    captions = page.texts(".curve figcaption")
    assert captions[0].startswith("queue") and captions[1].startswith("write_await")
    assert all(path.count("L") > 20 for path in page.script(
        "return [...document.querySelectorAll('.curve path')].map(path => path.getAttribute('d'))"))
    asked = [path for path in fake.server.requests if "metric=queue" in path]
    assert len(asked) == 1 and "entity=node2" in asked[0] and "cluster=" in asked[0] and "from=" in asked[0]
    since = page.script("return strata.refreshes")
    page.wait(f"strata.refreshes > {since}", "a refresh, over which the curve stays")
    assert len(page.texts(".curve")) == 2
    page.driver.find_element("css selector", ".bottleneck button[data-curve]").click()
    page.wait("document.querySelectorAll('.curve').length === 0", "the curve went away")


def test_the_curve_of_a_finding_is_asked_for_with_the_token(page, fake):
    page.open(fake("slow_disk_token"))
    page.driver.find_element("id", "token-value").send_keys(TOKEN, Keys.ENTER)
    page.wait("document.querySelector('.bottleneck')", "the page shows the verdict")
    open_curve(page)
    assert page.errors(allow="401") == []


def test_without_a_verdict_the_page_speaks_of_the_amplification_alone(page, fake):
    page.open(fake("healthy"))
    assert page.texts(".bottleneck") == []


def test_missing_expectation_is_explained(page, fake):
    page.open(fake("new_pool"))
    assert re.match(r"Writes are amplified 3\.\d\d×; what the pools explain is not known\.", page.text(".answer"))
    assert "The redundancy of pool images is not known." in page.text("#verdict .facts")
    assert page.text("#ratio-legend .why") == "The redundancy of pool images is not known."
    assert page.script("return strata.charts.ratio.plot.data[2].every(v => v === null)")


@pytest.mark.parametrize("pools, words", [
    ("[{type: 'replicated', bytes: 5}, {type: 'erasure', bytes: 0}]", "replication explains"),
    ("[{type: 'replicated', bytes: 0}, {type: 'erasure', bytes: 5}]", "erasure coding explains"),
    ("[{type: 'replicated', bytes: 5}, {type: 'erasure', bytes: 5}]", "replication and erasure coding explain "),
])
def test_sentence_names_what_the_written_pools_multiply_with(page, fake, pools, words):
    page.open(fake("healthy"))
    said = page.module("verdict.js", "m.sentence({write: {amplification: 4.2, expected: 2, excess: 2.1, reasons: []}},"
                       f"'write', {pools}, 'now').map(p => p.text).join('')")
    assert f"amplified 4.20× where {words}" in said


def test_states_are_shaded_and_told(page, fake):
    page.open(fake("gaps"))
    page.picture("states")
    told = " ".join(page.texts("#states dt"))
    for state in ("gap", "idle", "partial", "contaminated", "reset"):
        assert state in told
    # Gaps and idle windows have no number, the others do.
    wrong = page.script("""
        const c = strata.data().curves;
        return c.states.filter((s, i) => (c.amplification[i] === null) !== ['gap', 'idle', 'pending'].includes(s));""")
    assert wrong == []
    # The strip at the foot of the chart has the colour of the state.
    same = page.script("""
        const plot = strata.charts.ratio.plot, c = strata.data().curves;
        const i = c.states.indexOf('contaminated');
        const x = Math.round(plot.valToPos(c.times[i] + c.step / 2, 'x', true));
        const pixel = [...plot.ctx.getImageData(x, plot.bbox.top + plot.bbox.height - 2, 1, 1).data].slice(0, 3);
        const swatch = getComputedStyle(document.querySelector('.swatch.state-contaminated')).backgroundColor.match(/\\d+/g).map(Number);
        return [pixel, swatch];""")
    assert same[0] == same[1]
    page.script("""
        const plot = strata.charts.ratio.plot, c = strata.data().curves;
        plot.setCursor({ left: plot.valToPos(plot.data[0][c.states.indexOf('contaminated')], 'x'), top: 50 });""")
    assert page.text("#ratio-legend .why") == "recovery moved 212 MB in this window"


@pytest.mark.parametrize("scenario, where, words", [
    ("empty", "#verdict", ["No agent has delivered anything yet", "strata-agentd"]),
    ("silent", "#layers-chart", ["No agent delivers at the moment", "2 h ago", "strata-agentd"]),
    ("silent", "#ladder", ["No agent delivers at the moment"]),
    ("idle", "#ratio-chart", ["idle", "no writes to judge"]),
    ("no_filesystem", "#ratio-chart", ["No filesystem samples", "ceph"]),
    ("no_filesystem", "#layers-legend", ["no samples of filesystem"]),
    ("none", "#ratio-chart", ["no ratio without a filesystem layer", "keyring"]),
])
def test_empty_graph_says_why(page, fake, scenario, where, words):
    page.open(fake(scenario))
    page.picture(scenario)
    text = page.text(where)
    for word in words:
        assert word in text, text
    assert page.errors() == []


def test_without_a_cluster_the_devices_are_still_shown(page, fake):
    page.open(fake("none"))
    assert page.texts("tr.rung th") == ["storage"]
    assert page.script("return strata.charts.layers.plot !== null && strata.charts.ratio.plot === null")
    assert len(page.texts("#devices tbody tr")) == 6


def test_range_in_the_future_is_called_that_and_not_asked_for(page, fake):
    page.open(fake("healthy"), "range=custom&from=2190-01-01T00:00:00Z&to=2190-01-02T00:00:00Z")
    for where in ("#verdict", "#ladder", "#layers-chart", "#ratio-chart"):
        assert "The range is in the future" in page.text(where)
    assert not any("/ratio" in path for path in fake.server.requests)


def test_range_that_ends_before_it_begins_is_called_that(page, fake):
    page.open(fake("healthy"), "range=custom&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z")
    assert "ends before it begins" in page.text("#ratio-chart")


def test_nonsense_in_the_address_falls_back_to_the_default(page, fake):
    page.open(fake("healthy"), "range=bogus&direction=up&from=never&measure=%3Cb%3E")
    assert page.script("const v = strata.view(); return [v.range, v.direction, v.measure]") == ["15m", "write", "bytes"]
    assert page.errors() == []


def test_unknown_cluster_in_the_address_is_named(page, fake):
    page.open(fake("healthy"), "cluster=11111111-2222-4333-8444-555555555555")
    assert "11111111-2222-4333-8444-555555555555" in page.text("#notices")


def test_problem_document_becomes_a_sentence(page, fake):
    page.open(fake("busy"))
    assert "Service Unavailable: The query took longer than its time budget of 5 s" in page.text("#notices")


def test_token_is_asked_for_and_kept_in_this_tab_only(page, fake):
    page.open(fake("token"))
    page.picture("token")
    assert "asks for a token" in page.text("#token")
    assert page.script("return document.activeElement.id") == "token-value"
    for given, accepted in (("wrong", False), (TOKEN, True)):
        page.driver.find_element("id", "token-value").send_keys(given, Keys.ENTER)
        page.wait("document.getElementById('token-value').value === ''", "the token was taken")
        page.drawn()
        assert page.driver.find_element("id", "token").is_displayed() != accepted
        if not accepted:
            assert "refused" in page.text("#token")
    assert len(page.texts("tr.rung")) == 4
    assert page.script("return [localStorage.length, document.cookie, location.href.includes(arguments[0])]", TOKEN) == [0, "", False]
    assert all(TOKEN not in path for path in fake.server.requests)
    page.driver.find_element("id", "forget").click()
    page.wait("sessionStorage.length === 0", "the token was forgotten")
    page.drawn()
    assert page.driver.find_element("id", "token").is_displayed()


def test_lost_collector_is_told_and_found_again(page, fake):
    page.open(fake("healthy"))
    answer = page.text(".answer")
    fake("gone")
    page.wait("strata.error !== null", "the loss is noticed")
    page.picture("gone")
    assert "cannot be reached" in page.text("#notices") and "unreachable" in page.text("#status")
    assert page.text(".answer") == answer
    assert page.script(FAINT)[1] == []
    fake("healthy")
    page.wait("strata.error === null", "the page finds it again")
    assert page.text("#notices") == "" and "live" in page.text("#status")


def test_collector_that_was_never_there_is_told_too(page, fake):
    page.open(fake("gone"), "live=0")
    assert "cannot be reached" in page.text("#notices")
    assert not page.driver.find_element("id", "ladder").is_displayed()
    assert page.errors(allow="ERR_EMPTY_RESPONSE") == []
    fake("healthy")
    page.wait("strata.error === null", "a page that is not live asks again until it has an answer")
    assert len(page.texts("tr.rung")) == 4


def test_names_from_outside_are_text(page, fake):
    page.open(fake("hostile"))
    page.driver.find_element("css selector", "[data-open=filesystem]").click()
    page.driver.find_element("css selector", "[data-open=storage]").click()
    page.picture("hostile")
    assert page.script("return window.hacked") is None
    assert page.script("return document.querySelectorAll('main img, header select img').length") == 0
    for where in ("#ladder", "#devices", "#pools", "#agents"):
        assert HOSTILE in page.script("return document.querySelector(arguments[0]).textContent", where)
    assert page.errors() == []
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")


def test_many_devices_stay_usable(page, fake):
    page.open(fake("large"))
    assert len(page.texts("#devices tbody tr")) == 60
    assert len(page.driver.find_elements("css selector", "tr.rung[data-layer=storage] .segment")) == 1
    page.driver.find_element("css selector", "[data-open=storage]").click()
    assert "and 48 more" in page.text("#ladder")


# --- pure functions, asked in the browser ---------------------------------------------------


@pytest.mark.parametrize("expression, shown", [
    ("m.throughput(0)", "0 B/s"), ("m.throughput(999.6e3)", "1.00 MB/s"), ("m.throughput(177.3e6)", "177 MB/s"),
    ("m.throughput(null)", "–"), ("m.throughput(NaN)", "–"), ("m.size(16384)", "16.0 KiB"), ("m.size(0)", "–"),
    ("m.operations(1717.2)", "1\u202f717 /s"), ("m.operations(11004)", "11.0 k/s"), ("m.multiple(6.389)", "6.39×"),
    ("m.multiple(123.4)", "123×"), ("m.latency(0.0139)", "13.9 ms"), ("m.latency(0.00042)", "420 µs"),
    ("m.duration(7260)", "2 h"), ("m.duration(42)", "42 s"), ("m.list(['a', 'b', 'c'])", "a, b and c"),
    ("m.share(-0.0001)", "0.0 %"), ("m.share(-0.012)", "−1.2 %"), ("m.bytes(-21700)", "−21.7 kB"),
    ("m.count(1234567)", "1\u202f234\u202f567"),
])
def test_numbers_are_shown_with_three_digits_and_a_unit(page, fake, expression, shown):
    if not (page.driver.current_url or "").startswith(fake.server.url):
        page.open(fake("healthy"))
    assert page.module("format.js", expression) == shown


def test_windows_are_two_reporting_periods_long_where_the_range_allows(page, fake):
    page.open(fake("healthy"))
    for length, step in (("15m", 10), ("1h", 15), ("6h", 120), ("24h", 300), ("7d", 3600)):
        window = page.module("view.js", f"m.windows({{range: '{length}'}}, 1796027570.5, 5)")
        assert window["step"] == step and window["from"] % step == 0 and window["to"] % step == 0
        assert window["to"] <= 1796027570.5
    assert page.module("view.js", "m.windows({range: '15m'}, 1796027570.5, 30)")["step"] == 60


def test_view_survives_its_address(page, fake):
    page.open(fake("healthy"))
    view = "{...m.parse(''), range: 'custom', from: 1796027570, to: 1796028570, direction: 'read', window: 'now', cluster: 'a b&c'}"
    assert page.module("view.js", f"m.parse(m.serialize({view}))") == page.module("view.js", f"({{...{view}, live: false}})")


def test_screenshots_are_kept():
    from conftest import ARTEFACTS
    assert os.path.getsize(ARTEFACTS / "dashboard-write.png") > 20000
