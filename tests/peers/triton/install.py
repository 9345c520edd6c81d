# SPDX-License-Identifier: MIT
"""What the tests of the real Triton need, brought into a folder that is kept.

    python(cache)          a virtual environment with Triton's server (as nvidia-pytriton carries it: version 2.51, with
                           the python backend only), onnxruntime, Triton's client, and four real ONNX models
    tritonserver(cache)    the server with the backend's stub in place: (program, environment)
    perf_analyzer(cache)   Triton's own load generator: the command, a list

perf_analyzer is built for glibc 2.38, Debian 12 has 2.36: the program runs with the loader and the libraries of
Debian 13, which apt fetches under a state of its own and nothing installs.

Where something cannot be had, Unavailable says why; a test then ends with 77. The first call takes about a minute and
600 MB of disk.
"""
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess

UNREACHABLE = ("Temporary failure in name resolution", "Name or service not known", "Network is unreachable",
               "Connection refused", "Could not find a version", "No matching distribution", "timed out",
               "Max retries exceeded", "ProxyError", "ConnectTimeout", "Service Unavailable", "Failed to fetch",
               "Could not resolve", "Unable to locate package", "Some index files failed to download")

# With what they need, and alone: of the latter only the models are wanted, not torch or opencv.
REQUIREMENTS = ("nvidia-pytriton==0.7.0", "onnxruntime==1.32.0", "tritonclient[http,grpc]==2.73.0", "numpy==1.26.4")
ALONE = ("rapidocr-onnxruntime==1.4.4", "magika==1.0.3", "silero-vad==6.2.3")
PERF_ANALYZER = "perf-analyzer==2.60.0"
TRIXIE_PACKAGES = ("libc6", "libstdc++6", "libgcc-s1", "libssl3t64", "zlib1g", "libzstd1")


class Unavailable(Exception):
    """A peer that cannot be had here; the reason."""


def execute(command, what):
    """Runs an installer. Unavailable when what it says is that the registry is out of reach."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0:
        return
    lines = [line for line in done.stdout.splitlines() if any(words in line for words in UNREACHABLE)]
    if lines:
        raise Unavailable(f"the registry with {what} cannot be reached: {lines[-1].strip()}")
    raise RuntimeError(f"installing {what} failed:\n{done.stdout}")


def once(cache, name, words, make):
    """The folder NAME-HASH in the cache, made by `make(folder)` when it is not there. Tests may want it at once."""
    os.makedirs(cache, exist_ok=True)
    folder = os.path.join(os.path.abspath(cache),
                          name + "-" + hashlib.sha256("\n".join(words).encode()).hexdigest()[:12])
    with open(os.path.join(cache, name + ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "ready")):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            make(folder)
            with open(os.path.join(folder, "ready"), "w", encoding="utf-8"):
                pass
    return folder


def make_environment(folder):
    made = subprocess.run(["/usr/bin/python3", "-m", "venv", folder], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        raise Unavailable("/usr/bin/python3 makes no virtual environment: install the Debian package python3-venv")
    pip = [os.path.join(folder, "bin/pip"), "install", "--quiet", "--no-input", "--retries", "1", "--timeout", "15",
           "--disable-pip-version-check"]
    execute([*pip, *REQUIREMENTS], "Triton")
    execute([*pip, "--no-deps", *ALONE], "the ONNX models")
    # The server looks for the stub of the backend beside the backend; the package has one a Python.
    tree = os.path.join(site(folder), "pytriton/tritonserver")
    version = os.path.basename(os.path.dirname(site(folder)))[len("python"):]
    stub = os.path.join(tree, "python_backend_stubs", version, "triton_python_backend_stub")
    if not os.path.exists(stub):
        raise Unavailable(f"nvidia-pytriton has no stub for Python {version}")
    shutil.copy(stub, os.path.join(tree, "backends/python/triton_python_backend_stub"))


def environment(cache):
    return once(cache, "triton", REQUIREMENTS + ALONE, make_environment)


def python(cache):
    return os.path.join(environment(cache), "bin/python")


def site(folder):
    """The folder with the packages of a virtual environment."""
    return glob.glob(os.path.join(folder, "lib/python3.*/site-packages"))[0]


def tritonserver(cache):
    """The server's command, without where to listen, and what its environment needs."""
    packages = site(environment(cache))
    tree = os.path.join(packages, "pytriton/tritonserver")
    command = [os.path.join(tree, "bin/tritonserver"), "--backend-directory", os.path.join(tree, "backends"),
               "--cache-directory", os.path.join(tree, "caches")]
    return command, {"LD_LIBRARY_PATH": os.path.join(packages, "nvidia_pytriton.libs")}


def make_perf_analyzer(folder):
    wheels, trixie = os.path.join(folder, "wheel"), os.path.join(folder, "trixie")
    if shutil.which("apt-get") is None:
        raise Unavailable("perf_analyzer needs apt-get to fetch libraries of Debian 13")
    pip = os.path.join(environment(os.path.dirname(folder)), "bin/pip")
    execute([pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--platform", "manylinux_2_38_x86_64",
             "--python-version", "312", "--retries", "1", "--timeout", "15", "-d", wheels, PERF_ANALYZER],
            "perf_analyzer")
    shutil.unpack_archive(glob.glob(os.path.join(wheels, "*.whl"))[0], wheels, "zip")
    state = os.path.join(folder, "apt")
    for name in ("lists/partial", "archives/partial", "etc"):
        os.makedirs(os.path.join(state, name))
    with open(os.path.join(state, "status"), "w", encoding="utf-8"):
        pass  # nothing is installed: apt shall not think of this machine's versions
    sources = os.path.join(state, "etc/sources.list")
    with open(sources, "w", encoding="utf-8") as lines:
        lines.write(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror()} trixie main\n")
    options = ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache::archives={state}/archives",
               "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::State::status={state}/status", "-o", "APT::Sandbox::User=root", "-o", f"Dir::Cache::pkgcache={state}/p",
               "-o", f"Dir::Cache::srcpkgcache={state}/s", "-o", "Acquire::Retries=1", "-o", "Acquire::Languages=none",
               "-o", "APT::Update::Error-Mode=any"]
    execute(["apt-get", *options, "update"], "Debian 13")
    download = subprocess.run(["apt-get", *options, "download", *TRIXIE_PACKAGES], cwd=state, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    if download.returncode != 0:
        raise Unavailable(f"the libraries of Debian 13 cannot be fetched: {download.stdout.strip()[-200:]}")
    for package in glob.glob(os.path.join(state, "*.deb")):
        execute(["dpkg", "-x", package, trixie], "the libraries of Debian 13")
    shutil.rmtree(os.path.join(state, "lists"))


def mirror():
    """Debian's mirror as this machine knows it."""
    files = ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]
    for name in files:
        try:
            with open(name, encoding="utf-8") as lines:
                for line in lines:
                    for word in line.split("#")[0].split():
                        if word.startswith(("http://", "https://")) and "security" not in word and "debian" in word:
                            return word
        except OSError:
            continue
    return "http://deb.debian.org/debian"


def perf_analyzer(cache):
    folder = once(cache, "perf-analyzer", (PERF_ANALYZER, *TRIXIE_PACKAGES), make_perf_analyzer)
    libraries = os.path.join(folder, "trixie/usr/lib/x86_64-linux-gnu")
    programs = glob.glob(os.path.join(folder, "wheel/**/bin/perf_analyzer"), recursive=True)
    os.chmod(programs[0], 0o755)
    return [os.path.join(libraries, "ld-linux-x86-64.so.2"), "--library-path", libraries, programs[0]]
