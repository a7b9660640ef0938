# SPDX-License-Identifier: MIT
"""What is C++ and must be built for the torch at hand: with the user's compiler, into the user's cache, once;
a lock keeps all ranks of a machine but one from building too.
"""
import fcntl
import glob
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from . import _watch
from ._say import say

_HERE = os.path.dirname(os.path.abspath(__file__))
_BUILD_S = 600
_LOOK_S = 0.1
_FULL = "No space left on device"
_HALF = "half-"  # a name of what is not built yet begins so


class Lacking(Exception):
    """It is not to be had; the text says why, and what helps."""


class Part(NamedTuple):
    name: str      # of the file
    source: str
    others: tuple  # files that it needs
    libs: tuple
    cuda: bool     # it needs CUDA's headers
    what: str      # for people: "what sees ..."


# --- the cache ----------------------------------------------------------------------------------

def cache():
    """The directory of what was built: ours alone, for it is loaded into programs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        raise Lacking(f"the cache {base!r} is no absolute path: set XDG_CACHE_HOME to a directory that you can write to")
    path = os.path.join(base, "protond")
    try:
        os.makedirs(base, mode=0o700, exist_ok=True)
        for path in (path, os.path.join(path, "ops")):
            if not os.path.lexists(path):
                try:
                    os.mkdir(path, 0o700)
                except FileExistsError:
                    pass  # another rank's
            _check(path, os.lstat(path), stat.S_ISDIR)
    except OSError as e:
        raise Lacking(f"{path}: {e.strerror}: set XDG_CACHE_HOME to a directory that you can write to") from None
    return path


def _check(path, s, is_kind):
    if not is_kind(s.st_mode) or s.st_uid != os.geteuid() or s.st_mode & 0o022:
        raise Lacking(f"{path} is not yours alone, so nothing is loaded from there: remove it, or set XDG_CACHE_HOME")


def _key(torch, part):
    """What a build depends on."""
    h = hashlib.sha256()
    for name in (part.source, *part.others, "_built.py"):
        with open(os.path.join(_HERE, name), "rb") as file:
            h.update(file.read())
    for fact in (torch.__version__, getattr(torch.version, "git_version", ""), _abi(torch), _folder(torch),
                 sys.version_info[:2], platform.machine()):
        h.update(repr(fact).encode() + b"\0")
    return h.hexdigest()[:24]


def _abi(torch):
    return int(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True))


def _folder(torch):
    return os.path.dirname(os.path.abspath(torch.__file__))


# --- building -----------------------------------------------------------------------------------

def _compiler():
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        words = name.split()
        if words and shutil.which(words[0]):
            return words
    raise Lacking("no C++ compiler is here (CXX, c++, g++, clang++): install one, such as g++")


def _headers(torch, part):
    """Folders to search; Debian's torch has its headers where the compiler looks anyway."""
    own = os.path.join(_folder(torch), "include")
    for folder in (own, "/usr/include"):
        if os.path.exists(os.path.join(folder, "ATen/record_function.h")):
            return ([folder] if folder == own else []) + (_cuda_headers(torch) if part.cuda else [])
    raise Lacking(f"torch {torch.__version__} came without its headers (ATen/record_function.h): "
                  "install them, on Debian by libtorch-dev")


def _cuda_headers(torch):
    """Beside torch, as its wheels bring them, and then of a toolkit, which has what those leave out."""
    beside = os.path.join(os.path.dirname(_folder(torch)), "nvidia")
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    found = [d for d in (*sorted(glob.glob(os.path.join(glob.escape(beside), "c*", "include"))), os.path.join(home, "include"))
             if os.path.exists(os.path.join(d, "cuda_runtime_api.h"))]
    if not found and not os.path.exists("/usr/include/cuda_runtime_api.h"):
        raise Lacking("CUDA's headers (cuda_runtime_api.h) are neither beside torch nor in CUDA_HOME: install them")
    return found


def _command(torch, part, target, standard):
    lib = os.path.join(_folder(torch), "lib")
    return [*_compiler(), "-O2", "-DNDEBUG", "-fPIC", "-shared", f"-std=c++{standard}", "-fvisibility=hidden", "-w",
            f"-D_GLIBCXX_USE_CXX11_ABI={_abi(torch)}", *(f"-isystem{d}" for d in _headers(torch, part)),
            "-o", target, os.path.join(_HERE, part.source), f"-L{lib}", *part.libs]


def _compile(torch, part, target):
    """None, or the first error of the compiler."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith(("PROTOND_", "CUDA_INJECTION"))}
    env.update(PROTOND_DISABLE="1", LC_ALL="C")  # the compiler is no job to record
    for standard in (17, 20):  # what torch asks for has grown
        try:
            r = subprocess.run(_command(torch, part, target, standard), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=_BUILD_S, check=False)
        except subprocess.TimeoutExpired:
            return f"the compiler took more than {_BUILD_S} s"
        except OSError as e:
            return f"the compiler does not run: {e}"
        if r.returncode == 0:
            return None
        lines = r.stdout.decode(errors="replace").splitlines()
        full = next((one for one in lines if _FULL in one), None)  # no other version of C++ would help
        if full is not None:
            return f"{full.strip()[:300]}: make room there, or set XDG_CACHE_HOME and TMPDIR"
        said = next((one for one in lines if "error" in one), lines[-1] if lines else f"status {r.returncode}")
    return said.strip()[:300]


def _sweep(folder):
    """What was killed while it built."""
    for name in os.listdir(folder):
        if name.startswith(_HALF):
            os.unlink(os.path.join(folder, name))


def _lock(fd, part):
    """One that builds may be stopped, and never go on."""
    until = time.monotonic() + _BUILD_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise Lacking(f"another process has been building {part.what} for {_BUILD_S} s: end it, or set XDG_CACHE_HOME") from None
            time.sleep(_LOOK_S)


def _build(torch, part, folder, path):
    """Under the lock. What failed a moment ago, for another rank, is not tried again."""
    came, failed = time.time(), path + ".failed"
    fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            _lock(fd, part)
            _sweep(folder)
        except OSError:
            pass  # a file system without locks: each builds, and the last one's stays
        if os.path.lexists(path):
            return
        if os.path.lexists(failed) and os.lstat(failed).st_mtime >= came:
            with open(failed, encoding="utf-8", errors="replace") as file:
                raise Lacking(file.read(1000))
        _compiler(), _headers(torch, part)
        say(f"{part.what} is built for torch {torch.__version__}, once: {path}")
        made, target = tempfile.mkstemp(prefix=_HALF, suffix=".so", dir=folder)
        os.close(made)
        try:
            said = _compile(torch, part, target)
            if said is None:
                os.chmod(target, 0o700)
                os.replace(target, path)
                return
        finally:
            if os.path.lexists(target):
                os.unlink(target)
        words = f"{part.what} does not build for torch {torch.__version__}: {said}"
        with open(failed, "w", encoding="utf-8") as file:
            file.write(words)
        raise Lacking(words)
    finally:
        os.close(fd)


def built(torch, part):
    """The path of what was built for this torch, now or before."""
    folder = cache()
    path = os.path.join(folder, f"{part.name}-{torch.__version__.replace(os.sep, '_')}-{_key(torch, part)}.so")
    try:
        if not os.path.lexists(path):
            _build(torch, part, folder, path)
        _check(path, os.lstat(path), stat.S_ISREG)
    except OSError as e:
        raise Lacking(f"{path}: {e.strerror}: set XDG_CACHE_HOME to a directory that you can write to") from None
    return path


# --- loading ------------------------------------------------------------------------------------

class Wanted:
    """What a session wants of torch: loaded once in a process, when torch is there. Why not is said in a line that begins
    with `lacks`, and the program goes on."""

    def __init__(self, lacks, load):
        self._lacks, self._load, self._lock, self._tried = lacks, load, threading.Lock(), False

    def attempt(self, load, torch):
        try:
            load(torch)
        except Lacking as e:
            say(f"{self._lacks}: {e}")
        except (OSError, AttributeError, ValueError) as e:
            say(f"{self._lacks}: what was built for torch {torch.__version__} cannot be loaded: {e}; remove that file to have it "
                "built anew")

    def load(self, torch):
        """It is there from now on, where it can be."""
        with self._lock:
            if not self._tried:
                self._tried = True
                self.attempt(self._load, torch)

    def wait(self):
        """A session of this process wants it: it is there when this returns, if torch is."""
        _watch.when_imported("torch", self.load)

    def meanwhile(self):
        """Somebody switched it on. The program goes on while it is built."""
        if "torch" in sys.modules:
            threading.Thread(target=self.wait, name="protond builds", daemon=True).start()
        else:
            self.wait()
