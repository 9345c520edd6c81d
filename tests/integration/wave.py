#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov wave` as its users call it.

    wave.py PROGRAM
"""
import os
import re
import subprocess
import sys
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PROGRAM = None


def run(*arguments, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, "wave", *arguments], stderr=subprocess.PIPE, text=True, timeout=100, check=False,
                          **kwargs)


class Help(unittest.TestCase):
    def test_every_command_explains_itself(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for command in re.findall(r"^  ([a-z]+)  ", done.stdout, flags=re.MULTILINE):
            done = run(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertTrue(done.stdout.startswith(f"usage: wattgov wave {command} "), done.stdout)

    def test_what_is_no_command_is_wrong_usage(self):
        for words in ([], ["analyse"], ["--json"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertTrue(done.stderr.startswith("wattgov wave: "), done.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
