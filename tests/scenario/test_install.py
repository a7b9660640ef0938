# SPDX-License-Identifier: MIT. Every way in which the Python package is installed, without a network.
import base64
import csv
import functools
import glob
import gzip
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from conftest import BUILD, NOWHERE, until
from test_replay import HERE, JOB, expected, kernels, play

REPO = HERE.parents[1]
SOURCE = REPO / "libclient/python"
BACKEND = SOURCE / "build_backend.py"
FLAGS = (BUILD / "flags").read_text().split()

pytestmark = pytest.mark.skipif(BUILD != REPO / "build" or any(f.startswith("-fsanitize") for f in FLAGS),
                                reason="what is installed is the plain build")

# Nothing of the caller's, nothing fetched; make finds built what is built.
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("PIP_", "PYTHON", "PROTOND_", "MAKE", "MFLAGS", "CUDA_INJ", "NVTX_INJ", "LD_LIBRARY"))}
ENV.update(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONDONTWRITEBYTECODE="1", CC=FLAGS[0],
           WERROR="-Werror" if "-Werror" in FLAGS else "", LC_ALL="C.UTF-8", **NOWHERE)

OLDEST, NEWEST = 0, -1

PROGRAM = r"""
import sys, protond
with protond.scope("outer"):
    for _ in range(3):
        with protond.scope("inner"):
            pass
print(*{line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "libprotond" in line}, sep="\n")
"""


def call(*command, env=ENV, cwd="/", check=True, **kwargs):
    r = subprocess.run([str(c) for c in command], env=env, cwd=cwd, capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=120, **kwargs)
    assert r.returncode == 0 or not check, f"{command}: {r.returncode}\n{r.stdout}{r.stderr}"
    return r


def make(*words, **kwargs):
    return call("make", "-s", "-C", REPO, f"-j{os.cpu_count()}", f"PYTHON={sys.executable}", *words, **kwargs)


@functools.lru_cache
def installers():
    """Interpreters from 3.8 on that have venv and a pip that installs elsewhere, the oldest first."""
    found = {}
    for python in [sys.executable, *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python"))]:
        r = subprocess.run([python, "-c", "import sys, venv, pip; print(*sys.version_info[:2], *pip.__version__.split('.')[:2])"],
                           env=ENV, capture_output=True, text=True)
        version = tuple(map(int, r.stdout.split()))
        if r.returncode == 0 and version[:2] >= (3, 8) and version[2:] >= (22, 3):
            found.setdefault(version[:2], python)
    return [found[v] for v in sorted(found)]


class Venv:
    def __init__(self, path, which, *options):
        if not installers():
            pytest.skip("no Python here has both venv and pip 22.3 or later (apt-get install python3-venv python3-pip)")
        self.path, self.base = path, installers()[which]
        call(self.base, "-m", "venv", "--without-pip", *options, path)
        self.python = path / "bin/python"
        self.env = {**ENV, "PATH": f"{path}/bin:{ENV['PATH']}"}

    def pip(self, *words, **kwargs):
        return call(self.base, "-m", "pip", "-q", "--python", self.python, *words, **kwargs)

    def files(self):
        return {p for p in self.path.rglob("*") if not p.is_dir()}

    def run(self, world, *words, **env):
        """`protonctl run` of this environment's, with no daemon but the one that it starts."""
        env = {**self.env, **{k: v for k, v in world.env.items() if k.startswith("PROTOND_")}, "HOME": str(world.home),
               **env}
        return call("protonctl", "run", *words, env=env, cwd=world.home)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    path = tmp_path_factory.mktemp("wheel")
    make("bundle-tree", f"TREE={path}/tree")
    call(sys.executable, BACKEND, path / "tree", path)
    return next(path.glob("*.whl"))


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    v = Venv(tmp_path_factory.mktemp("a b") / "venv", OLDEST)  # the space is on purpose
    v.pip("install", wheel)
    return v


# --- the wheel ----------------------------------------------------------------------------------

def test_the_wheel_says_what_it_is(wheel, tmp_path):
    version = re.search('PROTOND_VERSION "(.*)"', (REPO / "libclient/protond.h").read_text()).group(1)
    z = zipfile.ZipFile(wheel)
    info = f"protond-{version}.dist-info/"
    for name, digest, size in csv.reader(z.read(info + "RECORD").decode().splitlines()):
        if not name.endswith("/RECORD"):
            data = z.read(name)
            real = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, size) == ("sha256=" + real, str(len(data))), name
    z.extractall(tmp_path)
    elf = [p for p in tmp_path.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]
    asked = re.findall(r"GLIBC_2\.(\d+)", call("objdump", "-T", *elf).stdout)
    assert wheel.name == (f"protond-{version}-cp38-abi3-manylinux_2_{max(map(int, asked))}"
                          f"_{os.uname().machine}.whl")
    libraries = {p.name for p in (tmp_path / "protond/lib/protond").iterdir()}
    assert {"libuv.so.1", "libsqlite3.so.0", "libmsgpackc.so.2", "libjansson.so.4", "libzstd.so.1"} <= libraries
    licences = {p.name: p.read_text() for p in (tmp_path / info / "licenses").iterdir()}
    assert set(licences) == {"LICENSE", *(name + ".txt" for name in libraries)}
    assert all("icense" in text for text in licences.values())


def test_the_same_tree_makes_the_same_wheel(wheel, tmp_path):
    shutil.copytree(wheel.parent / "tree", tmp_path / "tree", copy_function=shutil.copyfile)  # other times and modes
    call(sys.executable, BACKEND, tmp_path / "tree", tmp_path)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_nothing_but_the_c_library_is_the_systems(venv):
    """Whatever LD_LIBRARY_PATH leads to: here libraries that are none."""
    package = next(venv.path.glob("lib/python*/site-packages/protond"))
    wrong = venv.path.parent / "wrong"
    wrong.mkdir()
    theirs = call("ldd", os.path.realpath(venv.path / "bin/python"), check=False).stdout  # the interpreter's, which begins each command
    for library in (package / "lib/protond").iterdir():
        if library.name not in theirs and not library.name.startswith("libtinfo"):  # bash's, and ldd is a script
            (wrong / library.name).write_text("not a library")
    env = {**venv.env, "LD_LIBRARY_PATH": str(wrong)}
    for name in ("protond", "protonctl", "protonview"):
        out = call("ldd", package / "bin" / name, env=env).stdout
        foreign = [p for p in re.findall(r"=> (/.*) \(", out) if not os.path.realpath(p).startswith(f"{package}/")]
        assert all(re.search(r"/(libc|libm|libstdc\+\+|libgcc_s)\.so", p) for p in foreign), out
        assert call(venv.path / "bin" / name, "--version", env=env).stdout


# --- a fresh environment with the wheel -----------------------------------------------------------

def test_the_first_run(world, venv):
    (world.home / "x.py").write_text(PROGRAM)
    r = venv.run(world, "-b", "none", "-n", "first", "--", "python", "x.py")
    assert "outer" in r.stderr and "inner" in r.stderr
    assert world.cells("first")["/outer/inner"][0] == 3
    lib = next(venv.path.glob("lib/python*/site-packages/protond/lib"))
    assert set(r.stdout.splitlines()) == {f"{lib}/libprotond.so.0", f"{lib}/libprotond-agent.so.0"}
    daemon = world.ctl_json("status")["pid"]
    assert os.readlink(f"/proc/{daemon}/exe") == f"{lib.parent}/bin/protond"


def test_a_command_is_the_program_and_nothing_else(world, venv):
    """No import of the package, which would attach; and what Python ignores the program does not."""
    world.start()
    env = {**venv.env, **{k: v for k, v in world.env.items() if k.startswith("PROTOND_")}}
    ignored = ["protonctl", "run", "-q", "-b", "none", "--", "grep", "SigIgn", "/proc/self/status"]
    here = call(BUILD / "bin/protonctl", *ignored[1:], env=world.env, restore_signals=True).stdout
    assert call(*ignored, env=env, restore_signals=True).stdout == here
    assert world.ctl_json("jobs", "--all")["jobs"] == []
    assert call("protonctl", "finalize", "nosuch", env=env, check=False).returncode == 1


def test_a_python_without_the_package_names_torch(world, venv):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("there is no torch")
    assert call(sys.executable, "-c", "import protond", check=False).returncode != 0
    r = venv.run(world, "-b", "none", "-n", "torch", "--", sys.executable, "-c",
                 "import torch; torch.nn.Linear(2, 2)(torch.ones(1, 2))")
    assert "Linear" in r.stderr


def test_a_prefix_of_copies(world, wheel, tmp_path):
    """As conda makes them: an interpreter of its own, other libraries in lib/, and no variable of venv's."""
    v = Venv(tmp_path / "prefix", NEWEST, "--copies")
    v.pip("install", wheel)
    shutil.copy(BUILD / "lib/libprotond.so.0", v.path / "lib")
    (world.home / "x.py").write_text(PROGRAM)
    r = v.run(world, "-b", "none", "-n", "conda", "--", "python", "x.py", CONDA_PREFIX=str(v.path))
    lib = next(v.path.glob("lib/python*/site-packages/protond/lib"))
    assert set(r.stdout.splitlines()) == {f"{lib}/libprotond.so.0", f"{lib}/libprotond-agent.so.0"}
    assert world.cells("conda")["/outer/inner"][0] == 3


# --- pip in the repository --------------------------------------------------------------------------

def test_pip_installs_from_the_repository(tmp_path):
    v = Venv(tmp_path / "venv", OLDEST)
    before = v.files()
    v.pip("install", "./libclient/python", cwd=REPO)
    assert call(v.python, "-c", PROGRAM).stdout.strip().startswith(str(v.path))
    assert call(v.path / "bin/protonview", "--version").stdout == call(BUILD / "bin/protonview", "--version").stdout
    v.pip("uninstall", "-y", "protond")
    assert v.files() == before


def test_pip_installs_a_link_to_the_build(tmp_path):
    v = Venv(tmp_path / "venv", NEWEST)
    before = v.files()
    v.pip("install", "-e", SOURCE)
    assert call(v.python, "-c", PROGRAM).stdout.strip().startswith(str(BUILD))
    assert call(v.path / "bin/protonview", "--version").stdout == call(BUILD / "bin/protonview", "--version").stdout
    v.pip("uninstall", "-y", "protond")
    assert v.files() == before


def test_a_pip_that_copies_the_folder_first(tmp_path):
    """Before 21.3. Where the repository is then stands in the command line of a process above."""
    copy = tmp_path / "copy"
    shutil.copytree(SOURCE, copy)
    hook = f"import build_backend as b; print(b.prepare_metadata_for_build_wheel({str(tmp_path)!r}))"
    pip = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]], cwd={str(copy)!r}).returncode)"
    env = {**ENV, "PYTHONPATH": str(copy)}
    r = call(sys.executable, "-c", pip, hook, "install", "libclient/python", cwd=REPO, env=env)
    assert (tmp_path / r.stdout.strip() / "METADATA").read_text().startswith("Metadata-Version")
    r = call(sys.executable, "-c", pip, hook, "install", copy, cwd=REPO, env=env, check=False)
    assert r.returncode != 0 and "pip 21.3" in r.stderr and "make wheel" in r.stderr


# --- make -------------------------------------------------------------------------------------------

def test_make_install_and_uninstall(tmp_path):
    prefix, other = tmp_path / "prefix", tmp_path / "other/site-packages"
    make("install", f"PREFIX={prefix}")
    make("install", f"PREFIX={prefix}", f"PYTHONDIR={other}")  # of a Python that lives elsewhere
    sites = [next(prefix.glob("lib/python3*/*-packages")), other]
    for site in sites:
        out = call(sys.executable, "-c", f"import site; site.addsitedir({str(site)!r})\n{PROGRAM}").stdout
        assert out == f"{prefix}/lib/libprotond.so.0\n"
    assert call(prefix / "bin/protonctl", "--version").stdout
    env = {**ENV, "PATH": f"{prefix}/bin:{ENV['PATH']}"}
    for program in ("protonctl", "protonview"):
        ask = f"source {prefix}/share/bash-completion/completions/{program}; COMP_LINE='{program} vers' COMP_POINT=99 COMP_WORDS=({program} vers) COMP_CWORD=1; _protond x vers"
        found = call("bash", "-c", f"{ask}; complete -p {program}; echo \"${{COMPREPLY[@]}}\"", env=env).stdout
        assert f"-F _protond {program}" in found and ("version" in found) == (program == "protonctl"), found
        if shutil.which("zsh"):
            ask = f"fpath=({prefix}/share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -D -u; print $_comps[{program}]"
            assert call("zsh", "-fc", ask, env=env).stdout == "_protonctl\n"
        if shutil.which("fish"):
            ask = f"set -p fish_complete_path {prefix}/share/fish/vendor_completions.d; complete -C '{program} vers'"
            assert ("version" in call("fish", "-Nc", ask, env=env).stdout) == (program == "protonctl")
    make("uninstall", f"PREFIX={prefix}", f"PYTHONDIR={other}")
    make("uninstall", f"PREFIX={prefix}")
    assert [p for p in tmp_path.rglob("*") if not p.is_dir() or p.name == "protond"] == []


def test_make_install_with_protons_names(tmp_path):
    prefix = tmp_path / "prefix"
    words = (f"PREFIX={prefix}", "PROTON_NAMES=1")
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/proton").write_text("#!/bin/sh\n# Triton's\n")
    r = make("install", *words, check=False)
    assert r.returncode != 0 and f"{prefix}/bin/proton is not ours: remove it first" in r.stdout
    make("uninstall", f"PREFIX={prefix}")
    assert "Triton's" in (prefix / "bin/proton").read_text()
    (prefix / "bin/proton").unlink()
    make("install", *words)
    env = {**ENV, "PYTHON": sys.executable}
    assert call(prefix / "bin/proton", "--list-backends", env=env).stdout == "cupti\nnone\n"
    three = REPO / "tests/golden/three_kernels.hatchet"
    out = call(prefix / "bin/proton-viewer", "-m", "time/ns", three, env=env).stdout
    assert "614400.000 ROOT" in out and "foo0" in out
    make("install", *words)  # over its own
    make("uninstall", f"PREFIX={prefix}")
    assert [p for p in tmp_path.rglob("*") if not p.is_dir()] == []


def test_make_install_for_a_package(tmp_path):
    """DESTDIR is where it lies now, not where it will be."""
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/usr/local")
    (link,) = tmp_path.rglob("*.pth")
    assert link.relative_to(tmp_path).parts[:3] == ("usr", "local", "lib")
    assert (link.parent / link.read_text().strip() / "protond/__init__.py").resolve() == \
        (tmp_path / "usr/local/lib/protond/python/protond/__init__.py").resolve()
    assert call(sys.executable, "-c", f"import sys; print({'/' + str(link.relative_to(tmp_path).parent)!r} in sys.path)"
                ).stdout == "True\n", "the interpreter looks there"
    assert dead_links(tmp_path / "usr/local/share/doc/protond") == []
    make("uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr/local")
    assert [p for p in tmp_path.rglob("*") if not p.is_dir()] == []


def dead_links(folder):
    pages = list(folder.rglob("*.md"))
    assert len(pages) > 20
    return [(p.name, link) for p in pages for link in re.findall(r"\]\(([^)#\s]+)", p.read_text())
            if "://" not in link and not (p.parent / link).exists()]


def test_the_bundle_says_what_an_installation_says(wheel):
    tree = wheel.parent / "tree"
    assert dead_links(tree / "share/doc/protond") == []
    assert {p.name for p in (tree / "share").rglob("proton*.[18]")} == {"protonctl.1", "protonview.1", "protond.8", "protond-device.8"}
    assert (tree / "share/zsh/site-functions/_protonctl").exists() and (tree / "LICENSE").exists()


def test_whoever_packs_the_bundle_anybody_may_run_it(tmp_path):
    """Unpacked by root it is root's, not the packer's uid's, and the packer's umask is no matter."""
    (tmp_path / "tree").mkdir()
    tool = tmp_path / "tree/tool"
    tool.write_text("x")
    tool.chmod(0o700)
    if os.getuid() == 0:
        os.chown(tool, 1000, 1000)
    make("bundle", "MAKE=true", f"TREE={tmp_path}/tree", f"BUNDLE={tmp_path}/b/protond")
    with tarfile.open(tmp_path / "b/protond.tar.gz") as t:
        assert [(m.name, m.uid, m.uname, m.mode & 0o777) for m in t] == [
            ("protond", 0, "root", 0o755), ("protond/tool", 0, "root", 0o755)]


def test_without_headers_the_package_is_left_out_and_nothing_else(tmp_path):
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\necho\n")
    bare.chmod(0o755)
    r = make("all", f"PYTHON={bare}")
    assert f"the Python package is left out: {bare} has no Python.h (apt-get install python3-dev)" in r.stdout
    r = make("install", "bundle-tree", f"PREFIX={tmp_path}/prefix", f"TREE={tmp_path}/tree", f"PYTHON={tmp_path}/nosuch")
    assert f"the Python package is left out: {tmp_path}/nosuch is not there" in r.stdout
    assert not [p for p in tmp_path.rglob("*.py") if "share/doc" not in str(p)] and not list(tmp_path.rglob("*.pth"))
    assert call(tmp_path / "prefix/bin/protonctl", "--version").stdout
    r = call(sys.executable, BACKEND, tmp_path / "tree", tmp_path, check=False)
    assert r.returncode != 0 and "Python.h" in r.stderr


# --- two of them in one process ----------------------------------------------------------------------

@pytest.fixture
def second(tmp_path):
    """libprotond and its engine, of another path."""
    for name in ("libprotond.so.0", "libprotond-agent.so.0"):
        shutil.copy(BUILD / "lib" / name, tmp_path)
    return tmp_path / "libprotond.so.0"


def test_a_second_libprotond_stays_silent(world, second):
    """A wheel's in the program, and an installed one that is loaded by path later."""
    world.start()
    program = """
import ctypes, json, os, sys, protond

def threads():
    return [open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task")].count("protond\\n")

def sockets():
    fds = [f"/proc/self/fd/{f}" for f in os.listdir("/proc/self/fd")]
    return sum(os.readlink(f).startswith("socket:") for f in fds if os.path.lexists(f))

session = protond.start("one", backend="none")
while threads() != 1:  # a thread has the name of the one that makes it, until it takes its own
    os.sched_yield()
before = threads(), sockets()
other = ctypes.CDLL(sys.argv[1])
answers = other.InitializeInjection(), other.InitializeInjectionNvtx2(None), other.InitializeInjectionNvtxExtension(None)
with protond.scope("outer"):
    pass
print(json.dumps([before, [threads(), sockets()], answers]))
protond.finalize(session, output_format=None)
"""
    env = {**world.env, "PYTHONPATH": str(BUILD / "lib/protond/python"), "CUDA_INJECTION64_PATH": str(second)}
    before, after, answers = json.loads(call(sys.executable, "-c", program, second, env=env, cwd=world.home).stdout)
    assert before[0] == 1 and before == after
    assert answers[0] == 1
    assert len(world.ctl_json("jobs", "--all")["jobs"]) == 1
    until("the session is finalized", lambda: world.state("one") == "finalized")  # the mark alone does not wait
    assert world.cells("one")["/outer"][0] == 1


@pytest.mark.skipif(not JOB.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
def test_cuda_calls_the_second_and_the_first_records(world, second):
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / "replay/dumps/eager.cuptidump.gz").read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off")
    r = play(world, dump, "replayed", CUDA_INJECTION64_PATH=str(second))
    assert r.returncode == 0, r.stderr
    until("the session is stored", lambda: world.state("replayed") == "finalized")
    assert kernels(world, "replayed") == expected(dump)
