"""What is to be built, and its folder in the cache."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gradlint.native import _tools
from gradlint.native._files import digest_of
from gradlint.native.roots import tree_files

#: The variable that names the architectures torch's extension builder compiles CUDA for; by default
#: those of this machine's GPUs.
ARCHITECTURES = "TORCH_CUDA_ARCH_LIST"


@dataclass(frozen=True)
class Recipe:
    """A shared library and what it is made of.

    Args:
        name: of the library, a Python identifier; pybind11 modules are initialised by it.
        sources: files for the C++ compiler, and for nvcc where ``with_cuda``.
        host_sources: .cu files that the C++ compiler compiles too, as C++.
        tree: the folder that ``sources`` and ``host_sources`` are relative to, from which nothing
            but itself is included. It is copied before building, so that copies of it elsewhere
            with the same text share one build. None where the sources are compiled in place.
        cflags, cuda_cflags, ldflags: further flags of the C++ compiler, nvcc and the linker.
        include_dirs: folders for ``#include``.
        with_cuda: whether CUDA's headers and libraries take part.
    """

    name: str
    sources: tuple[str, ...]
    host_sources: tuple[str, ...] = ()
    tree: Path | None = None
    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    with_cuda: bool = False

    def files(self) -> list[Path]:
        """The known files that it is made of, without headers outside of ``tree``."""
        if self.tree is not None:
            return tree_files(self.tree)
        return [Path(path) for path in (*self.sources, *self.host_sources)]

    def folder(self) -> Path:
        """The folder of the cache for this recipe with these compilers and this torch."""
        return cache_root() / f"{self.name}-{digest_of(self._key())}"

    def _key(self) -> dict[str, Any]:
        key = {
            "sources": (self.sources, self.host_sources),
            "tree": self.tree is not None,
            "flags": (self.cflags, self.cuda_cflags, self.ldflags, self.include_dirs),
            "compiler": _tools.compiler(),
            "torch": (torch.__version__, torch.version.cuda, torch.version.hip),
            "abi": torch.compiled_with_cxx11_abi(),
            "python": (sysconfig.get_config_var("SOABI"), sys.version_info[:2]),
            "machine": (sys.platform, platform.machine()),
        }
        if self.with_cuda:
            key["cuda"] = (_tools.need_nvcc(), _architectures(), os.environ.get("CC"))
        return key


def cache_root() -> Path:
    """The folder for all builds: ``$TORCH_EXTENSIONS_DIR``, else in the user's cache folder."""
    chosen = os.environ.get("TORCH_EXTENSIONS_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute() / "gradlint"
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base.absolute() / "gradlint" / "native"


def _architectures() -> Any:
    """What torch's extension builder compiles CUDA for."""
    chosen = os.environ.get(ARCHITECTURES)
    if chosen or not torch.cuda.is_available():
        return chosen
    count = torch.cuda.device_count()
    return sorted({torch.cuda.get_device_capability(index) for index in range(count)})
