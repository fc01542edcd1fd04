"""The JSON Schema (draft 2020-12) by which editors complete and check specs."""

from __future__ import annotations

from typing import Any


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a spec, made from the model."""
    from gradlint.spec._model import OpSpec

    made = OpSpec.model_json_schema(by_alias=True)
    made["anyOf"] = [{"required": ["op"]}, {"required": ["forward", "inputs"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
