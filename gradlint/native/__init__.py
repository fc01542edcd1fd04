"""Builds and loads C++ and CUDA: the reference operators in ``kernels/``, and users' extensions.

Everything is built on demand by torch's extension builder and ninja, in a process of its own,
and kept in a cache, from which a later process loads it in milliseconds. Importing this package
imports neither torch nor a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlint.native._failures import BuildError
    from gradlint.native._reference import build_reference, load_reference, reference_sources
    from gradlint.native._roots import kernels_root, specs_root
    from gradlint.native._runner import Progress, reporting

__all__ = [
    "BuildError",
    "Progress",
    "build_reference",
    "kernels_root",
    "load_reference",
    "reference_sources",
    "reporting",
    "specs_root",
]

_HOMES = {
    "BuildError": "_error",
    "Progress": "_progress",
    "build_reference": "_reference",
    "kernels_root": "_roots",
    "load_reference": "_reference",
    "reference_sources": "_reference",
    "reporting": "_progress",
    "specs_root": "_roots",
}


def __getattr__(name: str) -> Any:
    # `gradlint kernels list` reads sources and needs nothing that builds.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
