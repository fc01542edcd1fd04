"""Specs loaded: what is right, and every mistake with its place and the nearest valid word."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradlint.base.errors import SpecError
from gradlint.spec.load import loads
from gradlint.spec.plan import sample_labels

DESIGN = """\
# yaml-language-server: $schema=gradlint.schema.json
op: mylib.ops:LinearFunction
dims: {N: [1, 4, 33], C: 8, K: 5}
inputs:
  input:  {shape: [N, C]}
  weight: {shape: [K, C]}
  bias:   {shape: [K], optional: true}
reference: "input @ weight.mT + bias"
dtypes: [float64, float32, bfloat16]
devices: [cpu, cuda]
ignore: [{code: GL503, reason: "first order only, by contract"}]
"""


def test_the_example_of_the_design() -> None:
    spec = loads(DESIGN)
    assert spec.op == "mylib.ops:LinearFunction"
    assert spec.dims == {"N": [1, 4, 33], "C": [8], "K": [5]}
    assert spec.inputs["bias"].optional
    assert spec.dtypes == ["float64", "float32", "bfloat16"]
    assert [(item.code, item.reason) for item in spec.ignore] == [
        ("GL503", "first order only, by contract")
    ]
    assert sample_labels(spec) == [
        "N=1,C=8,K=5",
        "N=4,C=8,K=5",
        "N=33,C=8,K=5",
        "N=1,C=8,K=5,bias=None",
        "N=33,C=8,K=5,bias=None",
    ]


def test_plain_arguments() -> None:
    spec = loads(
        "op: a:b\ninputs: {dim: -1, eps: 1e-5, mode: mean, flag: true, nothing: null,\n"
        "  sizes: {value: [1, 2]}, off: off}"
    )
    assert [item.value for item in spec.inputs.values()] == [
        *(-1, 1e-5, "mean", True, None, [1, 2], "off")
    ]


#: text, then line, column, message and hint of every mistake in it.
MISTAKES: list[tuple[str, list[tuple[int, int, str, str]]]] = [
    (
        "a: 1",
        [
            (1, 1, "unknown key", ""),
            (1, 1, "the spec does not say what the op is", "op: pkg.mod:Name"),
        ],
    ),
    ("- op: a", [(1, 1, "a spec is a mapping", "")]),
    ("just text", [(1, 1, "a spec is a mapping", "")]),
    ("op: a:b\nforwrad: x", [(2, 1, "unknown key `forwrad`", "`forward`")]),
    ("op: 3", [(1, 5, "`op` must be a text, not 3", "")]),
    ("op: a:b\nforward: x\ninputs: {x: 1}", [(2, 1, "both `op` and `forward`", "keep one")]),
    ("op: a:b\nbackward: {}", [(2, 1, "`backward` needs `forward`", "")]),
    (
        "op: a:b\nconstructor: {n: {shape: [3]}, m: {values: [1, 2]}, k: {}}",
        [
            (2, 19, "`shape` describes an input", "{value: …}"),
            (2, 36, "`values` describes an input", "{value: …}"),
            (2, 53, "the spec does not say what this argument is", ""),
        ],
    ),
    (
        "forward: x\ninputs: {x: 1}\nconstructor: {n: 3}",
        [(3, 1, "a formula has no `constructor`", "")],
    ),
    ("forward: x", [(1, 1, "needs `inputs`", ""), (1, 10, "unknown name `x`", "")]),
    ("op: a:b\ninputs: [x]", [(2, 9, "`inputs` must be a mapping", "")]),
    (
        "op: a:b\ninputs:\n  x: {shap: [N]}\ndims: {N: 3}",
        [
            (3, 3, "the spec does not say what this argument is", ""),
            (3, 7, "unknown key `shap`", "`shape`"),
        ],
    ),
    ("op: a:b\ninputs: {x: {shape: [N]}}", [(2, 22, "unknown dim `N`", "add it to `dims`")]),
    (
        "op: a:b\ndims: {BATCH: 2}\ninputs: {x: {shape: [3, BACTH]}}",
        [(3, 25, "unknown dim `BACTH`", "`BATCH`")],
    ),
    (
        "op: a:b\ndims: {N: 2}\ninputs: {x: {shape: [2*N + M, N / 2]}}",
        [(3, 28, "unknown dim `M`", ""), (3, 31, "a size is made of", "")],
    ),
    ("op: a:b\ninputs: {x: {shape: [randn(3)]}}", [(2, 22, "a size is made of", "")]),
    ("op: a:b\ninputs: {x: {shape: [2.5]}}", [(2, 22, "must be a whole number", "")]),
    ("op: a:b\ninputs: {x: {shape: 3}}", [(2, 21, "must be a list, not 3", "[3]")]),
    ("op: a:b\ndims: {N: 3}\ninputs: {x: {shape: [N - 5]}}", [(3, 22, "is -2 at N=3", "")]),
    ("op: a:b\ndims: {N: -1}", [(2, 11, "must be at least 0", "")]),
    ("op: a:b\ndims: {N: []}", [(2, 11, "too short", "")]),
    ("op: a:b\ndims: {N: a}", [(2, 11, "must be a whole number", "")]),
    ("op: a:b\ndims: {N: 2, N: 3}", [(2, 14, "`N` is given twice", "line 2")]),
    ("op: a:b\ndims: {2N: 2}", [(2, 8, "not a valid dim name", "")]),
    ("op: a:b\ninputs: {x: [1, 2]}", [(2, 13, "a bare list", "")]),
    ("op: a:b\ninputs: {x: {shape: [2], optional: yes}}", [(2, 36, "true or false", "")]),
    (
        "op: a:b\ninputs: {x: {shape: [2], domain: positiv}}",
        [(2, 34, "unknown domain `positiv`", "`positive`")],
    ),
    (
        "op: a:b\ninputs: {x: {shape: [2], domain: '[3, 1]'}}",
        [(2, 34, "to its larger", "")],
    ),
    ("op: a:b\ninputs: {x: {shape: [2], domain: [1]}}", [(2, 34, "two numbers", "")]),
    (
        "op: a:b\ninputs: {x: {domain: reals}}",
        [(2, 10, "does not say", ""), (2, 14, "needs `shape`", "")],
    ),
    (
        "op: a:b\ninputs: {x: {shape: [2], domain: reals, range: [0, 3]}}",
        [(2, 41, "`domain` and `range` can't both", "")],
    ),
    (
        "op: a:b\ninputs: {x: {shape: [2], expression: ones(2)}}",
        [(2, 26, "`shape` and `expression` can't both", "")],
    ),
    ("op: a:b\ninputs: {x: {value: 1, values: [1]}}", [(2, 24, "`value` and `values`", "")]),
    (
        "op: a:b\ninputs: {x: {shape: [2], dtype: flaot64}}",
        [(2, 33, "unknown dtype `flaot64`", "`float64`")],
    ),
    ("op: a:b\ninputs: {x: {shape: [2], dtype: int64}}", [(2, 33, "which integers", "range")]),
    (
        "op: a:b\ninputs: {x: {shape: [2], range: [3, 1]}}",
        [(2, 33, "no integer lies in", "")],
    ),
    ("op: a:b\ninputs: {x: {shape: [2], value: [1, 2, 3]}}", [(2, 33, "of shape [3]", "")]),
    ("op: a:b\ninputs: {x: {shape: [2, 2], value: [[1], [2, 3]]}}", [(2, 36, "ragged", "")]),
    (
        "op: a:b\ninputs: {x: {shape: [2], value: ones}}",
        [(2, 33, "number or lists", "")],
    ),
    ("op: a:b\ninputs: {x: {shape: [2, 3], domain: spd}}", [(2, 37, "square matrices", "")]),
    ("op: a:b\ninputs: {x: {shape: [2], sparse: cco}}", [(2, 34, "can't be", "`coo`")]),
    ("op: a:b\ninputs: {x: {expression: randm(3)}}", [(2, 26, "unknown function `randm`", "rand")]),
    ("op: a:b\ninputs: {x: {list: [{shape: [Q]}]}}", [(2, 30, "unknown dim `Q`", "")]),
    ("op: a:b\ninputs: {'a b': 1}", [(2, 10, "not a valid argument name", "")]),
    (
        "op: a:b\ninputs: {x: {shape: [100000, 100000]}}",
        [(2, 9, "10,000,000,000 elements", "")],
    ),
    (
        'forward: "wieght * x"\ninputs: {x: {shape: [2]}, weight: {shape: [2]}}',
        [(1, 11, "unknown name `wieght`", "`weight`")],
    ),
    (
        "forward: >\n  x +\n    sofmax(x)\ninputs: {x: {shape: [2]}}",
        [(3, 5, "unknown function `sofmax`", "`softmax`")],
    ),
    (
        'forward: "x * N"\ndims: {N: 2}\ninputs: {x: {shape: [N]}}',
        [(1, 15, "unknown name `N`", "x.shape[0]")],
    ),
    (
        'forward: "x * grad_output"\ninputs: {x: {shape: [2]}}',
        [(1, 15, "unknown name `grad_output`", "")],
    ),
    (
        'forward: "x"\nbackward: {y: grad_output}\ninputs: {x: {shape: [2]}}',
        [(2, 12, "`y` is not an input", "inputs are `x`")],
    ),
    (
        'forward: "a"\nlet: {a: "b", b: "x"}\ninputs: {x: {shape: [2]}}',
        [(2, 11, "unknown name `b`", "before it")],
    ),
    (
        'forward: "a"\nlet: {a: "x * grad_output"}\ninputs: {x: {shape: [2]}}',
        [(1, 11, "unknown name `a`", "only backward")],
    ),
    (
        'forward: "x"\nlet: {x: "1"}\ninputs: {x: {shape: [2]}}',
        [(2, 7, "can't be the name of a formula", "")],
    ),
    (
        'forward: "_x"\ninputs: {_x: {shape: [2]}}',
        [(2, 10, "can't be the name of a formula's input", "")],
    ),
    (
        'forward: "1"\ninputs: {output: {shape: [2]}}',
        [(2, 10, "can't be the name of a formula's input", "")],
    ),
    ("op: a:b\ndtypes: [float46]", [(2, 10, "can't be the text `float46`", "`float64`")]),
    ("op: a:b\ndtypes: float64", [(2, 9, "must be a list", "[float64]")]),
    ("op: a:b\ndevices: [gpu]", [(2, 11, "can't be", "")]),
    ("op: a:b\norder: 3", [(2, 8, "can't be 3", "1, 2")]),
    ("op: a:b\norder: '2'", [(2, 8, "can't be the text", "without quotes")]),
    ("op: a:b\nseed: -1", [(2, 7, "at least 0", "")]),
    ("op: a:b\nseed: 1.5", [(2, 7, "whole number", "")]),
    ("op: a:b\nstochastic: 1", [(2, 13, "true or false", "")]),
    ("op: a:b\nignore: [{code: GL503}]", [(2, 10, "`reason` is missing", "")]),
    ("op: a:b\nignore: [{code: GL503, reason: ''}]", [(2, 32, "empty", "")]),
    ("op: a:b\nignore: [{code: L503, reason: x}]", [(2, 17, "not a rule code", "")]),
    ("op: a:b\nignore: {code: GL503}", [(2, 9, "must be a list", "")]),
    (
        "op: a:b\nextension: {sourcs: [a.cpp]}",
        [(2, 12, "`sources` is missing", ""), (2, 13, "unknown key", "`sources`")],
    ),
    (
        "extension: {sources: [a.cpp]}",
        [(1, 1, "does not say", ""), (1, 1, "`extension` needs `op`", "")],
    ),
    ("op: a:b\ncases: [{dims: {M: 3}}]", [(2, 17, "unknown dim `M`", "")]),
    ("forward: x\ninputs: {x: 1}\ncases: [{inputs: {z: 1}}]", [(3, 19, "unknown input `z`", "")]),
    ("op: a:b\nreference: \"__import__('os')\"", [(2, 13, "leading underscore", "")]),
    ('op: a:b\nreference: "9**9**9"', [(2, 13, "refused", "")]),
    ("op: a:b\nreference: 'x.data'\ninputs: {x: 1}", [(2, 15, "unknown attribute `.data`", "")]),
    ("op: a:b\n<<: {name: c}", [(2, 1, "unknown key `<<`", "")]),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_mistakes(text: str, expected: list[tuple[int, int, str, str]]) -> None:
    with pytest.raises(SpecError) as raised:
        loads(text, "spec.yaml")
    problems = raised.value.problems
    got = [(p.line, p.column) for p in problems]
    assert got == [(line, column) for line, column, _, _ in expected], str(raised.value)
    for problem, (_, _, message, hint) in zip(problems, expected, strict=True):
        assert message in problem.message
        assert hint in problem.hint
        assert "\n" not in problem.message


def test_all_mistakes_come_out_together_in_order() -> None:
    text = """\
op: a:b
nmae: c
dims: {N: [1, 2.5], C: 8, C: 3}
inputs:
  x: {shape: [N, D], domain: positiv}
  y: {shpe: [N]}
dtypes: [float46]
reference: "x + z"
ignore: [{code: XX}]
order: 3
"""
    with pytest.raises(SpecError) as raised:
        loads(text, "s.yaml")
    lines = [problem.line for problem in raised.value.problems]
    assert lines == sorted(lines)
    assert set(lines) == {2, 3, 5, 6, 7, 8, 9, 10}
    assert len(lines) == 12
    assert str(raised.value).count("s.yaml:") == 12


def test_an_unknown_code_is_told_where_rules_are_known() -> None:
    with pytest.raises(SpecError, match="no rule has the code `GL999`"):
        loads("op: a:b\nignore: [{code: GL999, reason: x}]")


def test_loading_does_not_import_torch() -> None:
    code = (
        "import sys; from gradlint.spec.load import loads\n"
        "loads('forward: \"softmax(x, -1)\"\\ndims: {N: 2}\\ninputs: {x: {shape: [N]}}\\n'\n"
        "      'ignore: [{code: GL503, reason: x}]')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
