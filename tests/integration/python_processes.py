#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python binding beside processes, threads and virtual GPUs: fork, pools, exit, the collector, lost devices.

    tests/integration/python_processes.py build/release

Needs what python.py needs.
"""
import os

from python_binding import BUILD, Binding, main


class Processes(Binding):
    def test_a_child_of_fork_measures_for_itself(self):
        """Field report 5: handles of before fork are never used after it."""
        done = self.run_python("""
            m = meter(devices="gpu0")
            with m.window("parent") as parent:
                child = os.fork()
                if child == 0:
                    try:
                        parent.energy_j
                    except wattgov.WattgovError as error:
                        assert error.code == "ESTATE" and "before fork" in str(error)
                    with m.window("child") as w:  # the same options, handles of its own
                        spend(0.3)
                    assert is_33_w(w), w
                    sys.exit(7)  # through the parent's with, the collector and all exit handlers
                _, status = os.waitpid(child, 0)
                assert os.waitstatus_to_exitcode(status) == 7, status
            assert is_33_w(parent) and parent.time_s > 0.3, parent
            m.close()
            print("fine")
        """, machine="v100")
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
                    spend(0.01)
                    assert not children()
            print("fine")
        """, machine="v100")
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
                spend(0.02)
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


class VirtualMachines(Binding):
    def test_only_the_visible_gpus_are_charged(self):
        """Field report 18: a job with two GPUs of eight."""
        labels = self.values("""
            with meter() as m:
                print(json.dumps([one.label for one in m.devices if one.kind == "gpu"]))
        """, machine="8xh100", CUDA_VISIBLE_DEVICES="2,3", CUDA_DEVICE_ORDER="PCI_BUS_ID")
        self.assertEqual(len(labels), 2)

    def test_a_gpu_that_is_lost_inside_a_window_is_flagged(self):
        """Field reports 34 and 37."""
        result = self.values("""
            import subprocess
            m = meter(devices=["gpu0", "gpu1"])
            with m.window("epoch") as w:
                subprocess.run([os.environ["VGPU"], "fault", "lost", "--gpu", "1"], check=True)
                wait_for(lambda: "lost" in w.devices["gpu1"].flags)
            print(json.dumps(w.result.as_dict()))
        """, machine="8xh100", VGPU=os.path.join(BUILD, "vgpu/wattgov-vgpu"))
        self.assertIn("lost", result["devices"]["gpu1"]["flags"])
        self.assertNotIn("lost", result["devices"]["gpu0"]["flags"])
        self.assertGreater(result["devices"]["gpu0"]["energy_j"], 0)

    def test_begin_and_end_do_not_wait_for_a_driver_that_hangs(self):
        """Field reports 35 and 80: only the look at the result does, and not for ever."""
        flags = self.values("""
            import subprocess
            m = meter(devices="gpu0")
            vgpu = os.environ["VGPU"]
            with m.window("epoch") as w:
                subprocess.run([vgpu, "fault", "hang", "--gpu", "0"], check=True)
                longest_s = 0
                for _ in range(50):
                    begun = time.monotonic()
                    m.window("step").begin().end()
                    longest_s = max(longest_s, time.monotonic() - begun)
                    spend(0.01)
                assert longest_s < 1, longest_s
            assert w.time_s < 10
            flags = sorted(w.flags)
            subprocess.run([vgpu, "fault", "clear"], check=True)
            print(json.dumps(flags))
        """, machine="v100", VGPU=os.path.join(BUILD, "vgpu/wattgov-vgpu"))
        self.assertTrue({"hung", "gap"} & set(flags), flags)

    def test_sampling_eight_gpus_takes_little(self):
        """Field report 52: a monitor that took more than a core and 254 MB. The bench has the sharp bounds."""
        cores, grown_kib = self.values("""
            def resident_kib():
                with open("/proc/self/status") as file:
                    return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

            before_kib = resident_kib()
            with wattgov.Meter(root=ROOT) as m:
                m.wait_ready()
                time.sleep(0.3)  # what the first second finds out
                cpu_s, begun = time.process_time(), time.monotonic()
                time.sleep(1.5)
                cores = (time.process_time() - cpu_s) / (time.monotonic() - begun)
                print(json.dumps([cores, resident_kib() - before_kib]))
        """, machine="8xh100")
        self.assertLess(cores, 0.2)
        self.assertLess(grown_kib, 64 << 10)

    def test_windows_leave_no_memory_behind(self):
        """Field report 53: memory grew over days."""
        grown_kib = self.values("""
            def resident_kib():
                with open("/proc/self/status") as file:
                    return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

            with meter(devices="gpu0") as m:
                for round_ in range(4):
                    before_kib = resident_kib()
                    for _ in range(5000):
                        m.window("step").begin().end()
                        m.begin("named").end()
                print(json.dumps(resident_kib() - before_kib))
        """, machine="v100")
        self.assertLess(grown_kib, 1 << 10)

    def test_a_split_gpu_is_counted_once_and_says_so(self):
        """Field reports 31 and 32: the instances have no energy of their own, and the GPU's is counted once."""
        result, devices = self.values("""
            with meter() as m:
                gpus = [one.label for one in m.devices if one.kind == "gpu"]
                with m.window("epoch", devices=gpus) as w:
                    spend(0.2)
                print(json.dumps([w.result.as_dict(), [one.as_dict() for one in m.devices if one.kind == "gpu"]]))
        """, machine="a100-mig")
        split = [gpu for gpu in devices if gpu["is_mig"]]
        self.assertTrue(split)
        for gpu in split:
            self.assertGreater(len(gpu["mig_uuids"]), 1)
            self.assertIn("shared", result["devices"][gpu["label"]]["flags"])
        parts = [result["devices"][gpu["label"]]["energy_j"] for gpu in devices]
        self.assertAlmostEqual(result["energy_j"], sum(parts), delta=1e-6)


if __name__ == "__main__":
    main(__doc__)
