# SPDX-License-Identifier: MIT
"""The progress file of a governor, for tests: made, locked as a governor does that listens, and read as lines."""
import fcntl
import os
import re
import struct

# struct flock of 64-bit Linux: type, whence, start, length, pid.
_WHOLE = struct.pack("hhxxxxqqixxxx", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)


class ProgressFile:
    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _WHOLE)

    def lines(self):
        """What was told, without the moments, which only have to be there."""
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            if not re.search(r" at \d+$", line):
                raise AssertionError(f"no moment in: {line}")
        return [re.sub(r" at \d+$", "", line) for line in lines]

    def told(self):
        """The same, of steps only the last one in a row: how often steps are written is a question of time."""
        lines = self.lines()
        return [line for line, after in zip(lines, lines[1:] + [""])
                if not (line.startswith("step ") and after.startswith("step "))]

    def moments_ns(self):
        with open(self.path, encoding="utf-8") as file:
            return [int(line.rsplit(" ", 1)[1]) for line in file]

    def clear(self):
        os.truncate(self.path, 0)

    def close(self):
        os.close(self.fd)
        os.unlink(self.path)
