"""The entry points of the kernels can be read where they are: no macro makes them."""

from __future__ import annotations

import re

from gradlint.native.roots import kernels_root

_FUNCTION = re.compile(r"^void (\w+)\(", re.MULTILINE)


def test_every_entry_point_is_written_out_in_one_file() -> None:
    declared = _FUNCTION.findall((kernels_root() / "entries.h").read_text(encoding="utf-8"))
    defined = [
        name
        for path in sorted(kernels_root().glob("*.cu"))
        for name in _FUNCTION.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(declared) == len(set(declared)) > 40
    assert {name: defined.count(name) for name in declared} == dict.fromkeys(declared, 1)


def test_no_macro_defines_functions_of_kernels() -> None:
    for path in sorted(kernels_root().glob("*.cu")):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"^\s*#\s*define\b|^GRADLINT_\w+\(", text, re.MULTILINE) == [], path
