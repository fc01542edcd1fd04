"""What a verdict depends on that is no file of the operator's: what is installed, the machine, the
variables of the environment."""

from __future__ import annotations

import os
import platform
import re
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from gradlint.base.digests import digest

#: Variables that Python, torch, their libraries and compilers read, whatever the operator says.
_READ_BY_LIBRARIES = re.compile(
    r"(PYTHON|OMP|KMP|GOMP|MKL|OPENBLAS|BLIS|CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|TORCH|PYTORCH|ATEN"
    r"|TRITON|DNNL|ONEDNN|NUMBA|NPY)\w*"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|CC|CXX|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|NVCC\w*|CPATH"
    r"|LIBRARY_PATH|LANG|LANGUAGE|LC_\w+|TZ"
)

#: Of these, what says only where and how bytecode is kept, or what is printed.
_OF_NO_CONSEQUENCE = frozenset(
    ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONSTARTUP")
)


# -- what is installed -----------------------------------------------------------------------------


@cache
def installed_folders() -> tuple[str, ...]:
    """The folders of Python's own modules and of installed packages, with a separator at the end.

    What lies there counts by name, version and record, not file by file."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names} | set(site.getsitepackages())
    with suppress(Exception):
        folders.add(site.getusersitepackages())
    return tuple(sorted({os.path.join(os.path.realpath(path), "") for path in folders if path}))


@cache
def installed_digest() -> str:
    """Of all installed distributions: names, versions, and what their records say of their files.

    A record holds the hash of every file that was installed, so that two builds of one version
    differ. What it says of scripts and of itself depends on the folder, and is left out."""
    return digest(*sorted(_distributions()))


def _distributions() -> Iterator[str]:
    for folder in installed_folders():
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")):
                    yield f"{entry.name} {_record(os.path.join(entry.path, 'RECORD'))}"


def _record(path: str) -> str:
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError:
        return ""
    kept = [
        line
        for line in lines
        if not line.startswith(b"..") and b".dist-info/" not in line and b"__pycache__" not in line
    ]
    return digest(*sorted(kept))


# -- the machine -----------------------------------------------------------------------------------


@cache
def python_digest() -> str:
    """Of the interpreter."""
    return digest(sys.version, sys.implementation.name, str(sys.flags), sys.byteorder)


@cache
def processor() -> str:
    """The model of the processor and its instructions, by which kernels are chosen."""
    found = [platform.system(), platform.machine()]
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "flags", "Features", "CPU part") and value:
                found.append(" ".join(sorted(value.split())))
            if not line.strip():  # the first processor tells of all
                break
    return "\n".join(found)


@cache
def graphics() -> str:
    """The models of the devices of NVIDIA's driver, and its version."""
    found = []
    root = Path("/proc/driver/nvidia")
    with suppress(OSError):
        found.append((root / "version").read_text(errors="replace"))
        for path in sorted((root / "gpus").glob("*/information")):
            found += [
                line for line in path.read_text(errors="replace").splitlines() if "Model" in line
            ]
    return "\n".join(found)


@cache
def compilers() -> str:
    """Which compilers build native sources here: their paths, sizes and times."""
    found = []
    for name in (os.environ.get("CXX") or "c++", "g++", "clang++", "nvcc"):
        path = shutil.which(name)
        if path is not None:
            status = os.stat(path)
            found.append(f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(found)


# -- the environment -------------------------------------------------------------------------------


def variables(
    texts: Iterable[str], *, every: bool, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables that count: those that libraries read, and those whose names stand in the
    sources.

    Args:
        texts: all text constants of the sources.
        every: whether the sources read variables whose names they put together.
        environ: the environment; default the process's own.
    """
    now = os.environ if environ is None else environ
    named = set(texts)
    return {
        name: value
        for name, value in sorted(now.items())
        if every
        or name in named
        or (_READ_BY_LIBRARIES.fullmatch(name) and name not in _OF_NO_CONSEQUENCE)
    }
