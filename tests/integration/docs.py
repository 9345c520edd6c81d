#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documents say what is so: their commands run, their links lead somewhere, options and constants agree.

    tests/integration/docs.py build/release/wattgov

Commands are those of the ```sh blocks in README.md, docs/serving.md, docs/traces.md and docs/virtual-gpu.md. They run as they
stand, by bash, in an empty folder in which the programs and the data lie where the documents have them.
Lines that call tools/ are not run: they build and test the whole project; only their scripts must exist.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PROGRAM = None
RUNNABLE = ("README.md", "docs/serving.md", "docs/traces.md", "docs/virtual-gpu.md", "docs/wave.md")
SCHEMES = ("http://", "https://", "#")


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def shell_blocks(document):
    return re.findall(r"^```sh\n(.*?)^```$", read(document), flags=re.DOTALL | re.MULTILINE)


def documents():
    yield "README.md"
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in names:
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def help_text(*command):
    done = subprocess.run([PROGRAM, *command, "--help"], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    return done.stdout


class Commands(unittest.TestCase):
    def test_the_commands_of_the_documents_run(self):
        for document in RUNNABLE:
            blocks = shell_blocks(document)
            self.assertTrue(blocks, f"{document} has no command")
            with tempfile.TemporaryDirectory() as folder:
                os.makedirs(os.path.join(folder, "build/release"))
                os.symlink(PROGRAM, os.path.join(folder, "build/release/wattgov"))
                os.symlink(os.path.join(os.path.dirname(PROGRAM), "vgpu"), os.path.join(folder, "build/release/vgpu"))
                os.symlink(os.path.join(os.path.abspath(ROOT), "data"), os.path.join(folder, "data"))
                # Virtual machines that others run meanwhile stay out of sight.
                environment = dict(os.environ, XDG_RUNTIME_DIR=folder, TMPDIR=folder)
                for block in blocks:
                    lines = [line for line in block.splitlines() if not line.startswith("tools/")]
                    script = "\n".join(["set -eu", *lines, ""])
                    done = subprocess.run(["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, env=environment,
                                          stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
                    self.assertEqual(done.returncode, 0, f"{document}:\n{block}\n{done.stdout}")

    def test_the_examples_of_wave_run(self):
        """Those of the helps and of the manual that read no file but what is built in."""
        lines = {line.strip() for name in ("analyze", "plan", "sweep", "import", "calibrate", "evaluate")
                 for line in help_text("wave", name).split("examples:\n")[1].splitlines()}
        manual = read("man/wattgov-wave.1.scd").replace("\\_", "_")
        lines |= set(re.findall(r"^(?:Example: \*)?(wattgov wave [a-z]+ [^*_\[\n]+?)\*?$", manual, flags=re.MULTILINE))
        ran = 0
        with tempfile.TemporaryDirectory() as folder:
            for line in sorted(lines):
                words = line.split()[1:]
                read_files = [word for word, before in zip(words[1:], words) if re.search(r"\.[a-z]+$", word)
                              and before not in ("-o", "--output", "--html", "--csv", "--batches")]
                if not words or read_files:
                    continue
                done = subprocess.run([PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False, cwd=folder)
                self.assertEqual((done.returncode, done.stderr), (0, ""), line)
                ran += 1
        self.assertGreaterEqual(ran, 8)

    def test_the_scripts_that_the_documents_name_exist(self):
        for document in documents():
            # `bench/power_limit` is a program that is built.
            for name in set(re.findall(r"\b((?:tools|bench|tests)/[\w./-]*\w)", read(document))):
                found = [name, name + ".c"]
                self.assertTrue(any(os.path.exists(os.path.join(ROOT, path)) for path in found),
                                f"{document} names {name}")

    def test_the_links_of_the_documents_lead_somewhere(self):
        for document in documents():
            for link in re.findall(r"\]\(([^)\s]+)\)", read(document)):
                if not link.startswith(SCHEMES):
                    path = os.path.join(ROOT, os.path.dirname(document), link.split("#")[0])
                    self.assertTrue(os.path.exists(path), f"{document} links to {link}")


class Agreement(unittest.TestCase):
    def test_manuals_and_helps_have_the_same_options(self):
        commands = [[name] for name in re.findall(r"^  ([a-z]+)  ", help_text(), flags=re.MULTILINE)]
        at = commands.index(["simulate"])
        commands[at:at + 1] = [["simulate", "training"], ["simulate", "serving"], ["simulate", "tuning"]]
        for command in commands:
            text = help_text(*command)
            if text.startswith(f"usage: wattgov {' '.join(command)} COMMAND"):  # one manual for its children
                children = re.findall(r"^  ([a-z]+)  ", text, flags=re.MULTILINE)
                text = "".join(help_text(*command, child) for child in children)
            listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, flags=re.MULTILINE)
            manual = read(f"man/wattgov-{'-'.join(command)}.1.scd")
            described = re.findall(r"^(?:\*-\w\*, )?\*(--[\w-]+)\*", manual, flags=re.MULTILINE)
            self.assertEqual(len(described), len(set(described)), command)
            self.assertEqual(sorted(set(listed)), sorted(described), command)
            self.assertIn(f"*wattgov {' '.join(command)}*", read("man/wattgov.1.scd"))

    def test_manual_and_help_have_the_same_defaults(self):
        for command, least in (("training", 9), ("serving", 4)):
            text = re.sub(r"\s+", " ", help_text("simulate", command))
            manual = re.sub(r"\s+", " ", read(f"man/wattgov-simulate-{command}.1.scd"))
            found = 0
            for option in re.findall(r"(--[\w-]+) [A-Z@]+ ", text):
                of_help = re.search(rf"{option} [A-Z@]+ (.*?)(?= --[\w-]+ [A-Z@]+ | --json )", text)
                default = re.search(r"default: (\d[\d.]*)\b", of_help.group(1)) if of_help else None
                if default:
                    of_manual = re.search(rf"\*{option}\* .*?Default: (\d[\d.]*\d|\d)", manual)
                    self.assertIsNotNone(of_manual, option)
                    self.assertEqual(of_manual.group(1), default.group(1), option)
                    found += 1
            self.assertGreaterEqual(found, least)

    def test_the_manual_names_the_commands(self):
        for command in re.findall(r"^  ([a-z]+) ", help_text("simulate"), flags=re.MULTILINE):
            self.assertIn(f"*wattgov simulate {command}*", read("man/wattgov.1.scd"))

    def test_the_policy_document_has_every_constant(self):
        header = read("src/optimize/governor_constants.h")
        table = re.search(r"#define WG_GOVERNOR_CONSTANTS\(X\)(.*?[^\\])\n", header, flags=re.DOTALL).group(1)
        constants = re.findall(r"^ +X\((\w+), [-.\d]+,", table, flags=re.MULTILINE)
        self.assertEqual(len(constants), table.count("X("))
        rows = re.findall(r"^\| (`[^|]*) \|", read("docs/internals/training-policy.md"), flags=re.MULTILINE)
        described = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
        self.assertEqual(sorted(described), sorted(constants))

    def test_the_document_of_the_formats_has_every_column(self):
        text = read("docs/traces.md")
        for name in ("data/training_jobs.csv", "tests/golden/tiny_trace/jobs.csv"):
            for column in read(name).splitlines()[0].split(","):
                self.assertIn(f"`{column}`", text)

    def test_readme_keeps_the_marks_of_its_table(self):
        for end in ("begin", "end"):
            self.assertEqual(read("README.md").count(f"<!-- results of bench/training_results.py: {end} -->"), 1)


class FieldReports(unittest.TestCase):
    COUNT = 84

    def setUp(self):
        rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", read("docs/field-reports.md"),
                          flags=re.MULTILINE)
        self.numbers = [int(row[0]) for row in rows]
        self.answers = {int(row[0]): row[3] for row in rows}

    def test_each_report_stands_once(self):
        self.assertEqual(self.numbers, list(range(1, self.COUNT + 1)))

    def test_each_report_has_tests_that_exist_or_a_reason(self):
        for number, answer in self.answers.items():
            if re.match(r"not: \w", answer):
                continue
            files = answer.split("; ")
            for one in files:
                match = re.fullmatch(r"`(tests/[\w./]+)`: (`\w+`(?:, `\w+`)*)", one)
                self.assertIsNotNone(match, f"row {number}: {one}")
                text = read(match.group(1))
                for name in re.findall(r"\w+", match.group(2)):
                    self.assertRegex(text, rf"\b{name}\(", f"row {number}: {match.group(1)}")

    def test_reports_that_tests_name_are_not_left_out(self):
        found = 0
        for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
            for name in sorted(names):
                # Those of the virtual GPU show that it can play a report, not that wattgov stands it.
                if not name.endswith((".c", ".h", ".py")) or name.startswith("test_vgpu"):
                    continue
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                for match in re.finditer(r"\b[Ff]ield reports? ((?:\d+(?:, | and )?)+)", read(path)):
                    for number in map(int, re.findall(r"\d+", match.group(1))):
                        self.assertFalse(self.answers[number].startswith("not: "), f"{path} names report {number}")
                        found += 1
        self.assertGreater(found, 50)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
