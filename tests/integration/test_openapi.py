"""The document that the collector serves, against the collector itself, by a client that knows nothing but the document.

Every path is asked with every value and with values that cannot be; each answer must be one of those that the
document has for it: status, content type, and the body by its schema, without a member that the document lacks.
"""
import copy
import itertools
import os
import subprocess

import jsonschema
import pytest
import requests

from system import BUILD, STRATA, TOP, Collector, wait_for

HOST = "b0570000-0000-0000-0000-000000000000"
FSID = "0b0e8d54-0000-4000-8000-000000000001"
LOAD = os.path.join(BUILD, "tests", "load", "load-agents")
TRACE = os.path.join(TOP, "tests", "fixtures", "diskstats-1s.txt.gz")
# What a parameter may be where the document leaves it open.
EXAMPLES = {
    "cluster": [FSID, "none"], "from": ["-1m", "now-30s", "2026-01-01T00:00:00Z"], "to": ["now"], "step": ["1s", "10s"],
    "cursor": ["node0", ""], "host": [HOST], "metric": ["write_bytes", "write_bytes,read_bytes"],
    "entity": ["node0/sda", "sda"], "what": ["series", "ratio", "ladder", "clusters", "agents", "osds", "devices", "pools", "plans", "findings"],
}
PATH_HOSTS = [HOST, "*"]
ABSURD = ["", "-1", "0", "1e999", "18446744073709551616", "9" * 400, "NaN", "null", "'; DROP TABLE block;--", "\u00e9\u4e16\U0001f600",
          "%s%n%x", "../../etc/passwd", "-99999999999999d", "now+100y", "1s" * 100, ",,,,", "a" * 2000]


def subschemas(schema):
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield value
        yield from subschemas(value)


class Document:
    def __init__(self, text):
        self.json = text
        strict = copy.deepcopy(text)
        for schema in subschemas(strict["components"]["schemas"]):
            # A member that the document lacks is a fault of the document.
            if isinstance(schema, dict) and isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
                schema.setdefault("additionalProperties", False)
        for name in strict["components"]["schemas"]:
            schema = strict["components"]["schemas"][name]
            if "properties" in schema and name != "Problem":
                schema.setdefault("additionalProperties", False)
        self.strict = strict

    def resolve(self, value):
        while "$ref" in value:
            found = self.json
            for part in value["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/")]
            value = found
        return value

    def gets(self):
        """path, operation of each GET of the API."""
        for path, item in self.json["paths"].items():
            if "get" in item and path != "/":
                yield path, item["get"]

    def parameters(self, operation, where):
        for parameter in map(self.resolve, operation.get("parameters", [])):
            if parameter["in"] == where:
                yield parameter

    def check(self, operation, answer):
        """That the document has this answer."""
        what = f"{answer.request.method} {answer.url}: {answer.status_code}"
        described = operation["responses"].get(str(answer.status_code))
        assert described, f"{what} is not in the document: {answer.text[:300]}"
        content = self.resolve(described).get("content", {})
        kind = answer.headers.get("Content-Type", "").split(";")[0]
        if not content:
            assert not answer.content, f"{what} has a body"
            return
        assert kind in content, f"{what}: the document has no {kind}"
        if not kind.endswith("json"):
            return
        resolver = jsonschema.RefResolver("", self.strict)
        errors = list(jsonschema.Draft202012Validator(content[kind]["schema"], resolver=resolver).iter_errors(answer.json()))
        assert not errors, f"{what}: {errors[0].json_path}: {errors[0].message[:300]}"


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    """With a few seconds of five hosts."""
    made = Collector(tmp_path_factory.mktemp("openapi")).start()
    with subprocess.Popen(["zcat", TRACE], stdout=subprocess.PIPE) as trace:
        subprocess.run([LOAD, f"--port={made.port}", "--agents=5", "--interval=1s", "--seconds=4", "--devices=3", "--facts"],
                       stdin=trace.stdout, check=True, stdout=subprocess.DEVNULL, timeout=60)
    assert made.request("PUT", f"/plans/{HOST}", json={"sources": {"osd": {"enabled": True, "interval": "5s"}}}).status_code == 200
    wait_for(lambda: made.get("/clusters")["clusters"], "a cluster")
    yield made
    assert made.stop() == 0, made.log_text()[-2000:]


@pytest.fixture(scope="module")
def document(collector):
    answer = requests.get(collector.url + "/api/v1/openapi.json", timeout=10)
    assert answer.status_code == 200
    return Document(answer.json())


def paths_of(path):
    return [path.replace("{host}", host) for host in PATH_HOSTS] if "{host}" in path else [path]


def values_of(parameter):
    schema = parameter.get("schema", {})
    if "enum" in schema:
        return [str(value) for value in schema["enum"]]
    if parameter["name"] in EXAMPLES:
        return EXAMPLES[parameter["name"]]
    return [str(schema["minimum"]), str(schema.get("maximum", 7))] if "minimum" in schema else []


def required(document, operation):
    return {parameter["name"]: values_of(parameter)[0] for parameter in document.parameters(operation, "query")
            if parameter.get("required")}


def ask(collector, path, **keywords):
    return collector.session.get(collector.url + path, timeout=30, **keywords)


def common_cluster(document, operation):
    names = {parameter["name"] for parameter in document.parameters(operation, "query")}
    return {"cluster": FSID} if "cluster" in names else {}


def test_every_call_answers_as_the_document_says(collector, document):
    good = 0
    for path, operation in document.gets():
        fixed = required(document, operation) | common_cluster(document, operation)
        for real in paths_of(path):
            answer = ask(collector, real, params=fixed)
            document.check(operation, answer)
            good += answer.status_code == 200
    # Each once; a host that is "*" has no plan of its own.
    assert good == len(list(document.gets()))


def test_every_value_of_every_parameter_is_answered_as_the_document_says(collector, document):
    statuses = []
    for path, operation in document.gets():
        fixed = required(document, operation) | common_cluster(document, operation)
        for parameter in document.parameters(operation, "query"):
            values = values_of(parameter)
            assert values or path == "/api/v1/export", f"{path}: nobody knows what {parameter['name']} may be"
            for real, value in itertools.product(paths_of(path)[:1], values):
                answer = ask(collector, real, params=fixed | {parameter["name"]: value})
                document.check(operation, answer)
                statuses.append(answer.status_code)
    # A list that were refused whole would be as the document says, too.
    assert statuses.count(200) > len(statuses) * 0.6, statuses


def test_absurd_values_are_refused_with_a_problem_and_do_no_harm(collector, document):
    refused = 0
    for path, operation in document.gets():
        fixed = required(document, operation) | common_cluster(document, operation)
        names = [parameter["name"] for parameter in document.parameters(operation, "query")]
        for name, value in itertools.product([*names, "no_such_parameter"], ABSURD):
            answer = ask(collector, paths_of(path)[0], params=fixed | {name: value})
            if path in ("/metrics", "/api/v1/openapi.json") and answer.status_code == 400:
                continue  # they have no parameters, and say so
            document.check(operation, answer)
            assert answer.status_code in (200, 400, 404), f"{answer.url}: {answer.status_code}"
            refused += answer.status_code == 400
    assert refused > 1000
    assert ask(collector, "/api/v1/clusters").status_code == 200


def test_other_methods_and_other_paths_are_problems(collector, document):
    for path, item in document.json["paths"].items():
        for real in paths_of(path)[:1]:
            for method in {"get", "put", "post", "delete", "patch"} - set(item):
                answer = collector.session.request(method, collector.url + real, timeout=10)
                assert answer.status_code == 405, f"{method} {real}: {answer.status_code}"
                assert method.upper() not in answer.headers["Allow"].split(", ")
                assert answer.json()["status"] == 405
    assert ask(collector, "/api/v1/nothing").status_code == 404


def test_an_answer_that_is_known_comes_without_body(collector, document):
    query = {"layer": "storage", "metric": "write_bytes", "cluster": FSID, "by": "device", "from": "1796000000", "to": "1796003600",
             "step": "10s"}
    first = ask(collector, "/api/v1/series", params=query)
    assert first.status_code == 200 and first.headers["Content-Encoding"] == "gzip"
    plain = ask(collector, "/api/v1/series", params=query, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers and plain.text == first.text
    assert plain.headers["ETag"] == first.headers["ETag"]
    known = ask(collector, "/api/v1/series", params=query, headers={"If-None-Match": first.headers["ETag"]})
    assert known.status_code == 304 and not known.content
    document.check(document.json["paths"]["/api/v1/series"]["get"], known)


def pages(collector, path, key, query):
    found, cursor = [], ""
    while cursor is not None:
        answer = ask(collector, path, params={**query, "cursor": cursor, "limit": "4"}).json()
        assert len(answer[key]) <= 4
        found += answer[key]
        cursor = answer["cursor"]
    return found


def test_pages_of_curves_are_the_whole(collector):
    query = {"layer": "storage", "metric": "write_bytes", "cluster": FSID, "by": "device", "from": "-1m"}
    query["to"] = str(int(collector.newest("diskstats")))
    whole = ask(collector, "/api/v1/series", params=query).json()["series"]
    assert len(whole) == 15
    paged = pages(collector, "/api/v1/series", "series", query)

    def order(curve):
        return f"{curve['host']}/{curve['key']}"
    assert [order(curve) for curve in paged] == sorted(order(curve) for curve in whole)
    ratio = {"upper": "osd", "by": "host", "cluster": FSID, "from": "-1m", "to": query["to"]}
    assert len(pages(collector, "/api/v1/ratio", "series", ratio)) == 5
    top = ask(collector, "/api/v1/ratio", params={**ratio, "top": "2"}).json()["series"]
    means = {curve["key"]: sum(value or 0 for value in curve["lower"])
             for curve in ask(collector, "/api/v1/ratio", params=ratio).json()["series"]}
    assert [curve["key"] for curve in top] == sorted(means, key=means.get, reverse=True)[:2]


def test_the_export_has_what_the_calls_have(collector):
    import csv  # pylint: disable=import-outside-toplevel
    query = {"layer": "storage", "metric": "write_bytes", "cluster": FSID, "by": "device", "from": "-1m"}
    query["to"] = str(int(collector.newest("diskstats")))
    curves = ask(collector, "/api/v1/series", params=query).json()["series"]
    answer = ask(collector, "/api/v1/export", params={"what": "series", **query})
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(answer.text.splitlines()))
    expected = [(curve["host"], curve["key"], moment, value) for curve in curves for moment, value in zip(curve["t"], curve["value"])]
    assert [(row["host"], row["key"], float(row["t"]), float(row["value"]) if row["value"] else None) for row in rows] == expected
    devices = collector.get("/devices", limit=1000)["devices"]
    rows = list(csv.DictReader(ask(collector, "/api/v1/export", params={"what": "devices"}).text.splitlines()))
    assert [row["identity"] for row in rows] == [device["identity"] for device in devices]
    assert list(rows[0]) == list(devices[0])
    assert len(list(csv.DictReader(ask(collector, "/api/v1/export", params={"what": "devices", "limit": "4"}).text.splitlines()))) == 4
    rows = list(csv.DictReader(ask(collector, "/api/v1/export", params={"what": "ladder", "cluster": FSID}).text.splitlines()))
    assert {row["layer"] for row in rows} == {"filesystem", "osd", "objectstore", "storage"}
    ladders = ask(collector, "/api/v1/ladder", params={"cluster": FSID, "by": "host"}).json()["ladders"]
    rows = list(csv.DictReader(ask(collector, "/api/v1/export", params={"what": "ladder", "cluster": FSID, "by": "host"}).text.splitlines()))
    assert [key for key, _ in itertools.groupby(row["key"] for row in rows)] == [ladder["key"] for ladder in ladders] and len(ladders) > 1
    assert collector.problem("GET", "/export?what=export", 400) and collector.problem("GET", "/export?what=devices&layer=osd", 400)


def test_the_command_line_prints_the_export(collector):
    def strata(*arguments):
        return subprocess.run([STRATA, f"--url={collector.url}", "export", *arguments], capture_output=True, text=True, check=False,
                              timeout=30)
    for what in ("devices", "osds", "clusters", "agents", "plans", "ladder"):
        fixed = {"what": what} if what != "ladder" else {"what": what, "cluster": FSID, "from": "1796000000", "to": "1796003600"}
        done = strata(what, *(["--from=1796000000", "--to=1796003600"] if what == "ladder" else []))
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == ask(collector, "/api/v1/export", params=fixed).text.splitlines()[0]
        assert len(lines) > 1, done.stdout
    done = strata("series", "--layer=storage", "--metric=write_bytes", "--by=host", "--top=2", "--step=1s", "--from=-1m")
    assert done.returncode == 0, done.stderr
    assert len({line.split(",")[0] for line in done.stdout.splitlines()[1:]}) == 2
    done = strata("series", "--layer=storage")
    assert done.returncode == 1 and "metric is missing" in done.stderr
    assert strata().returncode == 2
