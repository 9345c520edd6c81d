#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov top` in a real terminal, driven by tmux, on virtual GPUs and on a machine without any.

    tests/integration/top.py build/release

Skipped without tmux. Nothing waits by guess: each step polls the screen until it shows what it should.
"""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

DEADLINE_S = 20
BUILD = None


def program(name="wattgov"):
    return os.path.join(BUILD, name)


class Terminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("CUDA_VISIBLE_DEVICES", "WATTGOV_VGPU", "LD_LIBRARY_PATH", "TMUX",
                                            "NO_COLOR")}
        self.environment.update(XDG_RUNTIME_DIR=self.folder, TMUX_TMPDIR=self.folder, TERM="screen",
                                ENV=os.path.join(self.folder, "profile"))
        with open(os.path.join(self.folder, "profile"), "w", encoding="ascii") as file:
            file.write("PS1='$ '\n") # also for root
        # The quick way out of a shell that was left with a stopped job, or of a hung test.
        self.addCleanup(lambda: self.tmux("kill-server", check=False))

    def tmux(self, *words, check=True):
        return subprocess.run(["tmux", "-f", "/dev/null", *words], env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=check).stdout

    def open(self, width, height, setting=""):
        """A terminal of this size with a shell in it."""
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), f"{setting} exec sh")
        self.wait_for("$")

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, *texts, gone=()):
        """Polls until the screen has all texts, and none of `gone`."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            screen = self.screen()
            if all(text in screen for text in texts) and not any(text in screen for text in gone):
                return screen
            time.sleep(0.02)
        raise AssertionError(f"no {texts} (without {gone}) in:\n{screen}")

    def start(self, machine, *options):
        words = " ".join([program(), "top", "--interval", "100ms", *options])
        vgpu = f"{program('vgpu/wattgov-vgpu')} run --machine {machine} -- " if machine else ""
        self.type(f"{vgpu}{words}; echo status $?", "Enter")
        return self.wait_for("held down by" if machine else "wattgov top  every")

    def quit(self, status=0):
        self.type("q")
        return self.wait_for(f"status {status}")

    def test_it_shows_all_gpus_at_80_by_24_and_ends_with_q(self):
        self.open(80, 24)
        self.start("8xh100")
        screen = self.wait_for(*[f"\ngpu{i} " for i in range(8)], "/700", "345", "idle")
        lines = screen.split("\n")
        self.assertTrue(lines[0].startswith("wattgov top  every 100ms  for 00:00:"), lines[0])
        self.assertIn("device power", lines[1])
        self.assertTrue(lines[22].startswith("total "), lines[22])
        self.assertTrue(lines[23].startswith("q quit"), lines[23])
        self.assertNotIn("gpu0", self.quit())

    def test_energy_grows_and_counts_anew_after_r(self):
        self.open(80, 24)
        self.start("h100")

        def energy():
            words = [line for line in self.screen().split("\n") if line.startswith("total")][0].split()
            return float(words[2]) if len(words) > 3 and words[3] == "J" else 0

        end = time.monotonic() + DEADLINE_S
        while energy() < 100:
            self.assertLess(time.monotonic(), end)
        self.type("r")
        while energy() > 90:
            self.assertLess(time.monotonic(), end)
        self.quit()

    def test_help_and_processes_come_and_go(self):
        self.open(80, 24)
        self.start("h100")
        self.type("?")
        self.wait_for("energy counts from now")
        self.type("?")
        self.wait_for("gpu0", gone=["energy counts from now"])
        self.type("p")
        self.wait_for("process     memory (none)")
        self.type("p")
        self.wait_for("gpu0", gone=["process     memory"])
        self.quit()

    def test_it_fits_when_the_window_changes(self):
        self.open(80, 24)
        self.start("8xh100")
        self.tmux("resize-window", "-x", "40", "-y", "10")
        screen = self.wait_for("gpu5", "total", gone=["gpu6", "held down by"])
        self.assertTrue(all(len(line) <= 40 for line in screen.split("\n")), screen)
        self.type("Down")
        self.wait_for("gpu6", gone=["gpu0"])
        self.type("End")
        self.wait_for("gpu7", gone=["gpu1"])
        self.type("Home")
        self.wait_for("gpu0", gone=["gpu6"])
        self.tmux("resize-window", "-x", "12", "-y", "3")
        self.wait_for("wattgov top", gone=["total"])
        self.tmux("resize-window", "-x", "150", "-y", "30")
        self.wait_for("held down by", "gpu7", "NVIDIA H100", "2619")
        self.quit()

    def test_a_lost_gpu_is_named_and_the_others_go_on(self):
        """Field report 34."""
        self.open(100, 24)
        self.start("8xh100", "--gpu", "0,1")
        self.wait_for("gpu0", "345")
        subprocess.run([program("vgpu/wattgov-vgpu"), "fault", "lost", "--gpu", "0"], env=self.environment,
                       timeout=DEADLINE_S, check=True, stdout=subprocess.DEVNULL)
        screen = self.wait_for("lost")
        rows = [line for line in screen.split("\n") if line.startswith("gpu")]
        self.assertIn("nvml", rows[0])
        self.assertIn("/700", rows[1])
        self.quit()

    def test_a_gpu_that_hangs_while_processes_are_shown_holds_nothing_up(self):
        """Field reports 35, 80."""
        self.open(100, 24)
        self.start("8xh100", "--gpu", "0,1", "--timeout", "10m")
        self.wait_for("gpu0", "345")
        self.type("p")
        self.wait_for("process     memory (none)")
        subprocess.run([program("vgpu/wattgov-vgpu"), "fault", "hang", "--gpu", "0"], env=self.environment,
                       timeout=DEADLINE_S, check=True, stdout=subprocess.DEVNULL)

        def seconds():
            return int(self.screen().split("\n")[0].split(":")[-1].split()[0])

        first, end = seconds(), time.monotonic() + DEADLINE_S
        while seconds() < first + 4: # pictures go on, several lists of processes later
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.type("?")
        self.wait_for("energy counts from now")
        self.quit()

    def test_every_way_out_restores_the_terminal(self):
        self.open(80, 24)
        for signal_name, status in (("INT", 0), ("TERM", 143), ("HUP", 129), ("QUIT", 131)):
            self.type("clear", "Enter")
            self.start("", "--gpu none --root", self.folder)
            process = subprocess.run(["pgrep", "-f", f"top --interval 100ms --gpu none --root {self.folder}"],
                                     stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True)
            pids = [pid for pid in process.stdout.split() if self.is_program(pid)]
            subprocess.run(["kill", "-" + signal_name, *pids], timeout=DEADLINE_S, check=True)
            self.wait_for(f"status {status}", gone=["Nothing on this machine"])
            self.check_terminal(signal_name)

    @staticmethod
    def is_program(pid):
        try:
            return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "wattgov"
        except OSError:
            return False

    def check_terminal(self, what):
        """What is typed is seen, and lines end where they should."""
        self.type("clear; stty -a | grep -o -w -e '-*echo' -e '-*icanon' | tr '\\n' ,; echo end", "Enter")
        screen = self.wait_for(",end")
        self.assertIn("icanon,echo,end", screen, what)

    def test_ctrl_c_of_the_terminal_ends_it(self):
        self.open(80, 24)
        self.start("", "--gpu none --root", self.folder)
        self.type("C-c")
        self.wait_for("$", gone=["Nothing on this machine"])
        self.check_terminal("Ctrl-C")

    def test_ctrl_z_stops_it_and_fg_goes_on(self):
        self.open(80, 24)
        self.type("set -m", "Enter")
        self.type(f"{program()} top --gpu none --root {self.folder}", "Enter")
        self.wait_for("Nothing on this machine")
        self.type("C-z")
        self.wait_for("Stopped", gone=["Nothing on this machine"])
        self.check_terminal("Ctrl-Z")
        self.type("fg", "Enter")
        self.wait_for("Nothing on this machine", gone=["Stopped"])
        self.type("q")
        self.wait_for("$", gone=["Nothing on this machine"])
        self.check_terminal("q after fg")

    def test_no_color_and_dumb_terminals(self):
        self.open(80, 24)
        self.start("h100")
        self.wait_for("gpu0", "345")
        self.assertIn("\x1b[3", self.tmux("capture-pane", "-p", "-e"))
        self.quit()
        self.type("clear; export NO_COLOR=1", "Enter")
        self.start("h100")
        self.wait_for("gpu0", "345")
        self.assertNotRegex(self.tmux("capture-pane", "-p", "-e"), r"\x1b\[[0-9;]*3[0-7]m")
        self.quit()
        # ncurses keeps what it had for a terminal that it doesn't know: no leak of ours.
        self.type(f"clear; TERM=no-such-terminal ASAN_OPTIONS=detect_leaks=0 {program()} top; echo status $?",
                  "Enter")
        self.assertIn("TERM=no-such-terminal is not known", self.wait_for("status 2"))


class BareTerminal(unittest.TestCase):
    """A terminal that goes away, or takes no output any more."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self):
        pid, master = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(program(), [program(), "top", "--interval", "100ms", "--gpu", "none", "--root", self.folder])
        seen = b""
        while b"q quit" not in seen:
            ready, _, _ = select.select([master], [], [], DEADLINE_S)
            self.assertTrue(ready, seen)
            seen += os.read(master, 4096)
        return pid, master

    def end(self, pid):
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise AssertionError("it does not end")

    def test_it_ends_when_the_terminal_goes_away(self):
        pid, master = self.start()
        os.close(master)
        self.assertEqual(self.end(pid), 128 + signal.SIGHUP)

    def test_a_stopped_terminal_holds_up_no_signal(self):
        pid, master = self.start()
        self.addCleanup(os.close, master)
        termios.tcflow(master, termios.TCOOFF) # as Ctrl-S
        # A write under way is no condition that could be seen from here; either way it has to end.
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.end(pid), 128 + signal.SIGTERM)


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        print("skipped: tmux is not installed (Debian package tmux)")
        sys.exit(77)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
