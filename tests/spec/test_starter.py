"""Starter specs: what they say, and that they come back as they were."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlint.model.op import Intent, Op
from gradlint.model.sample import Sample
from gradlint.spec._samples import make_samples
from gradlint.spec.load import loads
from gradlint.spec.starter import dump_starter


def _forward(
    x: Any, y: Any = None, z: Any = None, *rest: Any, dim: Any = -1, **more: Any
) -> None: ...


def op_of(**fields: Any) -> Op:
    return Op("f", "pkg.mod:f", "callable", _forward, inspect.signature(_forward), **fields)


def again(op: Op, samples: list[Sample]) -> list[Sample]:
    spec = loads(dump_starter(op, samples))
    assert spec.op == op.target
    return make_samples(spec, spec.places, 0, op.signature, by_name=True)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        exact = not (first.is_floating_point() or first.is_complex())
        return (
            isinstance(second, torch.Tensor)
            and first.shape == second.shape
            and first.dtype == second.dtype
            and first.layout == second.layout
            and first.requires_grad == second.requires_grad
            and (not exact or first.layout != torch.strided or torch.equal(first, second))
        )
    if type(first) is not type(second):
        return False
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, float) and math.isnan(first):
        return math.isnan(second)
    return bool(first == second)


def leaf(*shape: int, **options: Any) -> torch.Tensor:
    return torch.randn(shape, dtype=options.pop("dtype", torch.float64)).requires_grad_()


def test_text() -> None:
    samples = [
        Sample(
            "inferred",
            "inferred",
            (leaf(3, 4), leaf(5, 4).abs().detach().requires_grad_(), torch.tensor([2, 0, 1])),
            {"dim": 1},
            domains={"x": "all reals", "y": "positive"},
        ),
        Sample("y=None", "inferred", (leaf(3, 4), None, torch.tensor([2, 0, 1])), {"dim": 1}),
    ]
    text = dump_starter(op_of(), samples)
    assert text.startswith("# yaml-language-server: $schema=gradlint.schema.json\n")
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        'op: "pkg.mod:f"',
        "dims: {N: 3, M: 4, K: 5}",
        "inputs:",
        "  x: {shape: [N, M]}",
        '  y: {shape: [K, M], domain: "positive"}',
        "  z: {shape: [N], dtype: int64, value: [2, 0, 1]}",
        "  dim: {value: 1, keyword: true}",
        "cases:",
        '  - {label: "inferred"}',
        '  - {label: "y=None", inputs: {y: null}}',
    ]


#: Arguments that must come back as they are.
ARGUMENTS: list[tuple[Any, ...]] = [
    (leaf(3, 4), leaf(5, 4), None),
    (leaf(),),
    (leaf(1, 0),),
    (leaf(2, dtype=torch.float32),),
    (leaf(2, 2, dtype=torch.complex128),),
    (leaf(2, dtype=torch.complex64),),
    (torch.randn(3, dtype=torch.float64),),
    (torch.tensor([[1, 2], [3, 4]]), torch.tensor([True, False]), torch.tensor(7)),
    (torch.tensor([1, 2], dtype=torch.int32), torch.zeros(0, dtype=torch.int64)),
    (torch.zeros(0, 3, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.bool)),
    (leaf(3, 3).detach().to_sparse().requires_grad_(),),
    ([leaf(2), leaf(3)], (leaf(2), 1), {"a": leaf(2), "b c": [1, (2,)]}),
    ([1, 2.5, "x", None, True, [1]], (1, 2), ()),
    (1, 2.0, "mean"),
    (1e-5, math.inf, -math.inf),
    (1e300, -0.0, math.nan),
    ("yes", "1e-6", "null"),
    ('quo"te', "back\\slash", "new\nline"),
    ("ünï", "", "#: {["),
    (True, False, None),
    (torch.float32, torch.int64, 1 + 2j),
    (10**15, -3, 0),
    ({}, [], {"value": 1}),
    (leaf(2), leaf(2), leaf(2), leaf(3), leaf(4)),
]


@pytest.mark.parametrize("args", ARGUMENTS)
def test_arguments_come_back(args: tuple[Any, ...]) -> None:
    (sample,) = again(op_of(), [Sample("inferred", "inferred", args)])
    assert same(args, sample.args), (args, sample.args)
    assert sample.kwargs == {}


def test_keywords_come_back() -> None:
    kwargs = {"dim": -1, "flag": True, "weight": leaf(3)}
    (sample,) = again(op_of(), [Sample("a", "inferred", (leaf(3),), kwargs)])
    assert same(kwargs, sample.kwargs)


def test_several_samples_come_back() -> None:
    samples = [
        Sample("one", "sample_inputs", (leaf(3, 4), 1, "mean")),
        Sample("two", "sample_inputs", (leaf(5, 4), 1, "mean")),
        Sample("three", "sample_inputs", (leaf(3, 4), None)),
        Sample("four", "sample_inputs", (leaf(2, 2, 2), torch.tensor([1]), "sum"), {"dim": 0}),
    ]
    back = again(op_of(), samples)
    assert [sample.label for sample in back] == ["one", "two", "three", "four"]
    for first, second in zip(samples, back, strict=True):
        assert same(first.args, second.args)
        assert same(first.kwargs, second.kwargs)


def test_large_integer_tensors_become_ranges() -> None:
    index = torch.randint(3, 9, (20, 20))
    (sample,) = again(op_of(), [Sample("a", "inferred", (index, torch.rand(20, 20) > 0.5))])
    assert sample.args[0].shape == (20, 20)
    assert sample.args[0].dtype == torch.int64
    assert (int(sample.args[0].min()), int(sample.args[0].max())) == (
        int(index.min()),
        int(index.max()),
    )
    assert sample.args[1].dtype == torch.bool


@pytest.mark.parametrize(
    "words",
    [
        *("all reals", "positive", "between 0 and 1", "between -1 and 1", "above 1", "negative"),
        *("rows sum to 1", "symmetric positive definite", "in [2, 5]", "in (-inf, 3]"),
        *("in (2, inf)", "increasing along the last axis"),
    ],
)
def test_domains_come_back(words: str) -> None:
    args = (torch.eye(4, dtype=torch.float64).requires_grad_(),)
    (sample,) = again(op_of(), [Sample("a", "inferred", args, domains={"x": words})])
    assert sample.domains == {"x": words}


@pytest.mark.parametrize(
    ("value", "domain"),
    [
        (torch.tensor([-1.0, 2.0]), "all reals"),
        (torch.tensor([1.0, 2.0]), "positive"),
        (torch.tensor([0.0, 2.0]), "nonnegative"),
        (torch.tensor([0.3, 0.9]), "between 0 and 1"),
        (torch.tensor([0.3, 0.7]), "rows sum to 1"),
        (torch.tensor([math.nan, 0.7]), "all reals"),
    ],
)
def test_domains_are_seen_in_values_where_nothing_is_known(
    value: torch.Tensor, domain: str
) -> None:
    (sample,) = again(op_of(), [Sample("a", "sample_inputs", (value.double().requires_grad_(),))])
    assert sample.domains == {"x": domain}


def test_what_can_not_be_written_is_said() -> None:
    text = dump_starter(op_of(), [Sample("a", "inferred", (leaf(2), print))])
    assert "y: {value: null}  # gradlint can't write <built-in function print>: fill in" in text
    loads(text)


def test_declarations_of_the_op_are_kept() -> None:
    op = op_of(
        intent=Intent(surrogate={"x": "grad_output"}, once_differentiable=True, stochastic=True),
        ignores={"GL503": 'by "contract"'},
        order=1,
    )
    spec = loads(dump_starter(op, [Sample("a", "inferred", (leaf(2),))]))
    assert spec.surrogate == {"x": "grad_output"}
    assert spec.once_differentiable
    assert spec.stochastic
    assert spec.order == 1
    assert [(item.code, item.reason) for item in spec.ignore] == [("GL503", 'by "contract"')]


def test_no_samples() -> None:
    spec = loads(dump_starter(op_of(), []))
    assert spec.inputs == {}


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), parts, max_size=2)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_PLAIN, min_size=1, max_size=3))
def test_plain_arguments_come_back(args: list[Any]) -> None:
    (sample,) = again(op_of(), [Sample("a", "inferred", tuple(args))])
    assert same(tuple(args), sample.args)
