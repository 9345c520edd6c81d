#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libwattgov as a C or C++ program meets it: exported names, installed files, pkg-config, the headers' examples.

    tests/integration/library.py build/release

The installed tree is a temporary one (`meson install --destdir`); programs are compiled against it and nothing
else, with the compilers of the machine. The example of each public header is the indented code in its first
comment: statements of a main() that runs on any machine.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = None
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def headers():
    return sorted(glob.glob(os.path.join(ROOT, "include/wattgov/*.h")))


def run(*command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          check=False, **kwargs)


def declared():
    names = []
    for path in headers():
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.DOTALL)
        names += re.findall(r"^WG_API [^;(]*?\b(\w+)\(", text, flags=re.MULTILINE)
    return sorted(names)


def statements(path):
    """The example in a header's first comment."""
    comment = re.match(r"/\*.*?\*/", read(path), flags=re.DOTALL).group(0)
    return "\n".join(re.findall(r"^ \*     (.*)$", comment, flags=re.MULTILINE))


class Names(unittest.TestCase):
    def test_headers_map_and_library_have_the_same_names(self):
        listed = re.findall(r"^ +(wg_\w+);$", read("src/wattgov.map"), flags=re.MULTILINE)
        self.assertEqual(len(listed), len(set(listed)))
        self.assertEqual(sorted(listed), declared())
        symbols = run("nm", "-D", "--defined-only", os.path.join(BUILD, "src/libwattgov.so")).stdout
        exported = re.findall(r"^[0-9a-f]+ T (\w+)@@(WATTGOV_\d+\.\d+)$", symbols, flags=re.MULTILINE)
        self.assertEqual(sorted(name for name, _ in exported), declared())
        others = [line for line in symbols.splitlines() if not re.search(r" T wg_\w+@@| A WATTGOV_", line)]
        self.assertEqual(others, [])

    def test_the_manual_names_every_function_and_no_other(self):
        manual = read("man/libwattgov.3.scd").replace("\\_", "_")
        self.assertEqual(set(re.findall(r"\*(wg_\w+)\*\(\)", manual)), set(declared()))

    def test_soname_and_needs(self):
        text = run("readelf", "--dynamic", os.path.join(BUILD, "src/libwattgov.so")).stdout
        self.assertIn("Library soname: [libwattgov.so.0]", text)
        needed = re.findall(r"NEEDED\).*\[(.*?)\.so", text)
        # Nothing of a driver, a sanitizer or a terminal comes in.
        self.assertEqual(set(needed) - {"libc", "libm", "libz", "libjansson", "ld-linux-x86-64", "ld-linux-aarch64"},
                         set())


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        done = run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.pkg_config = os.path.dirname(cls.find("wattgov.pc"))
        cls.libraries = os.path.dirname(cls.find("libwattgov.so.0"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def find(cls, name):
        found = glob.glob(os.path.join(cls.folder, "**", name), recursive=True)
        if len(found) != 1:
            raise AssertionError(f"{name}: installed as {found}")
        return found[0]

    def flags(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=self.pkg_config, PKG_CONFIG_SYSROOT_DIR=self.folder)
        done = run("pkg-config", "--cflags", "--libs", "wattgov", env=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()

    def program(self, code, compiler):
        """Compiles and runs; returns what it wrote."""
        source = os.path.join(self.folder, "program.c" if "++" not in compiler[0] else "program.cc")
        with open(source, "w", encoding="utf-8") as file:
            file.write(code)
        path = os.path.join(self.folder, "program")
        done = run(*compiler, *WARNINGS, "-o", path, source, *self.flags())
        self.assertEqual(done.returncode, 0, f"{code}\n{done.stdout}")
        done = run(path, env=dict(os.environ, LD_LIBRARY_PATH=self.libraries))
        self.assertEqual(done.returncode, 0, f"{code}\n{done.stdout}")
        return done.stdout

    def test_every_header_is_installed_and_stands_alone(self):
        for path in headers():
            name = os.path.basename(path)
            self.find(os.path.join("wattgov", name))
            for compiler in (["cc", "-std=c11"], ["c++", "-std=c++17"]):
                self.program(f"#include <wattgov/{name}>\n#include <wattgov/{name}>\nint main(void) {{ return 0; }}\n",
                             compiler)

    def test_a_c_and_a_cxx_program_see_the_version_of_the_build(self):
        code = '#include <stdio.h>\n#include <wattgov/wattgov.h>\nint main(void) { return puts(wg_version()) < 0; }\n'
        version = re.search(r"version: '([\d.]+)'", read("meson.build")).group(1)
        for compiler in (["cc", "-std=c11"], ["cc", "-std=gnu17"], ["c++", "-std=c++17"]):
            self.assertEqual(self.program(code, compiler), version + "\n")

    def test_the_program_of_the_readme_runs(self):
        programs = re.findall(r"^```c\n(.*?)^```$", read("README.md"), flags=re.DOTALL | re.MULTILINE)
        self.assertEqual(len(programs), 1)
        self.assertRegex(self.program(programs[0], ["cc", "-std=c11"]), r"^(nan|\d+\.\d) J \+- (nan|\d+\.\d) J in \d+\.\d\d s\n")

    def test_the_example_of_each_header_runs(self):
        for path in headers():
            example = statements(path)
            self.assertTrue(example, f"{path} has no example")
            code = "\n".join(["#include <stdio.h>", "#include <wattgov/wattgov.h>",
                              "void train_one_epoch(void);", "void train_one_epoch(void) {}",
                              "void train_one_step(void);", "void train_one_step(void) {}",
                              "double evaluate(void);", "double evaluate(void) { return 0.5; }",
                              "enum { steps = 100 };",
                              "int main(void)", "{", example, "return 0;", "}", ""])
            with self.subTest(os.path.basename(path)):
                for compiler in (["cc", "-std=c11"], ["c++", "-std=c++17"]):
                    self.program(code, compiler)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
