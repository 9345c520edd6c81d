#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python binding beside processes, threads and virtual GPUs: fork, pools, exit, the collector, lost devices.

    tests/integration/python_processes.py build/release

Needs what python.py needs.
"""
import json
import os
import subprocess
import sys
import textwrap

from python_binding import BUILD, PRELUDE, Binding, main


class Processes(Binding):
    def test_a_child_of_fork_measures_for_itself(self):
        """Field report 5: handles of before fork are never used after it."""
        done = self.run_python("""
            m = meter()
            turn(m, 1)
            with m.window("parent") as parent:
                child = os.fork()
                if child == 0:
                    try:
                        parent.energy_j
                    except wattgov.WattgovError as error:
                        assert error.code == "ESTATE" and "before fork" in str(error)
                    with m.window("child") as w:  # the same options, handles of its own
                        turn(m, 2)
                    assert abs(w.energy_j - 2e-3) < 0.3e-3, w
                    sys.exit(7)  # through the parent's with, the collector and all exit handlers
                _, status = os.waitpid(child, 0)
                assert os.waitstatus_to_exitcode(status) == 7, status
                turn(m, 3)
            assert abs(parent.energy_j - 5e-3) < 0.5e-3, parent
            m.close()
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_fork_while_other_threads_measure(self):
        done = self.run_python("""
            import threading
            m = meter()
            is_over = False

            def work():
                while not is_over:
                    with m.window("step") as w:
                        pass
                    m.begin("named")
                    m.end("named")

            threads = [threading.Thread(target=work) for _ in range(3)]
            for one in threads:
                one.start()
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    with m.window("child") as w:
                        pass
                    os._exit(0 if w.time_s > 0 else 1)
                _, status = os.waitpid(child, 0)
                assert status == 0, status
            is_over = True
            for one in threads:
                one.join()
            m.close()
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_workers_of_a_pool_measure_with_the_meter_they_inherit(self):
        done = self.run_python("""
            import multiprocessing

            m = meter()

            def work(number):
                with m.window(f"item {number}") as w:
                    pass
                return os.getpid() != PARENT and w.time_s > 0

            PARENT = os.getpid()
            with multiprocessing.get_context("fork").Pool(3) as pool:
                assert all(pool.map(work, range(12)))
            m.close()
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_sampling_starts_no_process(self):
        """Field report 79."""
        done = self.run_python("""
            def children():
                out = []
                for task in os.listdir("/proc/self/task"):
                    with open(f"/proc/self/task/{task}/children") as file:
                        out += file.read().split()
                return out

            with meter() as m, m.window("epoch"):
                for _ in range(20):
                    settle(m)
                    assert not children()
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_main_is_not_imported_again_and_no_python_thread_starts(self):
        done = self.run_python("""
            print("main")
            import threading
            m = meter()
            with m.window("epoch") as w:
                pass
            w.energy_j
            assert threading.active_count() == 1
            m.close()
        """)
        self.assertEqual(done.stdout, "main\n")

    def test_exit_with_everything_open_is_quiet(self):
        for end in ("", "sys.exit(0)", "del m, w", "import gc; w = m = None; gc.collect()"):
            self.run_python(f"""
                m = meter()
                w = m.begin("epoch")
                forgotten = wattgov.Window(m, "with").__enter__()
                {end}
            """)

    def test_the_collector_closes_what_nobody_holds(self):
        done = self.run_python("""
            import gc

            def tasks():
                return len(os.listdir("/proc/self/task"))

            alone = tasks()
            for _ in range(5):
                m = meter()
                w = m.begin("epoch")
                assert tasks() > alone
                del m, w
                gc.collect()
                wait_for(lambda: tasks() == alone)
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_threads_and_tasks_share_a_meter(self):
        done = self.run_python("""
            import asyncio, threading
            m = meter()
            failures = []

            def work(name):
                try:
                    for _ in range(50):
                        with m.window(name) as w:
                            pass
                        assert w.time_s > 0 and w.name == name
                        m.begin(name)
                        assert m.end(name).name == name
                except BaseException as error:
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(f"thread {i}",)) for i in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert not failures, failures

            async def step(number):
                with m.window(f"task {number}") as w:
                    await asyncio.sleep(0)
                return w.time_s > 0

            async def main():
                return await asyncio.gather(*(step(i) for i in range(20)))

            assert all(asyncio.run(main()))
            m.close()
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_a_meter_may_be_closed_while_others_use_it(self):
        done = self.run_python("""
            import threading
            for _ in range(5):
                m = meter()
                odd = []

                def work():
                    try:
                        while True:
                            with m.window("step") as w:
                                pass
                            w.time_s
                    except wattgov.WattgovError as error:
                        if error.code != "ESTATE":
                            odd.append(error)

                threads = [threading.Thread(target=work) for _ in range(4)]
                for one in threads:
                    one.start()
                with m.window("a while") as w:
                    wait_for(lambda: w.time_s > 0.02)
                m.close()
                for one in threads:
                    one.join()
                assert not odd, odd
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")

    def test_the_default_meter_is_made_at_first_use_and_shared(self):
        done = self.run_python("""
            with wattgov.window("epoch") as w:
                pass
            assert w.time_s > 0
            assert wattgov.default_meter() is wattgov.default_meter()
            wattgov.begin("x")
            assert wattgov.end("x").time_s > 0
            child = os.fork()
            if child == 0:
                with wattgov.window("child") as w:
                    pass
                sys.exit(0 if w.time_s > 0 else 1)
            assert os.waitpid(child, 0)[1] == 0
            print("fine")
        """)
        self.assertEqual(done.stdout, "fine\n")


class VirtualGpu(Binding):
    """On our own NVML: real calls, real sensors' manners, a known power."""

    def setUp(self):
        super().setUp()
        self.program = os.path.join(BUILD, "vgpu/wattgov-vgpu")
        if not os.path.exists(self.program):
            self.skipTest("the build has no virtual GPU")

    def run_on(self, machine, code, **environment):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PRELUDE + textwrap.dedent(code))
        done = subprocess.run([self.program, "run", "--machine", machine, "--", sys.executable, path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                              env=self.environment(VGPU=self.program, **environment))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_an_idle_v100_draws_its_33_watts(self):
        result = json.loads(self.run_on("v100", """
            import json
            meter = wattgov.Meter(root=ROOT)
            with meter.window("idle", devices="gpu0") as w:
                wait_for(lambda: w.time_s > 0.6)
            print(json.dumps(w.result.as_dict()))
        """))
        self.assertEqual(result["source"], "counter")
        self.assertAlmostEqual(result["energy_j"], 33 * result["time_s"], delta=0.03 * 33 * result["time_s"])
        self.assertAlmostEqual(result["power_mean_w"], 33, delta=1)
        self.assertNotIn("throttled", result["flags"])

    def test_only_the_visible_gpus_are_charged(self):
        """Field report 18: a job with two GPUs of eight."""
        labels = json.loads(self.run_on("8xh100", """
            import json
            with wattgov.Meter(root=ROOT) as meter:
                print(json.dumps([one.label for one in meter.devices if one.kind == "gpu"]))
        """, CUDA_VISIBLE_DEVICES="2,3", CUDA_DEVICE_ORDER="PCI_BUS_ID"))
        self.assertEqual(len(labels), 2)

    def test_a_forked_worker_measures_the_gpu_too(self):
        """Field report 5: the driver's handles of before fork are not used after it."""
        out = self.run_on("v100", """
            meter = wattgov.Meter(root=ROOT, devices="gpu0")
            with meter.window("parent") as parent:
                child = os.fork()
                if child == 0:
                    with meter.window("child") as w:
                        wait_for(lambda: w.time_s > 0.3)
                    assert abs(w.power_mean_w - 33) < 2, w
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0
            assert abs(parent.power_mean_w - 33) < 2, parent
            print("fine")
        """)
        self.assertEqual(out, "fine\n")

    def test_a_gpu_that_is_lost_inside_a_window_is_flagged(self):
        """Field reports 34 and 37."""
        result = json.loads(self.run_on("8xh100", """
            import json, subprocess
            meter = wattgov.Meter(root=ROOT, devices=["gpu0", "gpu1"])
            meter.wait_ready()
            with meter.window("epoch") as w:
                subprocess.run([os.environ["VGPU"], "fault", "lost", "--gpu", "1"], check=True)
                wait_for(lambda: "lost" in w.devices["gpu1"].flags)
            print(json.dumps(w.result.as_dict()))
        """))
        self.assertIn("lost", result["devices"]["gpu1"]["flags"])
        self.assertEqual(result["devices"]["gpu0"]["flags"].count("lost"), 0)
        self.assertGreater(result["devices"]["gpu0"]["energy_j"], 0)


if __name__ == "__main__":
    main(__doc__)
