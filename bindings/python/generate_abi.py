#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes wattgov/_abi.py, what Python knows of libwattgov's types and functions, from its public headers.

    bindings/python/generate_abi.py INCLUDE_FOLDER OUTPUT [COMPILER...]

The headers go through the C preprocessor (`cc` unless named) and the declarations that are ours go to cffi,
which writes them down ready to use: no copy by hand can drift, and nothing is parsed at import. Types of the
system's headers are left out, since cffi knows them.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

import cffi


def declarations(include, compiler):
    """Our declarations, preprocessed: what the line marks say comes from the folder `include`."""
    command = [*compiler, "-E", "-D__attribute__(x)=", "-I", include, os.path.join(include, "wattgov/wattgov.h")]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines, is_ours = [], False
    for line in text.splitlines():
        mark = re.match(r'# \d+ "(.*?)"', line)
        if mark:
            is_ours = os.path.basename(os.path.dirname(mark.group(1))) == "wattgov"
        elif is_ours and line.strip():
            lines.append(line)
    return "\n".join(lines)


def generate(include, output, compiler=("cc",)):
    ffi = cffi.FFI()
    ffi.set_source("wattgov._abi", None)
    ffi.cdef(declarations(include, compiler))
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "_abi.py")
        with contextlib.redirect_stdout(None):  # it says "generating"
            ffi.emit_python_code(made)
        with open(made, encoding="utf-8") as file:
            text = file.read()
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    generate(sys.argv[1], sys.argv[2], sys.argv[3:] or ("cc",))
