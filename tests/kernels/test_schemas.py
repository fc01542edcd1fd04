"""What ``gradlint kernels list`` reads in the sources is what the library registers."""

from __future__ import annotations

import torch

from gradlint.cli.reference_operators import catalogue, schemas_in
from gradlint.native.roots import kernels_root


def test_schemas_of_the_catalogue_are_those_registered() -> None:
    registered = {
        str(schema).removeprefix("gradlint::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("gradlint::")
    }
    parsed = {
        str(torch._C.parse_schema(f"gradlint::{schema}")).removeprefix("gradlint::")
        for schema in schemas_in(kernels_root()).values()
    }
    assert {reference.schema for reference in catalogue()} <= set(
        schemas_in(kernels_root()).values()
    )
    missing = {f"{reference.name}" for reference in catalogue() if not reference.schema}
    assert not missing
    assert parsed <= registered
    # Operators made by macros for each function have backwards of their own.
    assert all("backward" in schema.partition("(")[0] for schema in registered - parsed)
