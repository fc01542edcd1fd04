"""From the inputs of a spec to arguments."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from gradlint.base.errors import SpecError
from gradlint.model.sample import Sample
from gradlint.spec._samples import make_samples
from gradlint.spec.load import loads


def samples(
    inputs: str, call: Any = None, *, seed: int = 0, by_name: bool = True, **more: str
) -> list[Sample]:
    text = f"op: a:b\ninputs: {inputs}\n" + "".join(f"{k}: {v}\n" for k, v in more.items())
    spec = loads(text)
    signature = inspect.signature(call) if call else None
    return make_samples(spec, spec.places, seed, signature, by_name=by_name)


def one(description: str, **more: str) -> Any:
    return samples(f"{{x: {description}}}", **more)[0].args[0]


def test_tensors_are_float64_and_differentiable() -> None:
    x = one("{shape: [N, 2*N + 1]}", dims="{N: 3}")
    assert (tuple(x.shape), x.dtype, x.requires_grad, x.is_leaf) == (
        (3, 7),
        torch.float64,
        True,
        True,
    )
    assert not one("{shape: [2], requires_grad: false}").requires_grad


def test_kinds_of_tensors() -> None:
    integers = one("{shape: [4, 5], range: [2, K]}", dims="{K: 6}")
    assert integers.dtype == torch.int64
    assert integers.unique().tolist() == [2, 3, 4, 5]
    assert one("{shape: [3], range: [0, 3], dtype: int32}").dtype == torch.int32
    assert one("{shape: [3], range: [0, 3], dtype: torch.float64}").dtype == torch.float64
    flags = one("{shape: [6], bool: true}")
    assert flags.sort().values.tolist() == [False] * 3 + [True] * 3
    assert one("{shape: [6], dtype: bool}").dtype == torch.bool
    assert one("{shape: [2, 2], complex: true}").dtype == torch.complex128
    assert one("{shape: [2], dtype: complex64}").dtype == torch.complex64
    assert one("{shape: [2], dtype: float32}").dtype == torch.float32
    assert one("{shape: []}").shape == ()
    assert one("{shape: [0, 3]}").shape == (0, 3)


def test_values_of_tensors() -> None:
    assert one("{shape: [2, 2], value: 0.1}").tolist() == [[0.1, 0.1], [0.1, 0.1]]
    assert one("{shape: [2, 2], value: [[1.5, 2], [3, 4]]}").tolist() == [[1.5, 2], [3, 4]]
    assert one("{shape: [2], value: [1, 0]}").dtype == torch.int64
    assert one("{shape: [2], value: [1, 0], dtype: float64}").requires_grad
    assert one("{shape: [2], value: [true, false]}").dtype == torch.bool
    drawn = one("{shape: [3, 3], values: [-1, 0, 2.5]}")
    assert sorted(set(drawn.flatten().tolist())) == [-1.0, 0.0, 2.5]
    assert one("{shape: [2], values: [1, 2, 3]}").shape == (2,)


def test_sparse_tensors() -> None:
    coo = one("{shape: [4, 4], sparse: coo}")
    assert coo.layout == torch.sparse_coo
    assert coo.requires_grad
    assert int((coo.to_dense() != 0).sum()) == 8
    assert one("{shape: [4, 4], sparse: csr}").layout == torch.sparse_csr


def test_expressions() -> None:
    x = one('{expression: "randn(N, 2).tril()"}', dims="{N: 3}")
    assert x.shape == (3, 2)
    assert x.requires_grad
    assert x.is_leaf
    assert one('{expression: "torch.float32"}') is torch.float32
    assert one('{expression: "(N, N + 1)"}', dims="{N: 3}") == (3, 4)
    assert not one('{expression: "rand(3)", requires_grad: false}').requires_grad


def test_an_expression_that_fails_is_placed() -> None:
    with pytest.raises(SpecError) as raised:
        one('{expression: "ones(2) + ones(N)"}', dims="{N: 3}")
    (problem,) = raised.value.problems
    assert (problem.line, problem.column) == (2, 27)
    assert "must match the size" in problem.message


def test_containers() -> None:
    value = one("{list: [{shape: [2]}, 3, {tuple: [1, {shape: [1]}]}]}")
    assert isinstance(value, list)
    assert value[1] == 3
    assert isinstance(value[2], tuple)
    assert value[2][1].requires_grad
    assert set(one("{dict: {a: {shape: [2]}, b: 1}}")) == {"a", "b"}


def test_domains_are_told() -> None:
    (sample,) = samples("{x: {shape: [2], domain: positive}, y: {shape: [2]}, n: 3}")
    assert sample.domains == {"x": "positive", "y": "all reals"}
    assert sample.origin == "spec"
    assert sample.label == "spec"


def test_sweeps() -> None:
    made = samples(
        "{x: {shape: [N]}, bias: {shape: [N], optional: true}, mode: {values: [mean, sum]}}",
        dims="{N: [2, 5]}",
    )
    assert [sample.label for sample in made] == [
        "N=2",
        "N=5",
        "N=2,bias=None",
        "N=2,mode=sum",
        "N=5,bias=None,mode=sum",
    ]
    assert [len(sample.args[0]) for sample in made] == [2, 5, 2, 2, 5]
    assert [sample.args[1] is None for sample in made] == [False, False, True, False, True]
    assert [sample.args[2] for sample in made] == ["mean", "mean", "mean", "sum", "sum"]


def test_cases_replace_sweeps() -> None:
    made = samples(
        "{x: {shape: [N]}, y: {shape: [N]}, mode: mean}",
        dims="{N: [2, 5]}",
        cases="[{}, {label: big, dims: {N: 9}}, {inputs: {y: null}}, {omit: [mode]}]",
    )
    assert [sample.label for sample in made] == [*["N=2", "big", "N=2,y=None", "N=2"][:3], "N=2#2"]
    assert [len(sample.args[0]) for sample in made] == [2, 9, 2, 2]
    assert made[2].args[1] is None
    assert len(made[3].args) == 2


def test_values_depend_on_seed_label_and_name_alone() -> None:
    def values(inputs: str, seed: int) -> list[torch.Tensor]:
        return list(samples(inputs, seed=seed)[0].args)

    first, again, other = (values("{x: {shape: [9]}}", seed)[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    beside = values("{z: {shape: [4]}, x: {shape: [9]}}", 1)[1]
    assert torch.equal(first, beside)


def test_arguments_follow_the_signature() -> None:
    def op(
        input: Any, weight: Any, bias: Any = None, eps: float = 1e-5, *, dim: int = -1
    ) -> None: ...

    (sample,) = samples("{eps: 2.0, dim: 0, weight: 1, input: 0}", op)
    assert (sample.args, sample.kwargs) == ((0, 1), {"eps": 2.0, "dim": 0})
    (sample,) = samples("{eps: 2.0, weight: 1, input: 0}", op, by_name=False)
    assert (sample.args, sample.kwargs) == ((0, 1, None, 2.0), {})
    (sample,) = samples("{input: 0, weight: {value: 1, keyword: true}}", op)
    assert (sample.args, sample.kwargs) == ((0,), {"weight": 1})


def test_variable_arguments() -> None:
    def op(first: Any, *xs: Any, **options: Any) -> None: ...

    (sample,) = samples('{first: 0, "xs[0]": 1, "xs[1]": 2}', op)
    assert sample.args == (0, 1, 2)
    (sample,) = samples("{first: 0, other: 1, deep: {value: 2, keyword: true}}", op)
    assert (sample.args, sample.kwargs) == ((0, 1), {"deep": 2})


def test_arguments_that_do_not_fit_are_placed() -> None:
    def op(input: Any, weight: Any) -> None: ...

    with pytest.raises(SpecError) as raised:
        samples("{input: 1, wieght: 2}", op)
    texts = [(p.line, p.column, p.message, p.hint) for p in raised.value.problems]
    assert texts == [
        (2, 1, "the op also needs `weight`", "its signature is (input, weight)"),
        (2, 20, "the op has no argument `wieght`", "did you mean `weight`?"),
    ]
