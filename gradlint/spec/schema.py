"""The JSON Schema (draft 2020-12) by which editors complete and check specs."""

from __future__ import annotations

from typing import Any

from gradlint.spec._model import OpSpec


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a spec, made from the model."""
    made = _cleaned(OpSpec.model_json_schema(by_alias=True))
    # A plain value means `{value: …}`: the model's validator does that, so pydantic can't know.
    argument = {
        "anyOf": [{"$ref": "#/$defs/Input"}, {"type": ["number", "string", "boolean", "null"]}]
    }
    for model in (made, made["$defs"]["Case"]):
        model["properties"]["inputs"]["additionalProperties"] = argument
    for key in ("list", "tuple"):
        made["$defs"]["Input"]["properties"][key]["items"] = argument
    made["$defs"]["Input"]["properties"]["dict"]["additionalProperties"] = argument
    made["anyOf"] = [{"required": ["op"]}, {"required": ["forward", "inputs"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradlint op spec",
        **made,
    }


def _cleaned(schema: Any) -> Any:
    """Without what pydantic adds for itself: titles, and null for keys that may be left out.

    Editors show the rest better, and it varies less between versions of pydantic.
    """
    if isinstance(schema, list):
        return [_cleaned(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: _cleaned(part)
        for key, part in schema.items()
        if not (key == "title" and isinstance(part, str)) and not (key == "default" and not part)
    }
    options = made.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in options if option != {"type": "null"}]
        if len(rest) == 1:
            del made["anyOf"]
            return {**rest[0], **made}
        made["anyOf"] = rest
    return made
