# SPDX-License-Identifier: MIT
"""Makes the wheel: the repository's Makefile builds, this packs what it built.

`pip install ./libclient/python` comes in by build_wheel() (PEP 517) and, with -e, by build_editable() (PEP 660);
`make wheel` runs this file. Nothing but the standard library is needed, so nothing is fetched.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = ("protond", "protonctl", "protonview")
# Every GNU system has these two in a version that will do, and ours would ask for a newer C library.
SYSTEM = ("libstdc++.so", "libgcc_s.so")


class UnsupportedOperation(Exception):
    """What the one who called is to be told."""


# --- the repository -----------------------------------------------------------------------------

def _arguments_above():
    """What the processes that started this one were given, as paths."""
    pid = os.getppid()
    try:
        while pid > 1:
            proc = pathlib.Path("/proc", str(pid))
            folder = os.readlink(proc / "cwd")
            for word in (proc / "cmdline").read_bytes().split(b"\0"):
                yield pathlib.Path(folder, os.fsdecode(word))
            pid = int((proc / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # another user's
        return


def _is_this(folder):
    try:
        return (folder / "build_backend.py").read_bytes() == pathlib.Path(__file__).read_bytes()
    except OSError:
        return False


def _repository():
    if (HERE.parent / "protond.h").exists():
        return HERE.parent.parent
    for folder in _arguments_above():  # pip before 21.3 has copied this folder away, and says not from where
        if _is_this(folder) and (folder.parent / "protond.h").exists():
            return folder.resolve().parent.parent
    sys.exit("protond is built by the Makefile of its repository, and this copy of libclient/python stands outside: "
             "use pip 21.3 or later, or `make wheel` there and install dist/*.whl")


def _make(repository, *words):
    if os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        words += ("PYTHON=" + sys.executable,)  # else the Makefile's own; the extension is the same
    try:
        status = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", *words], cwd=repository).returncode
    except FileNotFoundError:
        sys.exit("protond is built by `make`, which is not there")
    if status != 0:
        sys.exit(f"make failed in {repository}; `make deps` there says which packages are missing (as root it installs them)")


def _version(repository):
    text = (repository / "libclient/protond.h").read_text()
    return re.search(r'^#define PROTOND_VERSION "(.*)"', text, re.M).group(1)


# --- what is in a wheel ---------------------------------------------------------------------------

def _licences(repository, tree=None):
    """{name: file}: ours, and those of the libraries that go along."""
    theirs = sorted((tree / "licenses").iterdir()) if tree else []
    return {"LICENSE": repository / "LICENSE", **{f.name: f for f in theirs if not f.name.startswith(SYSTEM)}}


def _metadata(repository):
    return (f"Metadata-Version: 2.1\nName: protond\nVersion: {_version(repository)}\n"
            "Summary: An always-on profiler for GPU jobs\nLicense: MIT\nLicense-File: LICENSE\n"
            "Classifier: Operating System :: POSIX :: Linux\nRequires-Python: >=3.8\n").encode()


def _info(repository, tag, licences):
    """{name below dist-info: bytes}, but for RECORD"""
    scripts = "".join(f"{name} = _protond_tools:{name}\n" for name in COMMANDS)
    pure = "true" if tag.endswith("-any") else "false"
    return {"METADATA": _metadata(repository),
            "WHEEL": f"Wheel-Version: 1.0\nGenerator: protond\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode(),
            "entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
            **{f"licenses/{name}": path.read_bytes() for name, path in licences.items()}}


def _package(repository, tree):
    """{name: bytes} of all but dist-info, from what `make bundle-tree` left in `tree`."""
    python = tree / "lib/protond/python"
    files = {f"protond/bin/{name}": tree / "bin" / name for name in COMMANDS}
    files.update({f"protond/lib/{f.name}": f for f in tree.glob("lib/*.so.0")})
    files.update({f"protond/lib/protond/{f.name}": f for f in tree.glob("lib/protond/*.so*")
                  if not f.name.startswith(SYSTEM)})
    files.update({str(f.relative_to(python)): f for f in python.rglob("*") if f.is_file()})
    if "protond/_native.abi3.so" not in files:
        sys.exit("no Python here has Python.h, which the extension needs (apt-get install python3-dev)")
    files["_protond_tools.py"] = repository / "libclient/python/_protond_tools.py"
    return {name: path.read_bytes() for name, path in files.items()}


def _tag(files):
    """For CPython 3.8 and later, on systems whose C library has all that the programs ask of it."""
    elf = [data for data in files.values() if data.startswith(b"\x7fELF")]
    newest = max(int(n) for data in elf for n in re.findall(rb"\bGLIBC_2\.(\d+)", data))
    return f"cp38-abi3-manylinux_2_{newest}_{os.uname().machine}"


def _write(folder, repository, tag, files, licences):
    """The wheel; the same bytes for the same files. Returns its name."""
    stem = f"protond-{_version(repository)}"
    info = stem + ".dist-info/"
    files = {**files, **{info + name: data for name, data in _info(repository, tag, licences).items()}}
    record = ""
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{name},sha256={digest},{len(data)}\n"
    files[info + "RECORD"] = f"{record}{info}RECORD,,\n".encode()
    path = pathlib.Path(folder, f"{stem}-{tag}.whl")
    with zipfile.ZipFile(path, "w") as z:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.startswith("protond/bin/") else 0o100644) << 16
            z.writestr(entry, data)
    return path.name


def _wheel(folder, repository, tree):
    files = _package(repository, tree)
    return _write(folder, repository, _tag(files), files, _licences(repository, tree))


# --- what pip calls -------------------------------------------------------------------------------

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    repository = _repository()
    with tempfile.TemporaryDirectory() as tree:
        _make(repository, "bundle-tree", "TREE=" + tree)
        return _wheel(wheel_directory, repository, pathlib.Path(tree))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Points at the build: a changed source is seen after the next `make`."""
    repository = _repository()
    _make(repository, "all")
    files = {"_protond_editable.pth": f"{repository}/build/lib/protond/python\n".encode(),
             "_protond_tools.py": (repository / "libclient/python/_protond_tools.py").read_bytes()}
    return _write(wheel_directory, repository, "py3-none-any", files, _licences(repository))


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("there is no source distribution: protond is built in its repository (`make wheel`)")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What the wheel will say of itself, before it is built: pip asks for it first."""
    repository = _repository()
    info = pathlib.Path(metadata_directory, f"protond-{_version(repository)}.dist-info")
    info.mkdir()
    (info / "METADATA").write_bytes(_metadata(repository))
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


if __name__ == "__main__":
    print(sys.argv[2] + "/" + _wheel(sys.argv[2], _repository(), pathlib.Path(sys.argv[1])))
