"""The rules of the source tree, as tests: who may include whom, and where a library stops.

    layering.py ROOT        prints TAP

Each rule is a function over a tree that yields its violations, and each is tried twice: on the
tree, where it must find nothing, and on a small tree that breaks it, where it must find something.
"""
import os
import re
import sys
import tempfile

PROGRAMS = ("agentd", "collectord", "cli")
CODE = PROGRAMS + ("lib",)
SKIPPED_FOLDERS = re.compile(r"^(\.git|\.cache|\.pytest_cache|__pycache__|node_modules|artefacts|build.*)$")
TEXT = (".c", ".h", ".py", ".js", ".css", ".html", ".md", ".build", ".txt", ".conf", ".service", ".json", ".sh", "")

# What each foreign header is fenced into. A library's types and codes stop there.
FENCES = (
    (r"sqlite3(ext)?\.h", r"collectord/store[-a-z]*\.[ch]"),
    (r"microhttpd\.h", r"collectord/server\.c"),
    (r"curl/.*", r"agentd/upload\.c|cli/client\.c"),
    (r"rados/.*", r"agentd/source-ceph\.c"),
    (r"zstd\.h|xxhash\.h", r"lib/block[-a-z]*\.[ch]|collectord/encoding\.c"),
    (r"zlib\.h", r"collectord/encoding\.c"),
    (r"ini\.h", r"lib/config\.c"),
    (r"gnutls/.*", r"collectord/(auth|server)\.c"),
)
# Names that say nothing about what is inside.
EMPTY_NAMES = re.compile(r"^(utils?|common|misc|helpers?|strata|all)\.[ch]$")
# Assembled, so that this file does not break its own rule.
MACHINE_PATHS = re.compile("|".join((
    r"(?<![\w.])/" + r"work/(main|shared)",
    r"\.\./" + r"shared\b",
    r"/var/tmp/" + r"(build-|c/|brief)",
    r"/root/" + r"\.",
    r"https?://[^/\s\"']*" + r"(registry|artifact|nexus)[^\s\"']*",
)))


class Tree:
    """The tree's text files by their path from the root."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not SKIPPED_FOLDERS.match(name)]
            for name in set(names) - {".git"}:  # in a worktree it is a file
                path = os.path.join(folder, name)
                if os.path.splitext(name)[1] in TEXT and not os.path.islink(path):
                    with open(path, encoding="utf-8", errors="replace") as file:
                        self.files[os.path.relpath(path, root)] = file.read()

    def sources(self, *folders):
        for path, text in sorted(self.files.items()):
            if path.endswith((".c", ".h")) and path.split("/")[0] in folders:
                yield path, text

    def includes(self, *folders):
        """path, line, delimiter, target of each #include."""
        for path, text in self.sources(*folders):
            for number, line in enumerate(text.splitlines(), 1):
                match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
                if match:
                    yield path, number, match.group(1), match.group(2)


def programs_never_include_each_other(tree):
    for path, line, _, target in tree.includes(*PROGRAMS):
        folder, of = path.split("/")[0], target.split("/")[0]
        if of in PROGRAMS and of != folder:
            yield f"{path}:{line}: includes {target}"


def lib_includes_no_program(tree):
    for path, line, _, target in tree.includes("lib"):
        if target.split("/")[0] in PROGRAMS:
            yield f"{path}:{line}: includes {target}"


def product_code_never_includes_tests(tree):
    for path, line, _, target in tree.includes(*CODE):
        if target.startswith("tests/") or target == "cmocka.h":
            yield f"{path}:{line}: includes {target}"


def each_foreign_library_stays_in_its_file(tree):
    reached = {}
    for path, _, _, target in tree.includes(*CODE):
        reached.setdefault(path, set()).add(target)

    def all_from(path, seen):
        for target in reached.get(path, ()):
            if target not in seen:
                seen.add(target)
                all_from(target, seen)
        return seen

    for path in sorted(reached):
        # Through the headers of our own, too: a library's types must not travel in them.
        for target in sorted(all_from(path, set())):
            for header, allowed in FENCES:
                if re.fullmatch(header, target) and not re.fullmatch(allowed, path):
                    yield f"{path}: sees {target}, which belongs in {allowed}"


def own_includes_are_rooted_and_exist(tree):
    for path, line, delimiter, target in tree.includes(*CODE, "tests"):
        beside = os.path.join(os.path.dirname(path), target)
        if delimiter == '"' and target not in tree.files and not (path.startswith("tests/") and beside in tree.files):
            yield f"{path}:{line}: \"{target}\" is no path from the top of the tree"


def headers_are_guarded(tree):
    for path, text in tree.sources(*CODE):
        # A list of macro calls is included more than once on purpose, and says so.
        if path.endswith(".h") and not text.startswith("#pragma once\n") and "No #pragma once" not in text:
            yield f"{path}: does not begin with #pragma once and does not say why"


def no_header_is_an_umbrella(tree):
    for path, text in tree.sources(*CODE):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S).split("\n")
        rest = [line for line in code if line.strip() and not re.match(r"\s*#\s*(include|pragma)", line)]
        if path.endswith(".h") and not rest:
            yield f"{path}: only includes others"


def files_have_telling_names(tree):
    for path, _ in tree.sources(*CODE):
        if EMPTY_NAMES.match(os.path.basename(path)):
            yield f"{path}: says nothing about what is inside"


def no_code_lies_at_the_top(tree):
    for path in tree.files:
        if "/" not in path and path.endswith((".c", ".h")):
            yield f"{path}: belongs into a folder"


def no_file_names_a_path_of_one_machine(tree):
    for path, text in sorted(tree.files.items()):
        for number, line in enumerate(text.splitlines(), 1):
            match = MACHINE_PATHS.search(line)
            if match:
                yield f"{path}:{number}: names {match.group(0)}"


def links_in_the_documents_lead_somewhere(tree):
    for path, text in sorted(tree.files.items()):
        if not path.endswith(".md"):
            continue
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target and not target.startswith("mailto:"):
                where = os.path.normpath(os.path.join(tree.root, os.path.dirname(path), target))
                if not os.path.exists(where):
                    yield f"{path}: links to {target}, which is missing"


# Each rule with a file that breaks it.
RULES = (
    (programs_never_include_each_other, "agentd/a.c", '#include "collectord/store.h"\n'),
    (lib_includes_no_program, "lib/a.c", '#include "agentd/source.h"\n'),
    (product_code_never_includes_tests, "lib/a.c", "#include <cmocka.h>\n"),
    (each_foreign_library_stays_in_its_file, "collectord/query.c", "# include <sqlite3.h>\n"),
    (own_includes_are_rooted_and_exist, "lib/a.c", '#include "block.h"\n'),
    (headers_are_guarded, "lib/a.h", "int a_open(void);\n"),
    (no_header_is_an_umbrella, "lib/a.h", '#pragma once\n/* All. */\n#include "lib/b.h"\n'),
    (files_have_telling_names, "lib/util.c", "int a;\n"),
    (no_code_lies_at_the_top, "main.c", "int a;\n"),
    (no_file_names_a_path_of_one_machine, "docs/a.md", "see /" + "work/main/a\n"),
    (links_in_the_documents_lead_somewhere, "docs/a.md", "[a](missing.md)\n"),
)


def finds_a_violation(rule, path, text):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)
        return bool(list(rule(Tree(root))))


def main():
    tree = Tree(sys.argv[1])
    failed, number = 0, 0
    print(f"1..{2 * len(RULES)}")
    for rule, path, text in RULES:
        violations = list(rule(tree))
        name = rule.__name__
        for good, title, lines in ((not violations, name, violations),
                                   (finds_a_violation(rule, path, text), f"{name}_is_noticed_when_broken", [])):
            number += 1
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {title}")
            for line in lines:
                print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
