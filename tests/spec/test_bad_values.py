"""Values that no tensor can hold are found by the loader, which knows nothing of torch, at their
place; near misses are not."""

from __future__ import annotations

import pytest
import torch

from gradlint.base.errors import SpecError
from gradlint.spec._formula import Program
from gradlint.spec._samples import make_samples
from gradlint.spec.load import loads


def _spec(described: str) -> str:
    return f'forward: "x * 2"\ninputs: {{x: {described}}}\n'


def _message(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        loads(text, "a.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (
            "{shape: [3], range: [0, 100000000000000000000]}",
            "2:33: the integers in [0, 100000000000000000000) are not all within int64's at spec",
        ),
        (
            "{shape: [3], range: [0, 300], dtype: uint8}",
            "2:33: the integers in [0, 300) are not all within uint8's at spec",
        ),
        (
            "{shape: [2], value: [1, 100000000000000000000000000]}",
            "2:33: 1e+26 is not within the integers of int64 (write numbers that the dtype can "
            "hold)",
        ),
        (
            "{shape: [3], values: [1, a, null]}",
            "2:34: `a` can't be an element of a tensor, which holds numbers (write numbers that "
            "the dtype can hold)",
        ),
        (
            "{shape: [3], values: [[1], 2]}",
            "2:34: a list can't be an element of a tensor, which holds numbers (write numbers "
            "that the dtype can hold)",
        ),
        (
            "{shape: [1], value: [.nan], dtype: int64}",
            "2:33: nan is no integer, and the dtype is int64 (write numbers that the dtype can "
            "hold)",
        ),
        ("{shape: [3], sparse: csr}", "2:34: csr needs two axes; the shape is [3] (write coo)"),
        (
            "{shape: [0, 9223372036854775807, 9223372036854775807]}",
            "2:21: the sizes beside those of zero are too large at spec; at most 67,108,864 "
            "elements are allowed",
        ),
        (f"{{shape: [{', '.join('1' * 70)}]}}", "2:21: 70 axes; at most 32 are allowed"),
    ],
)
def test_what_no_tensor_holds_is_refused(described: str, message: str) -> None:
    assert _message(_spec(described)) == f"a.yaml:{message}"


@pytest.mark.parametrize("domain", ["[1e308, 1.7e308]", "(-inf, -1.7e308]", "[0, 1e301]"])
def test_intervals_at_the_end_of_float64_are_refused(domain: str) -> None:
    message = _message(_spec(f'{{shape: [3], domain: "{domain}"}}'))
    assert message.startswith("a.yaml:2:34: the ends of an interval lie within ±1e+300")


@pytest.mark.parametrize("surrogate", ["None", "'a'", "(x, x)", "[x]"])
def test_a_surrogate_that_is_no_tensor_is_refused(surrogate: str) -> None:
    text = _spec("{shape: [3]}") + f'backward: {{x: grad_output}}\nsurrogate: {{x: "{surrogate}"}}'
    assert _message(text) == f"a.yaml:4:16: `{surrogate}` is neither a tensor nor a number"


def test_a_surrogate_may_be_a_number() -> None:
    loads(_spec("{shape: [3]}") + 'backward: {x: grad_output}\nsurrogate: {x: "1.0"}\n')


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ("{shape: [2], value: [1, 9223372036854775807]}", [1, 2**63 - 1]),
        ("{shape: [2], value: [0, 255], dtype: uint8}", [0, 255]),
        ("{shape: [2], value: [true, 0], dtype: bool}", [True, False]),
        ("{shape: [2], value: [1.0, 2], dtype: int64}", [1, 2]),
        ("{shape: [2], value: [1.5, .inf]}", [1.5, float("inf")]),
        ("{shape: [0, 5], value: []}", None),
    ],
)
def test_what_a_tensor_holds_is_taken(described: str, expected: list[float] | None) -> None:
    if expected is None:
        return
    assert _made(described).tolist() == expected


def _made(described: str) -> torch.Tensor:
    spec = loads(_spec(described))
    (sample,) = make_samples(spec, spec.places, 0, Program(spec).signature(), by_name=False)
    return sample.args[0]


def test_integers_of_a_wide_range_are_drawn_without_a_list_of_them() -> None:
    made = _made("{shape: [1000], range: [-5000000000000, 5000000000000]}")
    assert made.dtype == torch.int64
    assert -5e12 <= made.min() < -4.8e12  # the least of 1,000: within 1/50 of the range
    assert 4.8e12 < made.max() < 5e12
    full = _made("{shape: [4], range: [-9223372036854775808, 9223372036854775807]}")
    assert full.shape == (4,)


def test_what_torch_refuses_all_the_same_is_a_mistake_of_the_spec(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = loads(_spec("{shape: [2, 2], sparse: csr}"))

    def refuse(tensor: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("not today")

    monkeypatch.setattr(torch.Tensor, "to_sparse_csr", refuse)
    with pytest.raises(SpecError) as caught:
        make_samples(spec, spec.places, 0, Program(spec).signature(), by_name=False)
    assert str(caught.value).endswith("`x` can't be made at spec: RuntimeError: not today")


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('forward: " "', 10),
        ('reference: "\\t"', 12),
        ('let: {v: "  "}', 10),
        ('backward: {x: " "}', 15),
        ('surrogate: {x: " "}', 16),
    ],
)
def test_a_formula_of_blanks_is_refused_at_its_place(line: str, column: int) -> None:
    inputs = "inputs: {x: {shape: [3]}}\n"
    formula = "" if line.startswith("forward") else 'forward: "x"\n'
    number = 2 if formula else 1
    assert (
        _message(f"{formula}{line}\n{inputs}")
        == f"a.yaml:{number}:{column}: the expression is empty"
    )
    assert loads(f'forward: "  x "\n{inputs}').forward == "  x "
