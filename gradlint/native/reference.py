"""The reference operators: ``torch.ops.gradlint.*``, built from ``kernels/``."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import torch

from gradlint.native import _tools
from gradlint.native._build import build
from gradlint.native.errors import BuildError, loader_text
from gradlint.native.failures import advice
from gradlint.native.progress import Sink
from gradlint.native.recipe import ARCHITECTURES, Recipe
from gradlint.native.roots import CFLAGS, CUDA_CFLAGS, kernels_root

#: Name of the library.
NAME = "gradlint_reference"

_lock = threading.Lock()
_loaded: dict[int, Path] = {}


def build_reference(
    devices: Sequence[str] | None = None,
    progress: Sink | None = None,
    *,
    force: bool = False,
) -> Path:
    """The shared library of the reference operators, built unless the cache holds it.

    Args:
        devices: "cpu", "cuda"; the CPU is always among them. Default: what this machine can run.
        progress: called with a :class:`Progress` at least once a second while it is built;
            default a line on stderr, where that is a terminal.
        force: build all of it again.

    Raises:
        BuildError: a compiler or ninja is missing, CUDA is asked for and can't be built for, the
            sources do not compile, or the cache can't be written. Its hint says what to do.
    """
    return build(recipe(devices), force=force, progress=progress)


def load_reference(devices: Sequence[str] | None = None, progress: Sink | None = None) -> Path:
    """Make ``torch.ops.gradlint.*`` available, building them first where the cache has none.

    A second call does nothing. Several processes may call it at once: one builds, the others wait.

    Args:
        devices, progress: see :func:`build_reference`.

    Returns:
        The library that was loaded.

    Raises:
        BuildError: see :func:`build_reference`.
    """
    with _lock:
        found = _loaded.get(0)
        if found is not None:
            return found
        library = build_reference(devices, progress)
        try:
            torch.ops.load_library(str(library))
        except OSError:
            # It is undamaged, but was built against other libraries than those installed now.
            library = build_reference(devices, progress, force=True)
            _load(library)
        _loaded[0] = library
        return library


def _load(library: Path) -> None:
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        text = loader_text(error)
        raise BuildError(
            f"{NAME} was built but can't be loaded: {text}", hint=advice(text)
        ) from None


def recipe(devices: Sequence[str] | None = None) -> Recipe:
    """What the library is made of on this machine."""
    root = kernels_root()
    kernels = [path.name for path in sorted(root.glob("*.cu"))]
    bindings = [f"bind/{path.name}" for path in sorted((root / "bind").glob("*.cpp"))]
    if not kernels or not bindings:
        raise BuildError(
            f"there are no kernels in {root}",
            hint="reinstall gradlint, or restore the folder with git",
        )
    cuda = "cuda" in usable_devices() if devices is None else "cuda" in devices
    if cuda:
        check_cuda()
    return Recipe(
        NAME,
        sources=(*bindings, *(kernels if cuda else ())),
        host_sources=tuple(kernels),
        tree=root,
        cflags=(*CFLAGS, *(("-DGRADLINT_CUDA",) if cuda else ())),
        cuda_cflags=CUDA_CFLAGS if cuda else (),
        ldflags=("-fopenmp",),
        with_cuda=cuda,
    )


def usable_devices() -> tuple[str, ...]:
    """Devices whose kernels can be built and run here."""
    if torch.version.cuda is None or not torch.cuda.is_available() or why_no_cuda():
        return ("cpu",)
    return ("cpu", "cuda")


def check_cuda() -> None:
    """Raise where kernels for CUDA can't be built here, with the fix."""
    reason = why_no_cuda()
    if reason is None and not (torch.cuda.is_available() or os.environ.get(ARCHITECTURES)):
        reason = (
            "torch finds no GPU here whose architecture kernels could be compiled for",
            f"run where there is one, or name one: {ARCHITECTURES}=9.0",
        )
    if reason:
        what, step = reason
        raise BuildError(what, hint=step)


def why_no_cuda() -> tuple[str, str] | None:
    """Why nothing for CUDA can be built here, and what to do; None where it can."""
    if torch.version.cuda is None:
        return (
            f"this torch ({torch.__version__}) is built without CUDA",
            "install a build of torch with CUDA (see https://pytorch.org/get-started/locally), or "
            "leave out the device cuda",
        )
    tool = _tools.nvcc()
    if tool is None:
        return (
            "nvcc, CUDA's compiler, is not found: neither in $CUDA_HOME/bin, nor on PATH, nor in "
            "/usr/local/cuda/bin",
            f"install the toolkit of CUDA {torch.version.cuda} and set CUDA_HOME to its folder",
        )
    # Minor versions are compatible with one another, major ones are not.
    if tool.version.split(".")[0] != torch.version.cuda.split(".")[0]:
        return (
            f"nvcc belongs to CUDA {tool.version} ({tool.path}), torch is built for CUDA "
            f"{torch.version.cuda}",
            f"install the toolkit of CUDA {torch.version.cuda} and set CUDA_HOME to its folder, or "
            f"a torch for CUDA {tool.version.split('.')[0]}",
        )
    return None
