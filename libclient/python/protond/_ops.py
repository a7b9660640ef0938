# SPDX-License-Identifier: MIT
"""Operators of PyTorch: builds what sees them (ops.cpp), once for each torch, and loads it.

torch's RecordFunction is C++, so what listens to it must be built for the torch at hand. It is built
here, with the user's compiler, into the user's cache; a lock keeps all ranks of a machine but one from
building too. Why there are no operators is said once, in a line, and the program goes on.
"""
import ctypes
import fcntl
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

from . import _api, _options, _watch

_native = _api._native
_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = ("ops.cpp", "ops_calls.h", "ops_flops.h", "op_terms.h", "_ops.py")  # what a build depends on
_BUILD_S = 600
_HALF = "half-"  # a name of what is not built yet begins so
# The bits of enum ops_detail.
_DETAILS = {"torch_shapes": 1, "torch_dtypes": 2, "torch_strides": 4, "torch_scalars": 8, "torch_kwargs": 16,
            "torch_stack": 32, "torch_sequence": 64, "torch_flops": 128}


class Lacking(Exception):
    """There are no operators; the text says why, and what helps."""


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


def _key(torch):
    """What a build depends on."""
    h = hashlib.sha256()
    for name in _SOURCES:
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


def _headers(torch):
    """Folders to search; Debian's torch has its headers where the compiler looks anyway."""
    own = os.path.join(_folder(torch), "include")
    for folder in (own, "/usr/include"):
        if os.path.exists(os.path.join(folder, "ATen/record_function.h")):
            return [folder] if folder == own else []
    raise Lacking(f"torch {torch.__version__} came without its headers (ATen/record_function.h): "
                  "install them, on Debian by libtorch-dev")


def _command(torch, target, standard):
    lib = os.path.join(_folder(torch), "lib")
    return [*_compiler(), "-O2", "-DNDEBUG", "-fPIC", "-shared", f"-std=c++{standard}", "-fvisibility=hidden", "-w",
            f"-D_GLIBCXX_USE_CXX11_ABI={_abi(torch)}", *(f"-isystem{d}" for d in _headers(torch)),
            "-o", target, os.path.join(_HERE, "ops.cpp"), f"-L{lib}", "-ltorch_cpu", "-lc10"]


def _compile(torch, target):
    """None, or the first error of the compiler."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith(("PROTOND_", "CUDA_INJECTION"))}
    env.update(PROTOND_DISABLE="1", LC_ALL="C")  # the compiler is no job to record
    for standard in (17, 20):  # what torch asks for has grown
        try:
            r = subprocess.run(_command(torch, target, standard), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=_BUILD_S, check=False)
        except subprocess.TimeoutExpired:
            return f"the compiler took more than {_BUILD_S} s"
        except OSError as e:
            return f"the compiler does not run: {e}"
        if r.returncode == 0:
            return None
        lines = r.stdout.decode(errors="replace").splitlines()
        said = next((one for one in lines if "error" in one), lines[-1] if lines else f"status {r.returncode}")
    return said.strip()[:300]


def _sweep(folder):
    """What was killed while it built."""
    for name in os.listdir(folder):
        if name.startswith(_HALF):
            os.unlink(os.path.join(folder, name))


def _build(torch, folder, path):
    """Under the lock. What failed a moment ago, for another rank, is not tried again."""
    came, failed = time.time(), path + ".failed"
    fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            _sweep(folder)
        except OSError:
            pass  # a file system without locks: each builds, and the last one's stays
        if os.path.lexists(path):
            return
        if os.path.lexists(failed) and os.lstat(failed).st_mtime >= came:
            with open(failed, encoding="utf-8", errors="replace") as file:
                raise Lacking(file.read(1000))
        _compiler(), _headers(torch)
        sys.stderr.write(f"protond: what sees operators is built for torch {torch.__version__}, once: {path}\n")
        made, target = tempfile.mkstemp(prefix=_HALF, suffix=".so", dir=folder)
        os.close(made)
        try:
            said = _compile(torch, target)
            if said is None:
                os.chmod(target, 0o700)
                os.replace(target, path)
                return
        finally:
            if os.path.lexists(target):
                os.unlink(target)
        words = f"what sees them does not build for torch {torch.__version__}: {said}"
        with open(failed, "w", encoding="utf-8") as file:
            file.write(words)
        raise Lacking(words)
    finally:
        os.close(fd)


def built(torch):
    """The path of what was built for this torch, now or before."""
    folder = cache()
    path = os.path.join(folder, f"ops-{torch.__version__.replace(os.sep, '_')}-{_key(torch)}.so")
    try:
        if not os.path.lexists(path):
            _build(torch, folder, path)
        _check(path, os.lstat(path), stat.S_ISREG)
    except OSError as e:
        raise Lacking(f"{path}: {e.strerror}: set XDG_CACHE_HOME to a directory that you can write to") from None
    return path


# --- loading ------------------------------------------------------------------------------------

_lock = threading.Lock()
_tried = False


def _load(torch):
    lib = ctypes.CDLL(built(torch))
    lib.protond_ops_open.restype = ctypes.c_char_p
    calls, options = _native.ops_calls(), _options.current()
    details = sum(bit for name, bit in _DETAILS.items() if options[name])
    why = lib.protond_ops_open(calls, ctypes.c_uint64(len(calls)), ctypes.c_uint32(details),
                               os.path.join(_folder(torch), "").encode(errors="surrogateescape"),
                               os.path.join(_HERE, "").encode(errors="surrogateescape"))
    if why is not None:
        raise Lacking(why.decode())
    _native.ops_loaded(ctypes.cast(lib.protond_ops_turn, ctypes.c_void_p).value, options["torch_ops"])


def load(torch):
    """Operators are scopes from now on, while a session wants them."""
    global _tried
    with _lock:
        if _tried:
            return
        _tried = True
        try:
            _load(torch)
        except Lacking as e:
            sys.stderr.write(f"protond: operators are not recorded: {e}\n")
        except (OSError, AttributeError, ValueError) as e:
            sys.stderr.write(f"protond: operators are not recorded: what was built for torch {torch.__version__} cannot be loaded: {e}\n")


def wanted():
    """A session of this process wants them, and waits: they are there when this returns, if torch is."""
    _watch.when_imported("torch", load)


def wanted_meanwhile():
    """Somebody switched them on. The program goes on while they are built."""
    if "torch" in sys.modules:
        threading.Thread(target=wanted, name="protond operators", daemon=True).start()
    else:
        wanted()
