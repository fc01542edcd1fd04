"""What is installed here and what can run, gathered without importing torch in this process."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from gradlint.base.text import error_line

#: Seconds that importing torch and trying its devices may take.
TORCH_TIMEOUT = 120.0

#: Seconds that a compiler may take to print its version.
COMPILER_TIMEOUT = 20.0

#: Extras that are not features of the command line.
_NOT_FEATURES = {"test", "dev"}

_MARK = "gradlint-torch-facts:"

# Runs in a process of its own: a torch that crashes on import is then a fact like any other.
_TORCH_FACTS = f"""
import json, sys, warnings
facts = {{}}
try:
    import torch
    facts["version"] = torch.__version__
    facts["path"] = torch.__file__
    facts["cuda_build"] = torch.version.cuda or getattr(torch.version, "hip", None)
    facts["threads"] = torch.get_num_threads()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        facts["cuda_available"] = torch.cuda.is_available()
    facts["warnings"] = [str(item.message).splitlines()[0] for item in caught if str(item.message)]
    facts["gpus"] = []
    for index in range(torch.cuda.device_count() if facts["cuda_available"] else 0):
        found = torch.cuda.get_device_properties(index)
        gpu = {{"name": found.name, "capability": f"{{found.major}}.{{found.minor}}",
               "memory_bytes": found.total_memory, "error": None}}
        try:
            torch.ones(2, device=f"cuda:{{index}}").add(1).cpu()
        except Exception as error:
            gpu["error"] = (str(error).splitlines() or [type(error).__name__])[0]
        facts["gpus"].append(gpu)
except BaseException as error:
    lines = str(error).strip().splitlines()
    facts["error"] = type(error).__name__ + (": " + lines[0] if lines else "")
print("\\n{_MARK}" + json.dumps(facts), flush=True)
"""


def environment() -> dict[str, Any]:
    """Versions, devices, compilers and extras, and what can run with them, as JSON-able values."""
    facts: dict[str, Any] = {
        "gradlint": {"version": _version("gradlint"), "path": str(Path(__file__).parent)},
        "python": {
            "version": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
        "torch": torch_facts(),
        "compilers": {name: compiler_facts(name) for name in ("g++", "nvcc", "ninja")},
        "triton": triton_facts(),
        "extras": extras(),
    }
    facts["can_run"] = can_run(facts)
    return facts


def torch_facts(executable: str | None = None) -> dict[str, Any]:
    """Version, build and GPUs of torch; ``error`` says why it can't be imported.

    Args:
        executable: the Python to ask; default this one.
    """
    try:
        done = subprocess.run(
            [executable or sys.executable, "-c", _TORCH_FACTS],
            capture_output=True,
            timeout=TORCH_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"import torch did not end within {TORCH_TIMEOUT:.0f} s"}
    except (OSError, ValueError) as error:
        return {"error": f"Python can't be started: {error}"}
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(_MARK):
            found: dict[str, Any] = json.loads(line.removeprefix(_MARK))
            return found
    tail = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return {"error": f"import torch ended the process with {how}" + "".join(f": {t}" for t in tail)}


def triton_facts(executable: str | None = None) -> dict[str, Any]:
    """Version of Triton, None where it is not installed, and whether its interpreter runs kernels
    on the CPU: ``error`` says why it does not.

    Args:
        executable: the Python to ask; default this one.
    """
    version = _version("triton")
    if version is None:
        return {"version": None, "error": "triton is not installed"}
    try:
        done = subprocess.run(
            [executable or sys.executable, "-m", "gradlint.triton_probe"],
            capture_output=True,
            timeout=TORCH_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"version": version, "error": error_line(error)}
    tail = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    failed = f"its interpreter ends with status {done.returncode}" + "".join(f": {t}" for t in tail)
    return {"version": version, "error": failed if done.returncode else None}


def compiler_facts(name: str) -> dict[str, Any]:
    """Path and version of a tool, or why it is missing. ``g++`` means ``$CXX`` if that is set."""
    wanted = os.environ.get("CXX", name).split(" ")[0] if name == "g++" else name
    path = shutil.which(wanted or name) or _beside(name)
    if path is None and name == "g++":
        path = shutil.which("c++") or shutil.which("clang++")
    if path is None:
        return {"path": None, "version": None}
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            timeout=COMPILER_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"path": path, "version": None, "error": error_line(error)}
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        return {"path": path, "version": None, "error": f"exits with status {done.returncode}"}
    # Debian writes "g++ (Debian 12.2.0-14) 12.2.0", nvcc "release 12.4, V12.4.131".
    first = text.strip().splitlines()[0] if text.strip() else ""
    found = re.search(r"V(\d+(?:\.\d+)+)", text) if name == "nvcc" else None
    found = found or re.search(r"(\d+(?:\.\d+)+)\s*(?:\(.*\))?\s*$", first)
    found = found or re.search(r"(\d+(?:\.\d+)+)", text)
    return {"path": path, "version": found[1] if found else first or None}


def _beside(name: str) -> str | None:
    """A tool that is not on the path: next to this Python, or in CUDA_HOME."""
    folders = [os.path.dirname(sys.executable or "")]
    if name == "nvcc":
        homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
        folders += [os.path.join(home, "bin") for home in homes if home]
    return shutil.which(name, path=os.pathsep.join(folders))


def extras() -> dict[str, Any]:
    """Optional features by extra: versions, what is missing, and how to install it."""
    needed: dict[str, list[str]] = {}
    try:
        declared = metadata.requires("gradlint") or []
    except metadata.PackageNotFoundError:
        declared = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        found = re.search(r"extra\s*==\s*[\"']([^\"']+)", marker)
        if found and found[1] not in _NOT_FEATURES:
            needed.setdefault(found[1], []).append(requirement.strip())
    result: dict[str, Any] = {}
    for extra, requirements in needed.items():
        names = {re.split(r"[\s<>=!~;\[(]", text)[0]: text for text in requirements}
        versions = {name: _version(name) for name in names}
        missing = [names[name] for name, version in versions.items() if version is None]
        install = [
            shlex.quote(sys.executable or "python"),
            "-m pip install",
            *map(shlex.quote, missing),
        ]
        result[extra] = {
            "versions": {name: version for name, version in versions.items() if version},
            "missing": missing,
            "install": " ".join(install) if missing else "",
        }
    return result


def can_run(facts: dict[str, Any]) -> dict[str, str]:
    """What can run, given ``facts``: purpose → "yes", or "no: …" with the reason."""
    torch, tools = facts["torch"], facts["compilers"]
    broken = "no: torch can't be imported" if torch.get("error") else ""
    cuda = broken or _cuda(torch)
    return {
        "checks on cpu": broken or "yes",
        "checks on cuda": cuda,
        "Triton on cpu": broken or _triton(facts.get("triton")),
        "C++ extensions": broken or _missing(tools, "g++", "ninja") or "yes",
        "CUDA extensions": broken
        or _missing(tools, "nvcc", "g++", "ninja")
        or ("yes" if cuda == "yes" else "compile only: " + cuda.removeprefix("no: ")),
    }


def _cuda(torch: dict[str, Any]) -> str:
    if not torch.get("cuda_build"):
        return "no: this torch is built without CUDA"
    if not torch.get("cuda_available"):
        return "no: " + "; ".join(torch.get("warnings") or ["no GPU that torch can use"])
    errors = [gpu["error"] for gpu in torch["gpus"] if gpu["error"]]
    return f"no: {errors[0]}" if len(errors) == len(torch["gpus"]) and errors else "yes"


def _triton(triton: dict[str, Any] | None) -> str:
    if triton is None or triton["error"]:
        return f"no: {triton['error'] if triton else 'not looked for'}"
    return "yes: gradlint check --triton-interpret"


def _missing(tools: dict[str, Any], *names: str) -> str:
    absent = [name for name in names if not tools[name]["version"]]
    return f"no: {' and '.join(absent)} not found" if absent else ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
