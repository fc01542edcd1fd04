"""The reference operators as their sources and specs describe them; nothing is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gradlint.native.roots import kernels_root, specs_root, tree_files

#: How an operator is named in specs and in Python.
_PREFIX = "torch.ops.gradlint."

#: ``m.def("name(…) -> …")``, the text in one piece or several.
_DEFINED = re.compile(r"""\bdef\(\s*((?:"[^"]*"\s*)+)[,)]""")

#: An operator of one tensor, as kernels/bind/pointwise.h has it described: its name, and the
#: parameters behind the tensor.
_POINTWISE = re.compile(
    r"""\bname = "(\w+)";\s+static constexpr const char\* parameters = "([^"]*)";"""
)


@dataclass(frozen=True)
class Reference:
    """One reference operator.

    Args:
        name: as in ``torch.ops.gradlint.name``.
        schema: what it takes and returns; "" if no binding says so.
        kernel: file of its arithmetic, relative to ``kernels/``.
        specs: files of its specs, relative to ``specs/``.
        orders: orders of derivatives that it has.
        dtypes: by name.
        devices: by name.
    """

    name: str
    schema: str
    kernel: str
    specs: tuple[str, ...]
    orders: tuple[int, ...]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]


def catalogue() -> list[Reference]:
    """Every reference operator, sorted by name.

    Raises:
        BuildError: the sources are missing.
        SpecError: a spec can't be read.
    """
    from gradlint.spec.load import load

    root, schemas = kernels_root(), schemas_in(kernels_root())
    found: dict[str, Reference] = {}
    for path in reference_specs():
        spec = load(str(path))
        if spec.op is None or not spec.op.startswith(_PREFIX):
            continue
        name = spec.op.removeprefix(_PREFIX)
        kernel = f"{name.rstrip('_')}.cu"
        if name in found:
            also = found[name]
            found[name] = replace(also, specs=(*also.specs, path.name))
            continue
        once = spec.once_differentiable or spec.order == 1
        found[name] = Reference(
            name,
            schemas.get(name, ""),
            kernel if (root / kernel).is_file() else "",
            (path.name,),
            (1,) if once else (1, 2),
            tuple(spec.dtypes or ()),
            tuple(spec.devices or ()),
        )
    return [found[name] for name in sorted(found)]


def reference_specs() -> list[Path]:
    """The specs of the reference operators, sorted by name."""
    return sorted(specs_root().glob("*.yaml"))


def schemas_in(root: Path) -> dict[str, str]:
    """Name → schema of every operator that the bindings below ``root`` define."""
    made = {}
    for path in tree_files(root / "bind"):
        for schema in _schemas(path.read_text(encoding="utf-8")):
            made[schema.partition("(")[0]] = schema
    return made


def _schemas(text: str) -> Iterator[str]:
    for found in _DEFINED.finditer(text):
        yield "".join(re.findall(r'"([^"]*)"', found[1]))
    for found in _POINTWISE.finditer(text):
        yield f"{found[1]}(Tensor x{found[2]}) -> Tensor"
