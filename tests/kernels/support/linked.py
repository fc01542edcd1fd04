"""Libraries of reference operators whose kernels are compiled in another way than gradlint's.

Only the kernels are compiled again; they are linked with the bindings of the right library, so the
operators have the same names.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from gradlint.native import _tools
from gradlint.native._build import build
from gradlint.native._files import digest_of_file, read_json
from gradlint.native.recipe import Recipe
from gradlint.native.roots import tree_files


def compiled(sources: Sequence[Path], flags: Sequence[str], folder: Path) -> list[Path]:
    """An object in ``folder`` for each source, .cu files as C++; two sources share no name."""
    command = [_tools.compiler().path, "-std=c++17", "-fPIC", *flags, "-x", "c++", "-c"]
    objects = [folder / f"{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(_tools.cores()) as pool:
        list(
            pool.map(
                lambda pair: subprocess.run([*command, pair[0], "-o", pair[1]], check=True),
                zip(sources, objects, strict=True),
            )
        )
    return objects


def linked(kernels: Sequence[Path], right: Recipe, library: Path) -> Path:
    """The library of the objects ``kernels`` and of the bindings of ``right``."""
    folder = Path(torch.__file__).parent / "lib"
    subprocess.run(
        [
            *(_tools.compiler().path, "-shared", "-fopenmp", "-o", library),
            *(*kernels, *_bindings(right)),
            *(f"-L{folder}", "-ltorch", "-ltorch_cpu", "-lc10"),
        ],
        check=True,
    )
    return library


def _bindings(right: Recipe) -> list[Path]:
    """The objects of the bindings, as they were compiled for the right library."""
    build(right)
    workplace = right.folder() / "build"
    known = read_json(workplace / "inputs.json")
    assert right.tree is not None
    # By name: an equal tree elsewhere, another checkout's, may have been compiled.
    compiled_from = {(Path(path).name, digest) for path, digest in known.items()}
    if any(
        (path.name, digest_of_file(path)) not in compiled_from for path in tree_files(right.tree)
    ):
        build(right, force=True)  # the objects are those of another state of the sources
    objects = [workplace / f"{Path(source).stem}.o" for source in right.sources]
    assert all(path.is_file() for path in objects)
    return objects
