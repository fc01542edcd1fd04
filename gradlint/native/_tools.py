"""The compilers and ninja: where they are, their versions, and what to do if they are missing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache

from gradlint.native.errors import BuildError

#: Names of C++ compilers; the first is the one that torch's extension builder takes by itself.
COMPILERS = ("c++", "g++", "clang++")

#: Seconds that a tool may take to say its version.
_PATIENCE = 20.0


@dataclass(frozen=True)
class Tool:
    """A program.

    Args:
        path: where it is.
        version: as it says itself.
    """

    path: str
    version: str


def compiler() -> Tool:
    """The C++ compiler: ``$CXX``, else the first of :data:`COMPILERS` on PATH.

    Raises:
        BuildError: there is none, or it does not run.
    """
    words = shlex.split(os.environ.get("CXX", "")) or [next(filter(shutil.which, COMPILERS), "")]
    # After ccache and the like, the compiler is the second word.
    path = shutil.which(words[0]) if words[0] else None
    if path is None:
        what = f"none of {', '.join(COMPILERS)} is on PATH"
        if words[0]:
            what = f"$CXX names `{words[0]}`, which is not on PATH"
        raise BuildError(
            f"no C++ compiler: {what}",
            hint="install one (Debian: apt install g++; conda: conda install cxx-compiler) or set "
            "CXX to the one you have",
        )
    output = _output_of(path, *words[1:], "--version")
    if output is None:
        raise BuildError(
            f"the C++ compiler {path} does not run",
            hint="reinstall it, or set CXX to one that `$CXX --version` shows working",
        )
    first = output.strip().splitlines()[0] if output.strip() else ""
    return Tool(path, first)


def ninja() -> Tool:
    """Ninja, on PATH or as the package ``ninja`` installed it next to this Python.

    Raises:
        BuildError: there is none, or it does not run.
    """
    path = shutil.which("ninja") or shutil.which("ninja", path=_beside_python())
    output = _output_of(path, "--version") if path else None
    if path is None or output is None:
        what = "is not installed" if path is None else f"does not run ({path})"
        raise BuildError(
            f"ninja, which builds extensions, {what}",
            hint=f"{shlex.quote(sys.executable or 'python')} -m pip install ninja",
        )
    return Tool(path, output.strip())


def nvcc() -> Tool | None:
    """CUDA's compiler: in ``$CUDA_HOME``, on PATH, or in /usr/local/cuda; None without one."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [os.path.join(home, "bin") for home in homes]
    path = (
        shutil.which("nvcc", path=os.pathsep.join(folders)) if folders else None
    ) or shutil.which("nvcc")
    path = path or shutil.which("nvcc", path="/usr/local/cuda/bin")
    output = _output_of(path, "--version") if path else None
    if path is None or output is None:
        return None
    found = re.search(r"V(\d+(?:\.\d+)+)", output) or re.search(r"release (\d+\.\d+)", output)
    return Tool(path, found[1] if found else "unknown")


def need_nvcc() -> Tool:
    """CUDA's compiler.

    Raises:
        BuildError: there is none.
    """
    found = nvcc()
    if found is None:
        raise BuildError(
            "nvcc, CUDA's compiler, is not found: neither in $CUDA_HOME/bin, nor on PATH, nor in "
            "/usr/local/cuda/bin",
            hint="install the CUDA toolkit and set CUDA_HOME to its folder",
        )
    return found


def cuda_home(tool: Tool) -> str:
    """The toolkit that ``tool`` (nvcc, or a script that calls it) belongs to, as it says itself."""
    output = _output_of(tool.path, "--dryrun", "-E", "-x", "cu", os.devnull) or ""
    found = re.search(r"^#\$ TOP=(.+)$", output, re.MULTILINE)
    if found:
        return os.path.normpath(found[1].strip())
    return os.path.dirname(os.path.dirname(os.path.realpath(tool.path)))


def has_option(tool: Tool, option: str) -> bool:
    """Whether the help of ``tool`` names ``option``."""
    return (
        re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", _output_of(tool.path, "--help") or "")
        is not None
    )


def search_path(*tools: Tool) -> str:
    """PATH with the folders of ``tools`` added where it lacks them."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    folders += [os.path.dirname(tool.path) for tool in tools]
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder))


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _beside_python() -> str:
    folders = [os.path.dirname(sys.executable or "")]
    try:
        # Optional: ninja may also be installed in other ways.
        from ninja import BIN_DIR  # noqa: PLC0415 (only where ninja is not on PATH)

        folders.append(BIN_DIR)
    except ImportError:
        pass
    return os.pathsep.join(folders)


@lru_cache(maxsize=16)
def _output_of(*command: str) -> str | None:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
