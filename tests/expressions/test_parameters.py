"""What an expression may pass agrees with torch's own signatures, and none of it is written to."""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch

from gradlint.expressions import vocabulary as words

FOUND = {
    name: getattr(importlib.import_module(home), name)
    for name, home in sorted({**words.SAME, **words.GROWING}.items())
}
#: Arguments by which a function writes to what it is given, or that are no business of a formula.
FORBIDDEN = {"inplace", "out", "max_norm", "norm_type", "sparse", "device", "generator"}


def names(name: str) -> list[str] | None:
    """Parameters of a function that is written in Python, as far as they have names."""
    try:
        parameters = inspect.signature(FOUND[name]).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters]


@pytest.mark.parametrize("name", [name for name in FOUND if names(name)])
def test_python_functions_are_listed_with_their_arguments(name: str) -> None:
    signature = names(name) or []
    allowed = words.PARAMETERS[name]
    assert len(allowed) <= len(signature)
    for given, real in zip(allowed, signature, strict=False):
        assert given in ("-", real)
    assert not FORBIDDEN & set(allowed)


def test_functions_in_cpp_write_to_nothing_that_has_a_position() -> None:
    for name in sorted({*FOUND, *words.METHODS} - set(words.PARAMETERS)):
        for home in ("aten::", "aten::linalg_", "aten::special_"):
            for schema in torch._C._jit_get_schemas_for_operator(home + name):
                if not schema.arguments or "Tensor" not in str(schema.arguments[0].type):
                    continue
                if str(schema.arguments[0].type).startswith("List"):
                    continue
                for argument in schema.arguments:
                    writes = argument.alias_info is not None and argument.alias_info.is_write
                    assert not writes or argument.kwarg_only, f"{schema}"


def test_forbidden_arguments_have_no_name() -> None:
    assert not FORBIDDEN & words.KEYWORDS
