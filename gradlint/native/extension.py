"""A user's extension: sources that are compiled in place, with the headers that they include."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from gradlint.native._build import build
from gradlint.native.errors import BuildError, loader_text
from gradlint.native.failures import advice
from gradlint.native.progress import Sink
from gradlint.native.recipe import Recipe

#: Endings of files for the C++ compiler and for nvcc.
CPP_ENDINGS = (".cpp", ".cc", ".cxx", ".c")
CUDA_ENDINGS = (".cu",)

#: Defined for every source where CUDA takes part, as in torch's own examples of extensions.
CUDA_MACRO = "-DWITH_CUDA"


@dataclass(frozen=True)
class Loaded:
    """An extension in this process.

    Args:
        library: the shared library.
        module: its Python module, None where it only registers operators.
    """

    library: Path
    module: ModuleType | None


def load_extension(
    name: str,
    sources: Sequence[str],
    *,
    cflags: Sequence[str] = (),
    cuda_cflags: Sequence[str] = (),
    ldflags: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    with_cuda: bool = False,
    progress: Sink | None = None,
) -> Loaded:
    """Build ``sources`` unless the cache holds what they give, and load it.

    Operators that they register are then in ``torch.ops``; a pybind11 module that they define can
    be imported as ``name``.

    Args:
        name: of the extension, a Python identifier.
        sources: absolute paths.
        cflags, cuda_cflags, ldflags: further flags of the C++ compiler, nvcc and the linker.
        include_dirs: further folders for ``#include``, absolute.
        with_cuda: whether CUDA's headers and libraries take part, and .cu sources with them.
        progress: see :func:`gradlint.native.reference.build_reference`.

    Raises:
        BuildError: see :func:`gradlint.native.reference.build_reference`.
    """
    extra = (CUDA_MACRO,) if with_cuda else ()
    recipe = Recipe(
        name,
        tuple(sources),
        cflags=(*cflags, *extra),
        cuda_cflags=(*cuda_cflags, *extra) if with_cuda else (),
        ldflags=tuple(ldflags),
        include_dirs=tuple(include_dirs),
        with_cuda=with_cuda,
    )
    library = build(recipe, progress=progress)
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        text = loader_text(error)
        raise BuildError(
            f"{name} was built but can't be loaded: {text}", hint=advice(text)
        ) from None
    return Loaded(library, _module(name, library))


def _module(name: str, library: Path) -> ModuleType | None:
    """The Python module in ``library``, importable as ``name`` unless another is."""
    if not hasattr(ctypes.CDLL(str(library)), f"PyInit_{name}"):
        return None
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, str(library), loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules.setdefault(name, module)
    return module
