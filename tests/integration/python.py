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
import textwrap

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
        done = self.run_python("import wattgov.integrations.lightning\nprint(wattgov.__file__, wattgov.version())", python=os.path.join(venv, "bin/python"),
                               PYTHONPATH="")
        self.assertTrue(done.stdout.startswith(venv), done.stdout)
        self.assertEqual(glob.glob(os.path.join(ROOT, "bindings/python/**/_abi.py"), recursive=True), [])


class Unmeasured(Binding):
    def test_a_machine_without_meters_says_so_and_still_tells_the_time(self):
        """Field reports 19, 59 and 63: what cannot be measured is None with a reason, never 0."""
        shutil.rmtree(os.path.join(self.root, "sys"))
        result, backends = self.values("""
            with meter(gpus="none") as m:
                with m.window("nothing") as w:
                    spend(0.01)
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
            with meter(gpus="none") as m, m.window("nothing") as w:
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
    """On a virtual V100 that idles at 33 W."""

    def run_v100(self, code):
        code = textwrap.dedent(code) + 'print("fine")\n'
        self.assertEqual(self.run_python(code, machine="v100").stdout, "fine\n")

    def test_an_idle_v100_draws_its_33_watts(self):
        result = self.values("""
            with meter(devices="gpu0") as m, m.window("idle") as w:
                spend(0.5)
            print(json.dumps(w.result.as_dict()))
        """, machine="v100")
        self.assertAlmostEqual(result["energy_j"], 33 * result["time_s"], delta=33 * 0.02 * result["time_s"])
        self.assertAlmostEqual(result["power_mean_w"], 33, delta=0.7)
        self.assertEqual(list(result["devices"]), ["gpu0"])
        self.assertEqual(result["devices"]["gpu0"]["energy_j"], result["energy_j"])
        self.assertEqual((result["source"], result["name"], result["why_not"]), ("counter", "idle", None))
        self.assertLess(result["energy_error_j"], 0.05 * result["energy_j"])
        self.assertNotIn("below resolution", result["flags"])

    def test_windows_nest_and_overlap_by_name(self):
        """Field report 56: the parts are never more than the whole."""
        self.run_v100("""
            with meter(devices="gpu0") as m:
                m.begin("outer")
                spend(0.05)
                m.begin("inner")
                spend(0.05)
                m.begin("inner")
                spend(0.1)
                second = m.end("inner")
                spend(0.05)
                first = m.end("inner")
                outer = m.end("outer")
                assert second.energy_j < first.energy_j < outer.energy_j
                assert second.time_s < first.time_s - 0.1 < outer.time_s - 0.15
                assert all(map(is_33_w, (first, second, outer))), (first, second, outer)
                try:
                    m.end("inner")
                except wattgov.WattgovError as error:
                    assert error.code == "ESTATE" and "no window 'inner' is open" in str(error)
                else:
                    raise AssertionError
        """)

    def test_inside_a_window_values_are_up_to_now(self):
        self.run_v100("""
            with meter(devices="gpu0") as m:
                with m.window("epoch") as w:
                    spend(0.2)
                    first = w.result
                    spend(0.2)
                    second = w.result
                assert 0.2 <= first.time_s < second.time_s - 0.2 <= w.time_s - 0.2
                assert is_33_w(first) and is_33_w(second) and is_33_w(w), (first, second, w)
        """)

    def test_an_exception_ends_the_window_and_passes_through(self):
        self.run_v100("""
            with meter(devices="gpu0") as m:
                begun = time.monotonic()
                try:
                    with m.window("epoch") as w:
                        spend(0.1)
                        raise KeyError("mine")
                except KeyError as error:
                    assert error.args == ("mine",)
                most_s = time.monotonic() - begun
                assert not w.is_open
                spend(0.1)
                assert w.time_s <= most_s and is_33_w(w), w
                left = m.begin("epoch")  # by whoever failed: a fresh start is possible, and close ends this one
                m.begin("epoch")
                assert is_33_w(m.end("epoch"))
            assert not left.is_open
        """)

    def test_results_outlive_their_meter(self):
        self.run_v100("""
            with meter(devices="gpu0") as m:
                with m.window("read late") as w:
                    spend(0.1)
                left_open = m.begin("left open")
                spend(0.1)
            assert is_33_w(w) and is_33_w(left_open), (w, left_open)
            for call in (lambda: m.begin("x"), lambda: m.devices, lambda: m.window("y").begin()):
                try:
                    call()
                except wattgov.WattgovError as error:
                    assert (error.code, str(error)) == ("ESTATE", "the meter is closed")
                else:
                    raise AssertionError
            m.close()
            assert repr(m) == "<Meter, closed>"
        """)

    def test_the_newest_sample_tells_power_and_when(self):
        self.run_v100("""
            with meter(devices="gpu0") as m:
                sample = m.latest("gpu0")
                assert abs(sample["power_w"] - 33) < 1 and sample["energy_j"] >= 0, sample
                wait_for(lambda: m.latest("gpu0")["t_ns"] > sample["t_ns"])
                assert m.latest("gpu0")["t_ns"] <= time.monotonic_ns()
        """)

    def test_repr_is_readable(self):
        done = self.run_python("""
            with meter(devices="gpu0") as m, m.window("idle") as w:
                print(m, w)
                spend(0.1)
            print(w)
        """, machine="v100")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^<Meter of .*gpu0.*, every 20 ms> <Window 'idle', open>$")
        self.assertRegex(lines[1], r"^<Window 'idle': [\d.]+ J \+- [\d.]+ J in 0\.\d+ s, 3[23]\.?\d* W.*>$")


class Devices(Binding):
    def test_devices_are_chosen_by_label_or_id(self):
        shutil.rmtree(self.root)
        fake_sysfs(self.root, ("package-0", "package-1"))
        done = self.run_python("""
            import json
            with meter(gpus="none") as m:
                one, other = m.devices
                assert (one.label, other.label, one.kind) == ("cpu0", "cpu1", "cpu"), m.devices
                with m.window("a", devices="cpu1") as a, m.window("b", devices=["cpu0", other.id]) as b:
                    pass
                print(list(a.devices), list(b.devices))
                with m.window("twice", devices=["cpu0", one.id, "cpu0"]) as twice:
                    pass
                assert json.loads(json.dumps(twice.as_dict())) == json.loads(json.dumps(twice.result.as_dict()))
                print(list(twice.devices), twice.energy_j in (twice.devices["cpu0"].energy_j, None))
                try:
                    m.begin("c", devices=["gpu7"])
                except wattgov.WattgovError as error:
                    print(error.code, error)
            with meter(gpus="none", devices=["cpu1"]) as m, m.window("d") as d:
                pass
            print(list(d.devices))
        """)
        self.assertEqual(done.stdout.splitlines(), ["['cpu1'] ['cpu0', 'cpu1']", "['cpu0'] True",
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
