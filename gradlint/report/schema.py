"""The JSON Schema of the JSON report, written by pydantic from the data model."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from gradlint.model.report import SCHEMA_VERSION, FailOn, TargetReport

_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
_COUNT = {"type": "integer", "minimum": 0}

_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}


class _Contract(GenerateJsonSchema):
    """What :func:`gradlint.model.report.jsonable` makes of the model.

    Every key is there, and numbers that JSON can't hold are texts.
    """

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return dict(_NUMBER)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_is_required(self, field: Any, total: bool) -> bool:
        return True

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of what ``--output-format json`` prints.

    Objects may have further keys: fields are added within one schema version.
    """
    targets = TypeAdapter(list[TargetReport]).json_schema(schema_generator=_Contract)
    definitions = targets.pop("$defs")
    definitions["Finding"]["properties"]["code"]["pattern"] = "^GL[0-9]{3}$"
    # Report.to_dict writes torch's verdict under the name of its mode.
    torch = definitions["TorchVerdict"]["properties"]
    words = {key: torch[key] for key in ("message", "agreement", "sample")}
    modes = {"slow": torch["verdict"], "fast": torch["verdict"]}
    definitions["TorchVerdict"] = {"type": "object", "properties": {**modes, **words}}
    for key in ("gradcheck", "gradgradcheck"):
        definitions["TargetReport"]["properties"][key] = {"$ref": "#/$defs/TorchVerdict"}
    counts = (
        *("targets", "pass", "fail", "inconclusive", "error", "skipped"),
        *("uncovered", "findings"),
    )
    summary = {**dict.fromkeys(counts, _COUNT), "duration_s": _NUMBER}
    error = {
        "type": "object",
        "properties": {"kind": {"enum": ["usage", "internal"]}, "text": {"type": "string"}},
        "required": ["kind", "text"],
    }
    properties: dict[str, Any] = {
        "schema_version": {"const": SCHEMA_VERSION},
        "gradlint": {"type": "string"},
        "seed": {"type": "integer"},
        "environment": {"type": "object"},
        "summary": {"type": "object", "properties": summary, "required": list(summary)},
        "settings": {"type": "object"},
        "fail_on": {"enum": list(get_args(FailOn))},
        "errors": {"type": "array", "items": error},
        "skipped": _TEXTS,
        "interrupted": {"type": "boolean"},
        "stopped": {"type": "boolean"},
        "left_out": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
        "shard": {"type": "string", "pattern": "^([1-9][0-9]*/[1-9][0-9]*)?$"},
        "baseline": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "accepted": _COUNT,
                        "gone": {"type": "array", "items": {"type": "object"}},
                    },
                    "required": ["path", "accepted", "gone"],
                },
            ]
        },
        "unchecked": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"type": "string"},
                    "location": {"$ref": "#/$defs/Location"},
                },
                "required": ["name", "kind", "location"],
            },
        },
        "cache": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "read": _COUNT,
                        "kept": _COUNT,
                        "not_kept": _TEXTS,
                        "notes": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["path", "read", "kept", "not_kept", "notes"],
                },
            ]
        },
        "targets": targets,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradlint report",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": definitions,
    }
