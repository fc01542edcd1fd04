"""JSON Schema of the JSON report, read off the data model so that the two can't part."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from gradlint.model.report import (
    SCHEMA_VERSION,
    SEVERITIES,
    VERDICTS,
    Check,
    Finding,
    Report,
    TargetReport,
)

_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}

_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: _NUMBER,
    type(None): {"type": "null"},
    Any: {},
}

# What the annotations of the model do not say.
_NARROWER: dict[tuple[type, str], dict[str, Any]] = {
    (Finding, "severity"): {"enum": list(SEVERITIES)},
    (Finding, "code"): {"type": "string", "pattern": "^GL[0-9]{3}$"},
    (Check, "verdict"): {"enum": list(VERDICTS)},
    (TargetReport, "verdict"): {"enum": list(VERDICTS)},
}

_TORCH_VERDICT = {
    "type": "object",
    "properties": {
        "slow": {"enum": ["pass", "fail", "skipped"]},
        "fast": {"enum": ["pass", "fail", "skipped"]},
        "message": {"type": "string"},
        "agreement": {"type": "string"},
    },
}


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of what ``--output-format json`` prints.

    Objects may have further keys: fields are added within one schema version.
    """
    definitions: dict[str, Any] = {}
    counts = ("targets", "pass", "fail", "inconclusive", "error", "skipped", "findings")
    properties: dict[str, Any] = {
        "schema_version": {"const": SCHEMA_VERSION},
        "gradlint": {"type": "string"},
        "seed": {"type": "integer"},
        "environment": {"type": "object"},
        "summary": {
            "type": "object",
            "properties": {
                **{name: {"type": "integer", "minimum": 0} for name in counts},
                "duration_s": _NUMBER,
            },
            "required": [*counts, "duration_s"],
        },
        "skipped": {"type": "object", "additionalProperties": {"type": "string"}},
        "interrupted": {"type": "boolean"},
        "targets": _schema(typing.get_type_hints(Report)["targets"], definitions),
    }
    target = definitions["TargetReport"]["properties"]
    target["gradcheck"] = target["gradgradcheck"] = {"$ref": "#/$defs/TorchVerdict"}
    definitions["TorchVerdict"] = _TORCH_VERDICT
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradlint report",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema(arg, definitions) for arg in args]}
    if origin is list or (origin is tuple and args[-1] is Ellipsis):
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [_schema(arg, definitions) for arg in args],
            "minItems": len(args),
            "maxItems": len(args),
        }
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1], definitions)}
    raise TypeError(f"no schema for {kind}")


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    names = [item.name for item in dataclasses.fields(kind)]
    return {
        "type": "object",
        "properties": {
            name: _NARROWER.get((kind, name)) or _schema(hints[name], definitions) for name in names
        },
        "required": names,
    }
