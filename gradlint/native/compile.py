"""The compile-only check: every kernel through nvcc, without torch and without a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from gradlint.base.errors import GradlintError
from gradlint.base.scratch import scratch_folder
from gradlint.native import _tools
from gradlint.native.roots import CUDA_CFLAGS, kernels_root

#: Architectures that are compiled for where none are named: A100 and H100/H200.
DEFAULT_ARCHITECTURES = ("sm_80", "sm_90")

#: What torch's extension builder gives to nvcc for every extension (COMMON_NVCC_FLAGS of
#: torch/utils/cpp_extension.py), so that what passes here passes there.
_BUILDER_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)

#: Seconds that one file may take for one architecture.
_PATIENCE = 600.0

#: Skips most optimisations of device code, which halves the time for the reference kernels. Whether
#: a kernel compiles does not depend on them. Older versions of nvcc lack this option.
_QUICK = "--Ofast-compile"

_ARCHITECTURE = re.compile(r"sm_\d+[af]?")


@dataclass(frozen=True)
class Compiled:
    """One kernel compiled for one architecture.

    Args:
        file: name of the source.
        architecture: such as sm_90.
        seconds: that it took.
        ok: whether it compiled.
        output: what the compiler wrote, warnings too.
    """

    file: str
    architecture: str
    seconds: float
    ok: bool
    output: str


def compile_kernels(
    architectures: Sequence[str] = DEFAULT_ARCHITECTURES,
    *,
    sources: Sequence[Path] | None = None,
    on_result: Callable[[Compiled, int, int], None] | None = None,
) -> list[Compiled]:
    """Compile ``sources`` for each of ``architectures``, as many at once as there are cores.

    Device code is compiled for each, with as few optimisations as nvcc allows. Host code, which is
    the same for all, is checked with the first only, without generating code.

    Args:
        architectures: such as "sm_80".
        sources: default every ``.cu`` of ``kernels/``.
        on_result: called with each result, how many there are so far, and how many there will be.

    Returns:
        One result for each file and architecture, in that order.

    Raises:
        BuildError: nvcc is missing.
        GradlintError: this nvcc does not know one of the architectures.
    """
    tool = checked_nvcc(architectures)
    files = list(sources) if sources is not None else sorted(kernels_root().glob("*.cu"))
    work = [(file, name) for file in files for name in architectures]
    results: dict[tuple[Path, str], Compiled] = {}
    with (
        tempfile.TemporaryDirectory(dir=scratch_folder()) as folder,
        ThreadPoolExecutor(_tools.cores()) as pool,
    ):
        futures = {}
        for number, (file, name) in enumerate(work):
            command = _command(tool, file, name, whole=name == architectures[0])
            made = os.path.join(folder, f"{number}.o")
            futures[pool.submit(_run, [*command, "-o", made], file, name)] = (file, name)
        try:
            for done, future in enumerate(as_completed(futures), 1):
                results[futures[future]] = future.result()
                if on_result is not None:
                    on_result(future.result(), done, len(work))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [results[item] for item in work]


def parse_architectures(texts: Sequence[str]) -> tuple[str, ...]:
    """The architectures in comma-separated ``texts``, each once.

    Raises:
        GradlintError: one is not written like sm_90.
    """
    found = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    for name in found:
        if not _ARCHITECTURE.fullmatch(name):
            digits = re.sub(r"\D", "", name)
            raise GradlintError(
                f"{name!r} is not an architecture",
                place="--arch",
                hint=f"did you mean sm_{digits}?" if digits else "write sm_80,sm_90",
            )
    return tuple(dict.fromkeys(found)) or DEFAULT_ARCHITECTURES


def checked_nvcc(architectures: Sequence[str]) -> _tools.Tool:
    """nvcc, if it compiles for ``architectures``.

    Raises:
        BuildError: nvcc is missing.
        GradlintError: it does not know one of them.
    """
    tool = _tools.need_nvcc()
    known = list(_known(tool))
    for name in architectures:
        if known and name.rstrip("af") not in known:
            raise GradlintError(
                f"nvcc {tool.version} does not compile for {name}",
                place="--arch",
                hint=f"it knows {', '.join(known)}",
            )
    return tool


def compiled_for_report(
    tool: _tools.Tool, file: Path, architecture: str, folder: Path
) -> tuple[Compiled, Path, Path]:
    """``file`` compiled with all optimisations in ``folder``: what nvcc said, PTX and machine
    code."""
    cubin = folder / f"{file.stem}.cubin"
    command = [
        tool.path,
        "-std=c++17",
        *_BUILDER_FLAGS,
        *(flag for flag in CUDA_CFLAGS if flag not in _BUILDER_FLAGS),
        f"-gencode=arch={architecture.replace('sm_', 'compute_')},code={architecture}",
        *("-Xptxas", "-v", "--keep", "--keep-dir", str(folder)),
        *("-cubin", str(file), "-o", str(cubin)),
    ]
    return _run(command, file, architecture), folder / f"{file.stem}.ptx", cubin


def _known(tool: _tools.Tool) -> Iterator[str]:
    done = subprocess.run(
        [tool.path, "--list-gpu-code"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    for word in done.stdout.split():
        if _ARCHITECTURE.fullmatch(word):
            yield word


def _command(tool: _tools.Tool, file: Path, architecture: str, *, whole: bool) -> list[str]:
    virtual = architecture.replace("sm_", "compute_")
    return [
        tool.path,
        "-std=c++17",
        *_BUILDER_FLAGS,
        *(flag for flag in CUDA_CFLAGS if flag not in _BUILDER_FLAGS),
        *([f"{_QUICK}=max"] if _tools.has_option(tool, _QUICK) else []),
        f"-gencode=arch={virtual},code={architecture}",
        "--compiler-options=-fPIC,-fsyntax-only",
        "-c" if whole else "-cubin",
        str(file),
    ]


def _run(command: list[str], file: Path, architecture: str) -> Compiled:
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
        ok, output = done.returncode == 0, done.stdout.strip()
    except subprocess.TimeoutExpired:
        ok, output = False, f"nvcc did not finish within {_PATIENCE:.0f} s"
    return Compiled(file.name, architecture, time.monotonic() - started, ok, output)
