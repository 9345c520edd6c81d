# SPDX-License-Identifier: MIT
"""Builds the wheel for `pip install bindings/python` (PEP 517), with cffi and a C preprocessor alone.

The package is a few files, but one of them is made from ../../include, and the version is the one of
../../meson.build: that is all that this does beyond zipping. The headers are outside of this folder, so there is no
source distribution: install from a checkout.
"""
import base64
import hashlib
import os
import re
import tempfile
import zipfile

import generate_abi

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.join(HERE, "../..")


def _read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def _version():
    return re.search(r"^  version: '([\d.]+)'", _read(CHECKOUT, "meson.build").decode(), flags=re.MULTILINE).group(1)


def _package():
    """The files of the package by their names in the wheel."""
    files = {}
    for folder in ("wattgov", "wattgov/integrations"):
        files.update({f"{folder}/{name}": _read(HERE, folder, name)
                      for name in sorted(os.listdir(os.path.join(HERE, folder))) if name.endswith((".py", ".typed"))})
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "_abi.py")
        generate_abi.generate(os.path.join(CHECKOUT, "include"), made)
        files["wattgov/_abi.py"] = _read(made)
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    version = _version()
    info = f"wattgov-{version}.dist-info"
    files = _package()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: wattgov\nVersion: {version}\n"
        "Summary: What a piece of a program costs in joules and seconds\nLicense: MIT\n"
        "Requires-Python: >=3.9\nRequires-Dist: cffi (>=1.15)\n").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: wattgov\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    wheel = f"wattgov-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    del sdist_directory, config_settings
    raise RuntimeError("wattgov has no source distribution: install from a checkout")
