"""What every elementwise operator must do: values, strides, dtypes, derivatives, errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

ops = torch.ops.gradlint

Unary = Callable[[Tensor], Tensor]


def own(name: str, *numbers: float) -> Unary:
    """The operator, looked up when it is called: the library is loaded after this module is."""
    return lambda x: getattr(ops, name)(x, *numbers)


#: The operator, and the same in PyTorch's functions. Surrogates have tests of their own.
CASES: dict[str, tuple[Unary, Unary]] = {
    "square": (own("square"), torch.square),
    "exp": (own("exp"), torch.exp),
    "scale": (own("scale", -2.5), lambda x: -2.5 * x),
    "scale_": (lambda x: ops.scale_(x.clone(), -2.5), lambda x: -2.5 * x),
    "scaled_sigmoid": (own("scaled_sigmoid", 1.7), lambda x: torch.sigmoid(1.7 * x)),
    "relu": (own("relu"), torch.relu),
    "clipped_relu": (
        own("clipped_relu", 1.25),
        lambda x: functional.hardtanh(x, 0.0, 1.25),
    ),
    "soft_threshold": (
        own("soft_threshold", 0.375),
        lambda x: functional.softshrink(x, 0.375),
    ),
    "add_relu": (lambda x: ops.add_relu(x, -4 * x), lambda x: torch.relu(x + -4 * x)),
    "gelu": (own("gelu"), functional.gelu),
    "silu": (own("silu"), functional.silu),
}

#: The bound on |operator − exact| / (1 + |exact|), a few roundings.
TOLERANCE = {
    torch.float64: 1e-14,
    torch.float32: 1e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}

by_case = pytest.mark.parametrize("name", CASES)


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def layouts(dtype: torch.dtype) -> dict[str, Tensor]:
    """One tensor of each way to lie in memory."""
    make = partial(drawn, dtype=dtype)
    return {
        "dense, several blocks and a tail": make(9001),
        "transposed": make(6, 7).mT,
        "cut from three axes": make(5, 6, 7).permute(2, 0, 1)[:, 1:],
        "every second": make(40)[::2],
        "expanded": make(1, 5).expand(4, 5),
        "not aligned": make(38)[1:],
        "empty": make(0, 3),
        "empty along the last axis": make(3, 0),
        "no axes": make(),
    }


@by_case
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_and_gradients_in_every_layout(name: str, dtype: torch.dtype) -> None:
    """float64's operator of PyTorch is the truth; grad_output is dense, transposed, expanded."""
    operator, exact = CASES[name]
    close = partial(assert_close, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], check_dtype=False)
    for layout, x in layouts(dtype).items():
        x = x.detach().requires_grad_()
        wide = x.detach().double().requires_grad_()
        y, true = operator(x), exact(wide)
        assert y.dtype == dtype
        assert y.shape == x.shape
        close(y, true, msg=f"{layout}: {{}}".format)
        cotangents = [drawn(*y.shape, dtype=dtype), torch.ones((), dtype=dtype).expand_as(y)]
        if y.dim() > 1:
            cotangents.append(drawn(*y.shape[::-1], dtype=dtype).permute(*range(y.dim())[::-1]))
        for cotangent in cotangents:
            (got,) = grad(y, x, cotangent, retain_graph=True)
            (expected,) = grad(true, wide, cotangent.double(), retain_graph=True)
            close(got, expected, msg=f"{layout}: {{}}".format)


@by_case
def test_derivatives(name: str) -> None:
    operator, _ = CASES[name]
    for x in (drawn(3, 4), drawn(0, 2), drawn()):
        x.requires_grad_()
        assert gradcheck(operator, (x,))
        assert gradgradcheck(operator, (x,))


def test_add_relu_of_two_tensors() -> None:
    x, y = drawn(3, 4).requires_grad_(), drawn(4, 3).mT.requires_grad_()
    assert_close(ops.add_relu(x, y), torch.relu(x + y))
    assert gradcheck(ops.add_relu, (x, y))
    assert gradgradcheck(ops.add_relu, (x, y))
    assert gradcheck(ops.add_relu, (x.detach(), y))


@by_case
def test_each_second_derivative_alone(name: str) -> None:
    """With grad_output constant, and with x constant."""
    operator, exact = CASES[name]
    x, v = drawn(7).requires_grad_(), drawn(7).flip(0).requires_grad_()

    def second(function: Unary, of: Tensor, others: Tensor) -> Tensor | None:
        (first,) = grad(function(x), x, v.detach() if of is x else v, create_graph=True)
        return grad(first, of, others, allow_unused=True)[0] if first.requires_grad else None

    for of in (x, v):
        got, expected = second(operator, of, drawn(7)), second(exact, of, drawn(7))
        zero = torch.zeros(7, dtype=x.dtype)
        assert_close(zero if got is None else got, zero if expected is None else expected)


OPCHECKED: dict[str, tuple[object, ...]] = {
    "square": (),
    "square_backward": (drawn(3),),
    "exp": (),
    "scale": (2.0,),
    "scaled_sigmoid": (0.5,),
    "scaled_sigmoid_backward": (drawn(3), 0.5),
    "relu": (),
    "relu_backward": (drawn(3),),
    "clipped_relu": (0.5,),
    "soft_threshold": (0.5,),
    "soft_threshold_backward": (drawn(3), 0.5),
    "sign_ste": (),
    "add_relu": (drawn(3).flip(0).requires_grad_(),),
    "gelu": (),
    "silu": (),
}


@pytest.mark.parametrize("name", OPCHECKED)
def test_opcheck(name: str) -> None:
    operator = getattr(ops, name).default
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(
        operator, (drawn(3).requires_grad_(), *OPCHECKED[name]), test_utils=checks
    )


@pytest.mark.parametrize("name", ["scaled_sigmoid", "add_relu"])
def test_compiled(name: str) -> None:
    operator, _ = CASES[name]
    compiled = torch.compile(lambda x: operator(x) * 2, backend="aot_eager", fullgraph=True)
    x = drawn(5).requires_grad_()
    y, expected = compiled(x), operator(x) * 2
    assert_close(y, expected)
    assert_close(grad(y.sum(), x), grad(expected.sum(), x))


@pytest.mark.parametrize("stride", [2**20, 2**20 + 1])
def test_one_axis_with_a_stride_at_and_beyond_that_of_a_line(stride: int) -> None:
    # line_stride in kernels/common/operands.h: beyond it, offsets are computed one by one.
    x = torch.zeros(4 * stride + 1, dtype=torch.float16).as_strided((5,), (stride,))
    x.copy_(torch.tensor([-2.0, 3.0, -0.5, 0.25, 7.0]))
    assert ops.relu(x).tolist() == [0, 3, 0, 0.25, 7]
    assert ops.add_relu(x, x).tolist() == [0, 6, 0, 0.5, 14]
    assert ops.weighted_sum(x, x).item() == 4 + 9 + 0.25 + 0.0625 + 49


def test_soft_threshold_at_its_kinks_and_beyond() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([-inf, -2, -0.5, -0.0, 0.0, 0.5, 0.75, inf, nan])
    result = ops.soft_threshold(x, 0.5)
    assert_close(result, torch.tensor([-inf, -1.5, 0, 0, 0, 0, 0.25, inf, nan]), equal_nan=True)
    assert ops.soft_threshold(x[:-1], inf).tolist() == [0] * 8
    assert_close(ops.soft_threshold(x, 0.0), x, equal_nan=True)
    g = torch.ones(9)
    assert ops.soft_threshold_backward(g, x, 0.5).tolist() == [1, 1, 0, 0, 0, 0, 1, 1, 1]
    assert ops.soft_threshold_backward(g, x, 0.0).tolist() == [1] * 9


def test_more_axes_than_can_be_walked_are_refused() -> None:
    x = drawn(*[2] * 13).permute(*range(12, -1, -1))[..., ::1]
    ragged = torch.empty_strided([2] * 13, [3**axis for axis in range(13)]).fill_(1.0)
    assert_close(ops.square(x), x * x)
    with pytest.raises(RuntimeError, match="more than 12 axes"):
        ops.square(ragged)


BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "integers": (
        lambda: ops.relu(torch.ones(3, dtype=torch.int64)),
        TypeError,
        "gradlint::relu: `x` must be float64, float32, float16 or bfloat16, got Long",
    ),
    "complex": (lambda: ops.gelu(torch.ones(3, dtype=torch.cfloat)), TypeError, "ComplexFloat"),
    "no tensor": (lambda: ops.exp("x"), RuntimeError, "'Tensor' for argument 'x'"),
    "shapes": (
        lambda: ops.add_relu(drawn(2), drawn(3)),
        RuntimeError,
        r"gradlint::add_relu: `y` must have the shape of `x`, \[2\], got \[3\]",
    ),
    "no broadcasting": (
        lambda: ops.weighted_sum(drawn(2, 3), drawn(3)),
        RuntimeError,
        r"`weight` must have the shape of `x`, \[2, 3\], got \[3\]",
    ),
    "dtypes": (
        lambda: ops.add_relu(drawn(2), drawn(2).float()),
        TypeError,
        "`y` must have the dtype of `x`, Double, got Float",
    ),
    "devices": (
        lambda: ops.weighted_sum(drawn(2), drawn(2).to("meta")),
        RuntimeError,
        "`weight` must be on the device of `x`, cpu, got meta",
    ),
    "grad_output": (
        lambda: ops.silu_backward(drawn(2), drawn(3)),
        RuntimeError,
        "gradlint::silu: `grad_output` must have the shape of `x`",
    ),
    "threshold": (
        lambda: ops.soft_threshold(drawn(2), -0.5),
        ValueError,
        "gradlint::soft_threshold: `threshold` must be 0 or more, got -0.5",
    ),
    "threshold is NaN": (
        lambda: ops.soft_threshold(drawn(2), float("nan")),
        ValueError,
        "must be 0 or more, got nan",
    ),
    "ceiling": (
        lambda: ops.clipped_relu(drawn(2), -1.0),
        ValueError,
        "gradlint::clipped_relu: `ceiling` must be 0 or more, got -1",
    ),
    "parameter left out": (lambda: ops.scale(drawn(2)), RuntimeError, "argument 'factor'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_explained(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
