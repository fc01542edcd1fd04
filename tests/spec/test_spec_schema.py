"""The JSON Schema: valid, current in the repository, and of one mind with the loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import SpecError
from gradlint.spec._yaml import parse_document
from gradlint.spec.load import loads
from gradlint.spec.schema import json_schema

SPECS = Path(__file__).parents[2] / "specs"

jsonschema = pytest.importorskip("jsonschema")


def errors(text: str) -> list[Any]:
    data = parse_document("f", text).data
    return list(jsonschema.Draft202012Validator(json_schema()).iter_errors(data))


def test_it_is_a_schema() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_key_has_a_description() -> None:
    schema = json_schema()
    for model in (schema, *schema["$defs"].values()):
        for key, part in model["properties"].items():
            assert part.get("description") or "$ref" in part, key


def test_the_schema_in_the_repository_is_current() -> None:
    """Made by `gradlint schema spec -o specs/gradlint.schema.json`."""
    assert json.loads((SPECS / "gradlint.schema.json").read_text()) == json_schema()


@pytest.mark.parametrize(
    "path",
    [*sorted(SPECS.glob("*.yaml")), *sorted((SPECS.parent / "examples/formulas").glob("*.yaml"))],
    ids=lambda path: path.stem,
)
def test_the_specs_in_the_repository_satisfy_it(path: Path) -> None:
    assert errors(path.read_text()) == []


#: Texts on which schema and loader agree: right, then wrong.
RIGHT = [
    "op: a:b",
    "op: a:b\ninputs: {x: {shape: [3]}, dim: -1, mode: mean, flag: true, none: null}",
    "op: a:b\ndims: {N: [1, 2], C: 3}\ninputs: {x: {shape: [N, 2*C + 1], domain: '[0, 2]'}}",
    "op: a:b\ninputs: {x: {shape: [2], range: [0, 3]}, y: {list: [{shape: [2]}, 1]}}",
    "op: a:b\ninputs: {x: {shape: [2], domain: [0, 3]}, z: {dict: {a: 1}}}",
    "forward: x\ninputs: {x: {shape: [2]}}\nbackward: {x: grad_output}",
    "op: a:b\nignore: [{code: GL503, reason: x}]\norder: 1\ndtypes: [float32]\ndevices: [cpu]",
    "op: a:b\nimport: mod\ncases: [{label: a, dims: {}, inputs: {x: null}, omit: y}]",
]
WRONG = [
    "name: x",
    "op: 3",
    "opp: a:b\nop: a:b",
    "forward: x",
    "op: a:b\ninputs: {x: [1, 2]}",
    "op: a:b\ninputs: {x: {shape: 3}}",
    "op: a:b\ninputs: {x: {shap: [3]}}",
    "op: a:b\ninputs: {x: {shape: [2], optional: yes}}",
    "op: a:b\ndims: {N: -1}",
    "op: a:b\ndims: {N: []}",
    "op: a:b\nignore: [{code: GL503}]",
    "op: a:b\nignore: [{code: XX, reason: a}]",
    "op: a:b\norder: 3",
    "op: a:b\ndtypes: float64",
    "op: a:b\ndevices: [gpu]",
    "op: a:b\nseed: -1",
]


@pytest.mark.parametrize("text", RIGHT)
def test_right(text: str) -> None:
    assert errors(text) == []
    loads(text)


@pytest.mark.parametrize("text", WRONG)
def test_wrong(text: str) -> None:
    assert errors(text) != []
    with pytest.raises(SpecError):
        loads(text)
