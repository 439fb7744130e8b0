"""Counts tests from JUnit XML files and prints `N passed, N failed` (`, N skipped`) as the last line.

    tally.py FILE...        exit 1 when any failed or none passed

A file that is missing or not XML counts as one failure: a stage that died must not look like success.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree


def cases(path):
    """name, outcome, message of each test case."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        yield os.path.basename(path), "failed", f"no results: {error}"
        return
    empty = True
    for case in root.iter("testcase"):
        empty = False
        name = f"{case.get('classname') or ''}.{case.get('name')}".strip(".")
        bad = [child for child in case if child.tag in ("failure", "error")]
        if bad:
            yield name, "failed", (bad[0].get("message") or bad[0].text or "").strip()
        else:
            yield name, "skipped" if case.find("skipped") is not None else "passed", ""
    if empty:
        yield os.path.basename(path), "failed", "no test ran"


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for path in sys.argv[1:]:
        for name, outcome, message in cases(path):
            count[outcome] += 1
            if outcome == "failed":
                print(f"failed: {name}: {message.splitlines()[0][:300] if message else 'see the log'}")
    line = f"{count['passed']} passed, {count['failed']} failed"
    print(line + (f", {count['skipped']} skipped" if count["skipped"] else ""))
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
