"""The sources of the reference operators and their specs: where they are, how they are compiled.

Does not import torch.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gradlint.native.errors import BuildError

#: Top level of a checkout.
_CHECKOUT = Path(__file__).resolve().parents[2]

#: Names under which a wheel carries the folders of the checkout (see pyproject.toml).
_CARRIED = {"kernels": "_kernels", "specs": "_specs"}

#: Endings of the files that are compiled, and of headers.
SOURCE_ENDINGS = (".h", ".hpp", ".cuh", ".cpp", ".cc", ".cu")

#: Flags of the C++ compiler. at::parallel_for, a template, runs threads only under OpenMP.
CFLAGS = ("-O3", "-fopenmp", "-g0")

#: Flags of nvcc.
CUDA_CFLAGS = ("-O3", "--expt-relaxed-constexpr", "--expt-extended-lambda")


def kernels_root() -> Path:
    """The folder ``kernels/``: of the checkout, or as the wheel installed it.

    Raises:
        BuildError: there is neither.
    """
    return _root("kernels")


def specs_root() -> Path:
    """The folder ``specs/``: of the checkout, or as the wheel installed it.

    Raises:
        BuildError: there is neither.
    """
    return _root("specs")


def tree_files(tree: Path) -> list[Path]:
    """The sources and headers in a folder, sorted."""
    return sorted(
        path for path in tree.rglob("*") if path.suffix in SOURCE_ENDINGS and path.is_file()
    )


def _root(name: str) -> Path:
    found = _CHECKOUT / name
    if (_CHECKOUT / "pyproject.toml").is_file() and found.is_dir():
        return found
    carried = Path(str(files("gradlint.native") / _CARRIED[name]))
    if carried.is_dir():
        return carried
    raise BuildError(
        f"the folder {name}/ of gradlint is missing: looked for {found} and {carried}",
        hint="reinstall gradlint: python -m pip install --force-reinstall gradlint",
    )
