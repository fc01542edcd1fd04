"""Reads a spec file and reports every mistake in it at once."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from gradlint.base.errors import SpecError
from gradlint.base.text import did_you_mean
from gradlint.spec._check import Checker
from gradlint.spec._model import Case, Extension, Ignore, Input, OpSpec
from gradlint.spec._yaml import Document, Path, ordered, parse_document, read_document
from gradlint.spec.plan import check_samples

#: pydantic's names of types → words.
_KINDS = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "a mapping (`key: value`)",
    "model_type": "a mapping (`key: value`)",
    "model_attributes_type": "a mapping (`key: value`)",
    "size": "a whole number or an expression of dims",
}


def load(path: str) -> OpSpec:
    """The spec in the file ``path``.

    Raises:
        SpecError: with all mistakes in it, in the order of their lines.
    """
    return _checked(read_document(path))


def loads(text: str, path: str = "<text>") -> OpSpec:
    """The spec in ``text``; ``path`` stands in messages."""
    return _checked(parse_document(path, text))


def _checked(document: Document) -> OpSpec:
    spec = None
    if not isinstance(document.data, dict):
        document.problem(
            document.value(()), f"a spec is a mapping (`key: value`), not {_shown(document.data)}"
        )
    else:
        _check_counts(document)
        try:
            spec = OpSpec.model_validate(document.data)
        except ValidationError as error:
            for item in error.errors(include_url=False):
                _note(document, item)
        Checker(document).check()
        if spec is not None and not document.problems:
            check_samples(spec, document)
    if document.problems or spec is None:
        raise SpecError(document.path, ordered(document.problems))
    return spec.read_from(document)


#: Key → how many entries it may have (heuristic: the time to check a spec grows with some of the
#: products of these numbers).
_MOST = {"dims": 100, "inputs": 256, "let": 256, "cases": 500}


def _check_counts(document: Document) -> None:
    """Refuse a document with so many entries that the rest is not worth looking at."""
    for key, most in _MOST.items():
        entries = document.data.get(key)
        if isinstance(entries, (dict, list)) and len(entries) > most:
            document.problem(
                document.key((key,)), f"`{key}` has {len(entries):,} entries; at most {most:,}"
            )
            raise SpecError(document.path, ordered(document.problems))


def _note(document: Document, item: Any) -> None:
    """One mistake that pydantic found, in words, at its place."""
    path: Path = tuple(item["loc"])
    kind = item["type"]
    key = path[-1] if path else ""
    if kind == "extra_forbidden":
        known = _keys(path[:-1])
        hint = did_you_mean(str(key), known, "keys are " + ", ".join(sorted(known)))
        document.problem(document.key(path), f"unknown key `{key}`", hint)
    elif kind == "missing":
        document.problem(document.value(path[:-1]), f"`{key}` is missing")
    elif kind == "literal_error":
        wanted = str(item["ctx"]["expected"]).replace(" or ", ", ")
        values = [word.strip("'") for word in wanted.split(", ")]
        got = item["input"]
        hint = did_you_mean(
            got if isinstance(got, str) else "", values, "one of " + ", ".join(values)
        )
        if got in values:
            hint = f"write {got} without quotes"
        document.problem(document.value(path), f"`{_name(path)}` can't be {_shown(got)}", hint)
    elif kind in _KINDS:
        message = f"`{_name(path)}` must be {_KINDS[kind]}, not {_shown(item['input'])}"
        plain = kind == "list_type" and isinstance(item["input"], (str, int, float))
        hint = f"write [{item['input']}]" if plain else ""
        document.problem(document.value(path), message, hint)
    elif kind == "too_long":
        most = item["ctx"]["max_length"]
        document.problem(document.value(path), f"`{_name(path)}` has more than {most} items")
    elif kind == "greater_than_equal":
        message = f"`{_name(path)}` must be at least {item['ctx']['ge']}, not {item['input']}"
        document.problem(document.value(path), message)
    elif kind in ("too_short", "string_too_short"):
        document.problem(document.value(path), f"`{_name(path)}` is too short or empty")
    else:
        document.problem(document.value(path), f"`{_name(path)}`: {item['msg']}")


def _name(path: Path) -> str:
    """``inputs.x.shape[1]`` for a path."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _keys(path: Path) -> list[str]:
    """Keys that a mapping at ``path`` may have."""
    model: Any = OpSpec
    if "inputs" in path:
        model = Input
    elif path[:1] == ("ignore",):
        model = Ignore
    elif path[:1] == ("cases",):
        model = Case
    elif path[:1] == ("extension",):
        model = Extension
    return [field.alias or name for name, field in model.model_fields.items()]


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    text = str(value)
    text = text if len(text) <= 40 else text[:39] + "…"
    return f"the text `{text}`" if isinstance(value, str) else text
