#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python binding as programs use it: import, pip, what cannot be measured, windows, documents.

    tests/integration/python.py build/release

Needs a python3 that has cffi (Debian: python3-cffi) and a C compiler; else everything is skipped with status 77.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from python_binding import BUILD, ROOT, Binding, fake_sysfs, main, read


class Import(Binding):
    def test_import_loads_no_library_and_no_parser(self):
        names, maps = self.values("""
            import sys, json
            import wattgov
            with open("/proc/self/maps") as file:
                print(json.dumps([sorted(sys.modules), file.read()]))
        """, prelude="")
        for module in ("cffi", "pycparser", "typing", "dataclasses", "inspect", "numpy", "multiprocessing", "asyncio"):
            self.assertNotIn(module, names)
        self.assertNotIn("libwattgov", maps)

    def test_import_time_is_printed(self):
        cache = {"PYTHONPYCACHEPREFIX": os.path.join(self.folder, "cache"), "PYTHONDONTWRITEBYTECODE": ""}
        times_ms = []
        for _ in range(5):
            done = subprocess.run([sys.executable, "-X", "importtime", "-c", "import wattgov"], stderr=subprocess.PIPE,
                                  text=True, check=True, timeout=60, env=self.environment(**cache))
            times_ms.append(int(re.search(r"\| +(\d+) \| wattgov$", done.stderr, flags=re.MULTILINE).group(1)) / 1e3)
        print(f"import wattgov: {min(times_ms):.1f} ms (best of {len(times_ms)}; bench/python_import.py measures)")
        self.assertLess(min(times_ms[1:]), 1000)

    def test_layouts_are_those_of_the_c_compiler(self):
        layouts = self.values("""
            import json
            from wattgov._abi import ffi
            names = [name for name in ffi.list_types()[1] if ffi.typeof("struct " + name).fields]
            print(json.dumps({name: [ffi.sizeof("struct " + name), {field: info.offset for field, info in
                              ffi.typeof("struct " + name).fields}] for name in names}))
        """, prelude="")
        self.assertGreaterEqual(len(layouts), 10)
        lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <wattgov/wattgov.h>", "int main(void) {"]
        for name, (_, fields) in layouts.items():
            lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            lines += [f'printf("{name}.{field} %zu\\n", offsetof(struct {name}, {field}));' for field in fields]
        source, program = os.path.join(self.folder, "layout.c"), os.path.join(self.folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "return 0; }", ""]))
        subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", program, source], check=True, timeout=60)
        of_c = dict(line.split() for line in subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True,
                                                            timeout=60).stdout.splitlines())
        for name, (size, fields) in layouts.items():
            self.assertEqual(int(of_c[name]), size, name)
            for field, offset in fields.items():
                self.assertEqual(int(of_c[f"{name}.{field}"]), offset, f"{name}.{field}")

    def test_classes_have_the_fields_of_the_structs(self):
        pairs = self.values("""
            import json
            import wattgov
            from wattgov._abi import ffi
            pairs = [(wattgov.Result, "wg_window_result"), (wattgov.Device, "wg_device_info"),
                     (wattgov.MeterInfo, "wg_meter_info"), (wattgov.KnobInfo, "wg_knob_info"),
                     (wattgov.Backend, "wg_backend_info")]
            print(json.dumps([[kind.__name__, kind.__slots__, list(kind.__annotations__),
                               [name for name, _ in ffi.typeof("struct " + struct).fields]]
                              for kind, struct in pairs]))
        """, prelude="")
        own = {"Result": {"name", "why_not", "devices"}}
        for name, slots, annotations, fields in pairs:
            self.assertEqual(slots, annotations)
            # Arrays have no count of their own in Python.
            fields = {field for field in fields if field not in ("mig_count", "level_count")}
            self.assertEqual(set(slots) - own.get(name, set()), fields, name)

    def test_a_library_that_is_not_there_is_named(self):
        done = self.run_python("""
            try:
                wattgov.version()
            except wattgov.WattgovError as error:
                print(error.code, error)
        """, WATTGOV_LIBRARY="/nowhere/libwattgov.so.0")
        self.assertIn("ENOENT cannot load /nowhere/libwattgov.so.0", done.stdout)
        self.assertIn("WATTGOV_LIBRARY", done.stdout)

    def test_version_is_that_of_the_build(self):
        version = re.search(r"^  version: '([\d.]+)'", read("meson.build"), flags=re.MULTILINE).group(1)
        self.assertEqual(self.run_python("print(wattgov.version())").stdout, version + "\n")

    def test_pip_installs_it_from_a_checkout(self):
        venv = os.path.join(self.folder, "venv")
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", venv], check=True, timeout=60)
        done = subprocess.run([os.path.join(venv, "bin/pip"), "install", "--quiet", "--no-build-isolation", "--no-index",
                               "--no-deps", os.path.join(ROOT, "bindings/python")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.run_python("print(wattgov.__file__, wattgov.version())", python=os.path.join(venv, "bin/python"),
                               PYTHONPATH="")
        self.assertTrue(done.stdout.startswith(venv), done.stdout)
        self.assertEqual(glob.glob(os.path.join(ROOT, "bindings/python/**/_abi.py"), recursive=True), [])


class Unmeasured(Binding):
    def test_a_machine_without_meters_says_so_and_still_tells_the_time(self):
        """Field reports 19, 59 and 63: what cannot be measured is None with a reason, never 0."""
        shutil.rmtree(os.path.join(self.root, "sys"))
        result, backends = self.values("""
            with meter() as m:
                with m.window("nothing") as w:
                    wait_for(lambda: w.time_s > 0.01)
                assert m.devices == []
                print(json.dumps([w.result.as_dict(), [one.as_dict() for one in m.backends]]))
        """)
        self.assertIsNone(result["energy_j"])
        self.assertIsNone(result["power_mean_w"])
        self.assertGreater(result["time_s"], 0.01)
        self.assertEqual(result["source"], "none")
        self.assertIn("no device", result["why_not"])
        self.assertIn("rapl", result["why_not"])
        for backend in backends:
            self.assertEqual(backend["device_count"], 0)
            self.assertTrue(backend["text"])

    def test_repr_says_that_energy_is_unknown_and_why(self):
        shutil.rmtree(os.path.join(self.root, "sys"))
        done = self.run_python("""
            with meter() as m, m.window("nothing") as w:
                pass
            print(w)
        """)
        self.assertRegex(done.stdout, r"^<Window 'nothing': energy unknown \(no device; .*rapl.*\) in [\d.e-]+ s")

    def test_a_gpu_that_is_not_there_is_an_error_of_its_own(self):
        done = self.run_python("""
            for wrong in ("GPU-no-such", [-7], "x,y"):
                try:
                    wattgov.Meter(gpus=wrong, root=ROOT)
                except wattgov.WattgovError as error:
                    assert error.number < 0
                    print(error.code, error)
        """)
        self.assertEqual(len(done.stdout.splitlines()), 3, done.stdout)
        for line in done.stdout.splitlines():
            self.assertTrue(line.startswith("EINVAL "), line)


class Documents(Binding):
    def test_the_examples_of_the_documents_run(self):
        for document in ("docs/python.md", "README.md"):
            for block in re.findall(r"^```python\n(.*?)^```$", read(document), flags=re.DOTALL | re.MULTILINE):
                with self.subTest(document, block=block):
                    self.assertTrue(self.run_python(block, prelude="").stdout)

    def test_the_bench_of_import_prints_its_figures(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "bench/python_import.py"), BUILD], timeout=60,
                              stdout=subprocess.PIPE, text=True, check=True, env=self.environment(RUNS="2"))
        figures = json.loads(done.stdout)
        self.assertGreater(figures["import_ms"]["median"], 0)
        self.assertGreater(figures["first_window_ms"]["median"], 0)


class Windows(Binding):
    def test_energy_is_what_the_counter_turned(self):
        result = self.values("""
            with meter() as m:
                turn(m, 3)
                with m.window("epoch") as w:
                    turn(m, 5)
                turn(m, 7)
                print(json.dumps(w.result.as_dict()))
        """)
        self.assertAlmostEqual(result["energy_j"], 5e-3, delta=0.5e-3)
        self.assertEqual(list(result["devices"]), ["cpu0"])
        self.assertEqual(result["devices"]["cpu0"]["energy_j"], result["energy_j"])
        self.assertEqual(result["source"], "counter")
        self.assertEqual(result["name"], "epoch")
        self.assertIsNone(result["why_not"])
        self.assertGreater(result["time_s"], 0)

    def test_windows_nest_and_overlap_by_name(self):
        outer, inner, second, names = self.values("""
            with meter() as m:
                m.begin("outer")
                turn(m, 1)
                m.begin("inner")
                turn(m, 2)
                m.begin("inner")
                turn(m, 4)
                second = m.end("inner")
                first = m.end("inner")
                turn(m, 8)
                outer = m.end("outer")
                try:
                    m.end("inner")
                except wattgov.WattgovError as error:
                    print(json.dumps([outer.energy_j, first.energy_j, second.energy_j, str(error)]))
        """)
        self.assertAlmostEqual(second, 4e-3, delta=0.4e-3)
        self.assertAlmostEqual(inner, 6e-3, delta=0.6e-3)
        self.assertAlmostEqual(outer, 15e-3, delta=1e-3)
        self.assertIn("no window 'inner' is open", names)

    def test_inside_a_window_values_are_up_to_now(self):
        first, second, last = self.values("""
            with meter() as m:
                with m.window("epoch") as w:
                    turn(m, 2)
                    first = w.energy_j
                    turn(m, 2)
                    second = w.energy_j
                print(json.dumps([first, second, w.energy_j]))
        """)
        self.assertAlmostEqual(first, 2e-3, delta=0.5e-3)
        self.assertAlmostEqual(second, 4e-3, delta=0.5e-3)
        self.assertGreaterEqual(last, second - 1e-12)

    def test_an_exception_ends_the_window_and_passes_through(self):
        done = self.run_python("""
            with meter() as m:
                try:
                    with m.window("epoch") as w:
                        turn(m, 2)
                        raise KeyError("mine")
                except KeyError as error:
                    assert error.args == ("mine",)
                assert not w.is_open and abs(w.energy_j - 2e-3) < 0.3e-3, w
                m.begin("epoch")  # left open by whoever failed: a fresh start is possible, and close ends it
                left = m.begin("epoch")
                turn(m, 4)
                assert abs(m.end("epoch").energy_j - 4e-3) < 0.4e-3
            assert not left.is_open
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_results_outlive_their_meter(self):
        done = self.run_python("""
            with meter() as m:
                with m.window("read late") as w:
                    turn(m, 2)
                left_open = m.begin("left open")
                turn(m, 1)
            assert abs(w.energy_j - 2e-3) < 0.3e-3, w
            assert abs(left_open.energy_j - 1e-3) < 0.3e-3, left_open
            for call in (lambda: m.begin("x"), lambda: m.devices, lambda: m.window("y").begin()):
                try:
                    call()
                except wattgov.WattgovError as error:
                    print(error.code, error)
            m.close()
            print(m)
        """)
        self.assertEqual(done.stdout, "ESTATE the meter is closed\n" * 3 + "<Meter, closed>\n")

    def test_devices_are_chosen_by_label_or_id(self):
        shutil.rmtree(self.root)
        fake_sysfs(self.root, ("package-0", "package-1"))
        done = self.run_python("""
            with meter() as m:
                one, other = m.devices
                assert (one.label, other.label, one.kind) == ("cpu0", "cpu1", "cpu"), m.devices
                with m.window("a", devices="cpu1") as a, m.window("b", devices=["cpu0", other.id]) as b:
                    pass
                print(list(a.devices), list(b.devices))
                try:
                    m.begin("c", devices=["gpu7"])
                except wattgov.WattgovError as error:
                    print(error.code, error)
            with meter(devices=["cpu1"]) as m, m.window("d") as d:
                pass
            print(list(d.devices))
        """)
        self.assertEqual(done.stdout.splitlines(), ["['cpu1'] ['cpu0', 'cpu1']",
                                                    "ENODEV no device 'gpu7'; there are: cpu0, cpu1", "['cpu1']"])

    def test_devices_tell_what_is_missing_and_why(self):
        (device,) = self.values("""
            print(json.dumps([one.as_dict() for one in wattgov.devices(gpus="none", root=ROOT)]))
        """)
        self.assertEqual(device["label"], "cpu0")
        self.assertEqual(device["state"], "OK")
        self.assertTrue(device["meters"]["energy_j"]["is_present"])
        self.assertIn("energy_uj", device["meters"]["energy_j"]["source"])
        for key, one in device["meters"].items():
            self.assertEqual(one["why_not"] is None, one["is_present"], key)
        for key, one in device["knobs"].items():
            self.assertEqual(one["why_not"] is None, one["is_present"] and one["is_writable"], key)


if __name__ == "__main__":
    main(__doc__)
