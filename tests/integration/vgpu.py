#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The virtual GPU as its users meet it: run, list, show, fault and load.

    tests/integration/vgpu.py build/release/vgpu
"""
import json
import os
import re
import resource
import signal
import subprocess
import sys

import vgpu_case
from vgpu_case import DEADLINE_S, ROOT, Case, tool, wait_for


class Run(Case):
    def test_the_exit_status_is_the_commands(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)):
            self.assertEqual(self.vgpu("run", "--machine", "t4", "--", "sh", "-c", script).returncode, status)
        self.assertEqual(self.vgpu("run", "--machine", "t4", "--", "./no-such-program").returncode, 127)
        self.assertEqual(self.vgpu("run", "--machine", "t4", "--", self.folder).returncode, 126)
        self.assertEqual(self.files(), [])

    def test_wrong_usage_is_told_in_one_line(self):
        self.expect_usage(self.vgpu("run", "--machine", "t4"), "which command?")
        self.expect_usage(self.vgpu("run", "--", "true"), "--machine ID|FILE is required")
        self.expect_usage(self.vgpu("run", "--machine", "t5", "--", "true"),
                          "'t5' is no shipped machine (8xh100, a100, a100-mig, a40,")
        self.expect_usage(self.vgpu("run", "--machine", "t4", "--variant", "r1", "--", "true"),
                          "'r1' is not current, r535 or r418")
        self.expect_usage(self.vgpu("runn"), "did you mean 'run'?")
        self.expect_usage(self.vgpu("run", *["--machine", "8xh100"] * 9, "--", "true"), "72 GPUs are more than the 64")

    def test_usage_lines_name_the_word_before_the_options(self):
        self.assertRegex(self.vgpu("fault", "--help").stdout, r"^usage: wattgov-vgpu fault KIND\|clear \[OPTION\]")
        self.assertRegex(self.vgpu("--help", program="wattgov-vload").stdout, r"^usage: wattgov-vload JOB --gpu NAME ")

    def test_a_wrong_machine_file_is_told_with_line_and_column(self):
        path = os.path.join(self.folder, "mine.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("id: mine\ndriver: 1.2\ncuda_version: 12.4\ngpus:\n  - like: t4\n    limit_max_w: 3\n")
        done = self.vgpu("run", "--machine", path, "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}:5:3: gpus[0]: limit_default_w: is above limit_max_w", done.stderr)
        with open(path, "a", encoding="utf-8") as file:
            file.write("    limit_min_w: 1\n    limit_default_w: 2\n    name: Mine\n")
        done = self.vgpu("run", "--machine", path, "--machine", "t4", "--", tool("wattgov-vgpu"), "show", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = json.loads(done.stdout)
        self.assertEqual([gpu["name"] for gpu in shown["gpus"]], ["Mine", "Tesla T4"])
        self.assertEqual(shown["gpus"][0]["limit_w"], 2)
        self.assertEqual(shown["machine"], "mine+t4")
        self.assertEqual(shown["driver"], "1.2")

    def test_a_signal_is_passed_on_and_the_file_is_removed(self):
        script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.02; done"
        process = self.background(self.environment, "wattgov-vgpu", "run", "--machine", "t4", "--", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertEqual(len(self.files()), 1)
        process.terminate()
        self.assertEqual(process.wait(DEADLINE_S), 5)
        self.assertEqual(self.files(), [])

    def test_a_command_that_a_signal_ends_gives_128_and_its_number(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            process, _ = self.start("--machine", "t4")
            process.send_signal(number)
            self.assertEqual(process.wait(DEADLINE_S), 128 + number)
            self.assertEqual(self.files(), [])

    def test_signals_that_we_ignore_are_not_ignored_in_the_command(self):
        done = self.vgpu("run", "--machine", "t4", "--", "grep", "-E", "Sig(Ign|Blk)", "/proc/self/status",
                         restore_signals=True)
        masks = [int(line.split()[1], 16) for line in done.stdout.splitlines()]
        self.assertEqual(len(masks), 2)
        for mask in masks:
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
                self.assertFalse(mask >> (number - 1) & 1, f"{done.stdout}")

    def test_the_file_is_for_its_owner_alone(self):
        _, environment = self.start("--machine", "t4")
        self.assertEqual(os.stat(environment["WATTGOV_VGPU"]).st_mode & 0o7777, 0o600)
        self.assertEqual(os.path.dirname(environment["WATTGOV_VGPU"]), self.folder)

    def test_what_a_killed_run_left_behind_is_removed_by_the_next(self):
        process, environment = self.start("--machine", "t4")
        process.kill()
        process.wait(DEADLINE_S)
        self.assertEqual(len(self.files()), 1)
        # Its command goes on with the machine that it has; the name is free.
        self.assertEqual(self.vgpu("run", "--machine", "t4", "--", "true").returncode, 0)
        self.assertFalse(os.path.exists(environment["WATTGOV_VGPU"]))

    def test_what_killed_runs_left_behind_is_removed_by_list_and_show_too(self):
        _, running = self.start("--machine", "t4")
        held = os.path.basename(running["WATTGOV_VGPU"])
        for command in ("list", "show"):
            process, _ = self.start("--machine", "t4")
            process.kill()
            process.wait(DEADLINE_S)
            self.assertEqual(len(self.files()), 2)
            done = self.vgpu(command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.files(), [held])

    def test_a_run_that_was_killed_while_it_made_its_machine_is_cleaned_up_after_a_while(self):
        path = os.path.join(self.folder, f"wattgov-vgpu-{os.geteuid()}-4711.new")
        with open(path, "w", encoding="utf-8"):
            pass
        self.vgpu("list")
        self.assertTrue(os.path.exists(path))  # another may be about to lock it
        os.utime(path, (0, 0))
        self.vgpu("list")
        self.assertFalse(os.path.exists(path))

    def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(self):
        path = os.path.join(self.folder, "pipe.yaml")
        os.mkfifo(path)
        for arguments in (["run", "--machine", path, "--", "true"], ["show", "--machine-file", path],
                          ["load", "--machine-file", path], ["fault", "lost", "--machine-file", path]):
            done = self.vgpu(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is no regular file", done.stderr)

    def test_a_disk_without_room_is_told_and_left_as_it_was(self):
        own = tool("wattgov-vgpu")
        script = (f"mount -t tmpfs -o size=64k tmpfs {self.folder} || exit; echo mounted; "
                  f"{own} run --machine 8xh100 -- true; status=$?; ls -A {self.folder}; exit $status")
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script], text=True,
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=DEADLINE_S)
        if done.stdout == "":
            self.skipTest(f"no file system of our own: {done.stderr}")
        self.assertEqual((done.returncode, done.stdout), (1, "mounted\n"))
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_command_that_cuts_or_removes_the_machine_does_not_end_run(self):
        for cut in ("truncate -s 100", "truncate -s 0", "rm"):
            done = self.vgpu("run", "--machine", "t4", "--", "sh", "-c", f"{cut} $WATTGOV_VGPU; exit 5")
            self.assertEqual((done.returncode, done.stderr), (5, ""))
            self.assertEqual(self.files(), [])

    def test_a_folder_that_may_not_be_used_gives_way_to_the_next(self):
        environment = dict(self.environment, XDG_RUNTIME_DIR=os.path.join(self.folder, "gone"))
        done = self.vgpu("run", "--machine", "T4", "--", "sh", "-c", "echo $WATTGOV_VGPU", env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.path.dirname(done.stdout.strip()), self.folder)

    def test_a_limit_on_the_size_of_files_is_told(self):
        done = self.vgpu("run", "--machine", "t4", "--", "true",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(self.files(), [])

    def test_a_closed_standard_output_is_not_the_machine(self):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", tool("wattgov-vgpu"), "run", "--machine", "t4", "--", "sh",
                               "-c", "echo lost; exit 3"], env=self.environment, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.files(), [])

    def test_a_machine_in_a_machine_hides_the_outer_one(self):
        own = tool("wattgov-vgpu")
        script = f"{own} run --machine h200 -- {own} show --json && {own} show --json"
        done = self.vgpu("run", "--machine", "t4", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        inner, outer = map(json.loads, done.stdout.splitlines())
        self.assertEqual((inner["machine"], outer["machine"]), ("h200", "t4"))
        self.assertEqual(self.files(), [])

    def test_an_old_driver_lacks_what_came_later(self):
        _, environment = self.start("--machine", "v100", "--variant", "r418")
        script = ("import ctypes; nvml = ctypes.CDLL('libnvidia-ml.so.1'); nvml.nvmlDeviceGetUUID; "
                  "print(hasattr(nvml, 'nvmlDeviceGetTemperatureV'))")
        done = subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True,
                              check=True)
        self.assertEqual(done.stdout, "False\n")
        self.assertEqual(self.show()["driver"], "418.226.00")
        self.assertTrue(environment["LD_LIBRARY_PATH"].endswith("r418"))


class Sharing(Case):
    def test_two_processes_see_the_same_gpus_and_each_others_settings(self):
        _, environment = self.start("--machine", "mixed", "--anyone-may-set")
        one, other = self.client(environment), self.client(environment)
        for gpu in range(3):
            self.assertEqual(one.value("nvmlDeviceGetUUID", gpu), other.value("nvmlDeviceGetUUID", gpu))
        self.assertEqual(one.call("nvmlDeviceGetName", 1), {"code": 0, "value": "Tesla T4", "count": 3})
        self.assertEqual(one.call("nvmlDeviceSetPowerManagementLimit", 0, 250000)["code"], 0)
        self.assertEqual(other.value("nvmlDeviceGetPowerManagementLimit", 0), 250000)
        self.assertEqual(self.gpu(environment)["limit_w"], 250)
        # The sets of nobody else: out of range, and a GPU that can't lock its clocks.
        self.assertEqual(one.call("nvmlDeviceSetPowerManagementLimit", 0, 401000)["code"], 2)
        self.assertEqual(one.call("nvmlDeviceSetGpuLockedClocks", 2, 500, 500)["code"], 3)

    def test_the_pascal_gpu_has_no_energy_counter(self):
        _, environment = self.start("--machine", "mixed")
        client = self.client(environment)
        self.assertEqual(client.call("nvmlDeviceGetTotalEnergyConsumption", 0)["code"], 0)
        self.assertEqual(client.call("nvmlDeviceGetTotalEnergyConsumption", 2)["code"], 3)
        self.assertEqual(client.call("nvmlDeviceGetPowerUsage", 2)["code"], 0)

    def test_whoever_is_not_root_cannot_set(self):
        if os.geteuid() == 0:
            os.chown(self.folder, 65534, 65534)
            becomes = {"user": 65534, "group": 65534, "extra_groups": []}
        else:
            becomes = {}
        try:
            _, environment = self.start("--machine", "a100", **becomes)
        except (OSError, AssertionError) as cause:
            self.skipTest(f"another user can't run the build: {cause}")
        client = self.client(environment, **becomes)
        self.assertEqual(client.init_code, 0)
        self.assertEqual(client.call("nvmlDeviceSetPowerManagementLimit", 0, 250000)["code"], 4)
        self.assertEqual(client.value("nvmlDeviceGetPowerManagementLimit", 0), 400000)
        _, environment = self.start("--machine", "a100", "--anyone-may-set", **becomes)
        client = self.client(environment, **becomes)
        self.assertEqual(client.call("nvmlDeviceSetPowerManagementLimit", 0, 250000)["code"], 0)

    def test_each_user_has_machines_of_his_own_in_one_folder(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be two users")
        os.chmod(self.folder, 0o1777)
        other = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            self.start("--machine", "a100", **other)
        except (OSError, AssertionError) as cause:
            self.skipTest(f"another user can't run the build: {cause}")
        self.start("--machine", "t4")
        self.assertEqual(self.show()["machine"], "t4")
        shown = self.vgpu("show", "--json", **other)
        self.assertEqual(json.loads(shown.stdout)["machine"], "a100")
        self.vgpu("list")
        self.assertEqual(len(self.files()), 2)
        foreign = next(name for name in self.files() if f"-{os.geteuid()}-" in name)
        done = self.vgpu("show", "--machine-file", os.path.join(self.folder, foreign), **other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied", done.stderr)

    def test_show_finds_the_machine_from_another_terminal(self):
        done = self.vgpu("show")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no virtual machine runs here", done.stderr)
        _, first = self.start("--machine", "t4")
        self.assertEqual(self.show()["machine"], "t4")
        self.start("--machine", "h200")
        done = self.vgpu("show")
        self.expect_usage(done, "choose by --machine-file")
        for name in self.files():
            self.assertIn(name, done.stderr)
        done = self.vgpu("show", "--json", "--machine-file", first["WATTGOV_VGPU"])
        self.assertEqual(json.loads(done.stdout)["machine"], "t4")
        self.assertEqual(self.vgpu("show", "--machine-file", "/dev/null").returncode, 1)

    def test_the_energy_counter_follows_the_true_energy(self):
        _, environment = self.start("--machine", "v100")
        client = self.client(environment)
        self.background(environment, "wattgov-vgpu", "load", "--gpu", 0)
        wait_for(lambda: self.gpu(environment)["loads"], "the load")
        first, first_mj = self.gpu(environment), client.value("nvmlDeviceGetTotalEnergyConsumption", 0)
        last = wait_for(lambda: next((gpu for gpu in [self.gpu(environment)]
                                      if gpu["energy_j"] > first["energy_j"] + 200), None), "200 J")
        last_mj = client.value("nvmlDeviceGetTotalEnergyConsumption", 0)
        # A tick of the counter is 20 ms, 5 J, and the two are not asked at the same moment.
        self.assertAlmostEqual((last_mj - first_mj) / 1000, last["energy_j"] - first["energy_j"], delta=25)
        self.assertGreater(last["power_w"], 240)
        self.assertLessEqual(last["power_w"], 250)


class Faults(Case):
    def test_a_lost_gpu_is_lost_until_it_is_cleared(self):
        _, environment = self.start("--machine", "8xh100")
        client = self.client(environment)
        self.fault(environment, "lost", "--gpu", "3")
        self.assertEqual(client.call("nvmlDeviceGetPowerUsage", 3)["code"], 15)
        self.assertEqual(client.call("nvmlDeviceGetPowerUsage", 2)["code"], 0)
        shown = self.show(environment)["faults"]
        self.assertEqual([(fault["kind"], fault["gpu"]) for fault in shown], [("lost", 3)])
        self.assertIn("fault: lost on GPU 3\n", self.vgpu("show").stdout)
        self.fault(environment, "clear")
        self.assertEqual(client.call("nvmlDeviceGetPowerUsage", 3)["code"], 0)

    def test_an_error_begins_and_ends_with_the_calls(self):
        _, environment = self.start("--machine", "t4")
        client = self.client(environment)
        self.fault(environment, "error", "--code", 999, "--function", "nvmlDeviceGetPowerUsage", "--from-call", 2,
                   "--calls", 2)
        codes = [client.call("nvmlDeviceGetPowerUsage", 0)["code"] for _ in range(5)]
        self.assertEqual(codes, [0, 999, 999, 0, 0])
        self.assertEqual(client.call("nvmlDeviceGetPowerManagementLimit", 0)["code"], 0)
        self.assertEqual(self.gpu(environment)["calls"]["nvmlDeviceGetPowerUsage"], 5)

    def test_a_hanging_call_goes_on_when_the_fault_is_cleared(self):
        _, environment = self.start("--machine", "t4")
        client = self.client(environment)
        self.fault(environment, "hang", "--gpu", 0)
        client.send("nvmlDeviceGetPowerUsage", 0)
        wait_for(lambda: self.gpu(environment)["calls"].get("nvmlDeviceGetPowerUsage"), "the call")
        self.fault(environment, "clear")
        self.assertEqual(client.receive()["code"], 0)

    def test_a_hanging_call_ends_with_the_machine(self):
        process, environment = self.start("--machine", "t4")
        client = self.client(environment)
        self.fault(environment, "hang")
        client.send("nvmlDeviceGetPowerUsage", 0)
        wait_for(lambda: self.gpu(environment)["calls"].get("nvmlDeviceGetPowerUsage"), "the call")
        process.stdin.close()
        process.wait(DEADLINE_S)
        self.assertEqual(client.receive()["code"], 0)

    def test_one_command_hits_several_gpus_and_every_gpu_can_have_its_own(self):
        _, environment = self.start(*["--machine", "8xh100"] * 8)
        client = self.client(environment)
        self.fault(environment, "lost", "--gpu", 3, "--gpu", 5)
        lost = [gpu for gpu in range(64) if client.call("nvmlDeviceGetPowerUsage", gpu)["code"] == 15]
        self.assertEqual(lost, [3, 5])
        # All of them or none.
        done = self.vgpu("fault", "hang", "--gpu", 0, "--gpu", 64, env=environment)
        self.expect_usage(done, "--gpu: '64' is not the number of a GPU")
        self.fault(environment, "clear")
        for kind in (["lost"], ["stuck"], ["cap", "--value", 300]):
            self.fault(environment, *kind, *(word for gpu in range(64) for word in ("--gpu", gpu)))
        self.assertEqual(len(self.show(environment)["faults"]), 192)
        self.assertEqual([client.call("nvmlDeviceGetPowerUsage", gpu)["code"] for gpu in range(64)], [15] * 64)

    def test_values_caps_resets_and_temperatures_come_through(self):
        _, environment = self.start("--machine", "a100", "--anyone-may-set")
        client = self.client(environment)
        self.fault(environment, "value", "--function", "nvmlDeviceGetPowerUsage", "--value", 4294967295)
        self.assertEqual(client.value("nvmlDeviceGetPowerUsage", 0), 4294967295)
        self.fault(environment, "cap", "--value", 200)
        self.assertEqual(client.value("nvmlDeviceGetPowerManagementLimit", 0), 400000)
        self.assertEqual(client.value("nvmlDeviceGetEnforcedPowerLimit", 0), 200000)
        self.fault(environment, "temperature", "--value", 91)
        self.assertEqual(self.gpu(environment)["temperature_c"], 91)
        self.assertEqual(client.call("nvmlDeviceSetPowerManagementLimit", 0, 300000)["code"], 0)
        self.fault(environment, "revert")
        self.assertEqual(client.value("nvmlDeviceGetPowerManagementLimit", 0), 400000)
        wait_for(lambda: client.value("nvmlDeviceGetTotalEnergyConsumption", 0) > 3000, "3 J")
        self.fault(environment, "reset")
        self.assertLess(client.value("nvmlDeviceGetTotalEnergyConsumption", 0), 3000)

    def test_wrong_usage_is_told_in_one_line(self):
        _, environment = self.start("--machine", "t4")
        for arguments, text in (
                ([], "which fault?"), (["lots"], "did you mean 'lost'?"), (["error"], "error needs a --code"),
                (["error", "--code", "0"], "--code: '0' is not"),
                (["lost", "--code", "3"], "lost takes no --code"), (["cap"], "cap needs a --value"),
                (["hang", "--value", "3"], "hang takes no --value"), (["cap", "--value", "0"], "1 .. 10000"),
                (["lost", "--gpu", "1"], "none is number 1"), (["lost", "--from-call", "0"], "--from-call"),
                (["lost", "--function", "nvmlDeviceGetPowerUsag"], "did you mean 'nvmlDeviceGetPowerUsage'?")):
            self.expect_usage(self.vgpu("fault", *arguments, env=environment), text)


class Load(Case):
    def test_a_load_draws_power_and_ends_with_its_process(self):
        _, environment = self.start("--machine", "h200")
        idle = self.gpu(environment)["power_w"]
        self.assertAlmostEqual(idle, 77.7)
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = self.background(environment, "wattgov-vgpu", "load", "--gpu", 0, "--utilization", 0.5, "--memory",
                                      1024)
            busy = wait_for(lambda: next((gpu for gpu in [self.gpu(environment)] if gpu["loads"]), None), "the load")
            self.assertAlmostEqual(busy["power_w"], (77.7 + 627.3) / 2, places=6)
            self.assertEqual(busy["loads"][0]["memory_bytes"], 1 << 30)
            self.assertEqual(busy["loads"][0]["pid"], process.pid)
            process.send_signal(number)
            self.assertEqual(process.wait(DEADLINE_S), 0 if number == signal.SIGTERM else -9)
            wait_for(lambda: not self.gpu(environment)["loads"], "the end of the load")
            self.assertAlmostEqual(self.gpu(environment)["power_w"], idle)

    def test_a_load_stands_while_its_command_runs(self):
        _, environment = self.start("--machine", "t4")
        done = self.vgpu("load", "--gpu", 0, "--", "sh", "-c", f"{tool('wattgov-vgpu')} show --json; exit 3",
                         env=environment)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(json.loads(done.stdout)["gpus"][0]["loads"]), 1)
        self.assertEqual(self.gpu(environment)["loads"], [])

    def test_patterns_have_the_mean_that_they_should(self):
        _, environment = self.start("--machine", "h200")
        for pattern in ("square", "sine"):
            before = self.show(environment)
            done = self.vgpu("load", "--pattern", pattern, "--period", "100ms", "--low", 0.2, "--utilization", 0.6,
                             "--seconds", 1, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            after = self.show(environment)
            passed_s = after["age_s"] - before["age_s"]
            used_j = after["gpus"][0]["energy_j"] - before["gpus"][0]["energy_j"]
            # A second at a utilisation of 0.4 on average, the rest idle.
            expected_j = 77.7 * passed_s + 0.4 * (627.3 - 77.7)
            self.assertAlmostEqual(used_j, expected_j, delta=0.1 * expected_j)

    def test_wrong_usage_is_told_in_one_line(self):
        _, environment = self.start("--machine", "t4")
        for arguments, text in ((["--gpu", 1], "'1' is not a GPU of the machine, which has 1"),
                                (["--utilization", 1.5], "--utilization: '1.5' is not"),
                                (["--low", 0.5, "--utilization", 0.2], "--low: '0.5' is above --utilization"),
                                (["--pattern", "saw"], "constant, square or sine")):
            self.expect_usage(self.vgpu("load", *arguments, env=environment), text)


class Talk(Case):
    def test_list_has_each_shipped_machine_in_a_line(self):
        done = self.vgpu("list")
        self.assertEqual(done.returncode, 0, done.stderr)
        shipped = sorted(name[:-5] for name in os.listdir(os.path.join(ROOT, "vgpu/machines")))
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[2:]], shipped)
        listed = json.loads(self.vgpu("list", "--json").stdout)
        self.assertEqual(listed["schema"], "wattgov.vgpu.list/1")
        self.assertEqual([machine["id"] for machine in listed["machines"]], shipped)
        counts = {machine["id"]: len(machine["gpus"]) for machine in listed["machines"]}
        self.assertEqual((counts["8xh100"], counts["mixed"], counts["v100"]), (8, 3, 1))

    def test_every_command_has_help(self):
        for command in ([], ["run"], ["list"], ["show"], ["fault"], ["load"]):
            done = self.vgpu(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("usage: wattgov-vgpu"))
        done = self.vgpu("--help", program="wattgov-vload")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for program in ("wattgov-vgpu", "wattgov-vload"):
            self.assertRegex(self.vgpu("--version", program=program).stdout, rf"^{program} \d+\.\d+\.\d+\n$")

    def test_results_that_nobody_gets_are_a_failure(self):
        _, environment = self.start("--machine", "t4")
        for arguments in (["list"], ["show"], ["show", "--json"], ["run", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = self.vgpu(*arguments, stdout=full, env=environment)
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left on device", done.stderr)

    def test_manual_and_help_have_the_same_options(self):
        manual = {}
        for page, start in (("wattgov-vgpu", "wattgov-vgpu run"), ("wattgov-vload", "OPTIONS")):
            section = start
            with open(os.path.join(ROOT, f"man/{page}.1.scd"), encoding="utf-8") as file:
                for line in file:
                    heading = re.match(r"#+ (.*)", line)
                    section = heading.group(1) if heading else section
                    option = re.match(r"\*(--[\w-]+)\*", line)
                    if option:
                        manual.setdefault((page, section), []).append(option.group(1))
        for command in ("run", "list", "show", "fault", "load"):
            listed = re.findall(r"^  (--[\w-]+)", self.vgpu(command, "--help").stdout, flags=re.MULTILINE)
            listed.remove("--help")
            self.assertEqual(sorted(listed), sorted(manual["wattgov-vgpu", f"wattgov-vgpu {command}"]), command)
        listed = re.findall(r"^  (--[\w-]+)", self.vgpu("--help", program="wattgov-vload").stdout, flags=re.MULTILINE)
        listed.remove("--help")
        self.assertEqual(sorted(listed), sorted(manual["wattgov-vload", "OPTIONS"]))


if __name__ == "__main__":
    vgpu_case.main(__doc__)
