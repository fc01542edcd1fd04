"""What expressions evaluate to."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gradlint.expressions import vocabulary as words
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.expressions.limits import ExpressionError

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -0.25]], dtype=torch.float64)
W = torch.arange(12, dtype=torch.float64).reshape(4, 3) / 7
I = torch.tensor([1, 0], dtype=torch.int64)  # noqa: E741
ENV = {"x": X, "w": W, "i": I, "n": 3, "none": None, "name": "mean", "parts": [X, X]}

#: text → value.
CASES: list[tuple[str, Any]] = [
    ("1 + 2 * 3 - 4 / 2", 5.0),
    ("7 // 2 + 7 % 2", 4),
    ("2 ** 10", 1024),
    ("-n + +n", 0),
    ("1 << 4 | 1", 17),
    ("5 & 3 ^ 1", 0),
    ("~5", -6),
    ("1 if n > 2 else 0", 1),
    ("none is None", True),
    ("x is not None and n == 3", True),
    ("not none or missing" if False else "not none", True),
    ("name == 'mean'", True),
    ("name in ('mean', 'sum')", True),
    ("0 < n <= 3 < 4", True),
    ("(1, [2, 3], {'a': 4})", (1, [2, 3], {"a": 4})),
    ("[1, 2, 3][1:]", [2, 3]),
    ("{'a': 4}['a']", 4),
    ("[0, 1] * 2 + [2]", [0, 1, 0, 1, 2]),
    ("pi", math.pi),
    ("e ** 0 + inf", math.inf),
    ("math.pi - torch.pi", 0.0),
    ("sqrt(4)", 2.0),
    ("exp(0.0)", 1.0),
    ("max(1, n)", 3),
    ("min([2, 1])", 1),
    ("abs(-3)", 3),
    ("len(parts)", 2),
    ("len((1, 2))", 2),
    ("int(3.7)", 3),
    ("float(2)", 2.0),
    ("bool(0)", False),
    ("range(3)", [0, 1, 2]),
    ("tuple([1, 2])", (1, 2)),
    ("x.shape", (2, 3)),
    ("x.shape[-1]", 3),
    ("x.ndim", 2),
    ("x.dim() + x.numel() + x.size(0)", 10),
    ("x.sum().item()", 2.25),
    ("relu(x)", X.relu()),
    ("torch.relu(x)", X.relu()),
    ("F.softplus(x)", torch.nn.functional.softplus(X)),
    ("torch.nn.functional.softplus(x)", torch.nn.functional.softplus(X)),
    ("x @ w.mT", X @ W.mT),
    ("x @ w.T", X @ W.T),
    ("matmul(x, w.transpose(0, 1))", X @ W.T),
    ("linear(x, w)", X @ W.T),
    ("einsum('ij,kj->ik', x, w)", X @ W.T),
    ("sum(x)", X.sum()),
    ("sum(x, 1)", X.sum(1)),
    ("sum(x, dim=1, keepdim=True)", X.sum(1, keepdim=True)),
    ("sum(parts)", X + X),
    ("x.mean(-1)", X.mean(-1)),
    ("softmax(x, -1)", X.softmax(-1)),
    ("logsumexp(x, 1)", X.logsumexp(1)),
    ("where(x > 0, x, 0.0)", X.clamp(min=0)),
    ("clamp(x, min=0, max=1)", X.clamp(0, 1)),
    ("maximum(x, 0)", X.clamp(min=0)),
    ("max(x)", X.max()),
    ("max(x, 1).values", X.max(1).values),
    ("max(x, 1)[1]", X.max(1).indices),
    ("x.topk(2).indices", X.topk(2).indices),
    ("x[i]", X[I]),
    ("x[:, i]", X[:, I]),
    ("x[0, 1:]", X[0, 1:]),
    ("x[..., None].squeeze(-1)", X),
    ("x[x > 0]", X[X > 0]),
    ("x[[1, 0]]", X[[1, 0]]),
    ("(0 < x) & (x < 1)", (X > 0) & (X < 1)),
    ("0 < x < 1", (X > 0) & (X < 1)),
    ("~(x > 0)", X <= 0),
    ("x ** 2", X**2),
    ("-x", -X),
    ("cat([x, x], 1)", torch.cat([X, X], 1)),
    ("stack(parts)", torch.stack([X, X])),
    ("cat(parts, dim=-1).chunk(2, -1)[1]", X),
    ("x.reshape(-1).unsqueeze(0).squeeze()", X.reshape(-1)),
    ("x.to(float32).dtype", torch.float32),
    ("x.to('float32').dtype", torch.float32),
    ("x.to(dtype=torch.float32).dtype", torch.float32),
    ("erf(x) + log1p(abs(x)) + sigmoid(x).tanh()", X.erf() + X.abs().log1p() + X.sigmoid().tanh()),
    ("stop_gradient(x)", X),
    ("x.sum_to_size(1, 3)", X.sum_to_size(1, 3)),
    ("relu(-1.0)", torch.tensor(0.0, dtype=torch.float64)),
    ("eye(2, 3)", torch.eye(2, 3, dtype=torch.float64)),
    ("zeros(2) + ones((2,))", torch.ones(2, dtype=torch.float64)),
    ("full((2,), 0.5)", torch.full((2,), 0.5, dtype=torch.float64)),
    ("full((2,), 1)", torch.full((2,), 1)),
    ("arange(3)", torch.arange(3)),
    ("arange(1, 4)", torch.arange(1, 4)),
    ("arange(0, 1, 0.25)", torch.arange(0, 1, 0.25, dtype=torch.float64)),
    ("arange(3, dtype=float64)", torch.arange(3, dtype=torch.float64)),
    ("linspace(0, 1, 5)", torch.linspace(0, 1, 5, dtype=torch.float64)),
    ("tensor([1, 2])", torch.tensor([1, 2])),
    ("tensor(0.1)", torch.tensor(0.1, dtype=torch.float64)),
    ("tensor([True, False])", torch.tensor([True, False])),
    ("zeros_like(x)", torch.zeros_like(X)),
    ("one_hot(i, 2)", torch.nn.functional.one_hot(I, 2)),
    ("diag(ones(2))", torch.eye(2, dtype=torch.float64)),
    ("tril_indices(2, 2)", torch.tril_indices(2, 2)),
    ("linalg.det(eye(2))", torch.tensor(1.0, dtype=torch.float64)),
    ("torch.special.entr(ones(1))", torch.zeros(1, dtype=torch.float64)),
    ("complex(x, x).real", X),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_value(text: str, expected: Any) -> None:
    value = evaluate(compile_expression(text, ENV), ENV)
    if isinstance(expected, torch.Tensor):
        assert torch.equal(value, expected)
        assert value.dtype == expected.dtype
    else:
        assert value == expected
        assert type(value) is type(expected)


def test_every_function_exists_in_torch() -> None:
    import importlib

    for table in (words.SAME, words.GROWING):
        for name, home in table.items():
            assert callable(getattr(importlib.import_module(home), name)), name
    for name in words.METHODS:
        assert callable(getattr(torch.Tensor, name)), name
    for name in words.DTYPES:
        assert isinstance(getattr(torch, name), torch.dtype)
    assert set(words.SAME).isdisjoint(words.GROWING)
    assert not any(name.endswith("_") or name.startswith("_") for name in words.METHODS)


def test_gradients_flow_twice() -> None:
    x = X.clone().requires_grad_()
    formula = compile_expression("softmax(x @ x.mT, -1).sum(0) * exp(x[:, 0])", ["x"])
    assert torch.autograd.gradgradcheck(lambda x: evaluate(formula, {"x": x}), (x,))


def test_made_tensors_follow_the_inputs() -> None:
    x = X.to(torch.float32)
    assert evaluate(compile_expression("x + ones(3)", ["x"]), {"x": x}).dtype == torch.float32
    assert evaluate(compile_expression("maximum(x, 0)", ["x"]), {"x": x}).dtype == torch.float32
    assert evaluate(compile_expression("ones(3)"), {}).dtype == torch.float64
    half = evaluate(compile_expression("ones(3)"), {}, dtype=torch.float16)
    assert half.dtype == torch.float16


def test_random_numbers_come_from_the_generator() -> None:
    formula = compile_expression("randn(2, 3) + rand_like(x) + bernoulli(0.5 * ones(3))", ["x"])

    def draw(seed: int) -> torch.Tensor:
        return evaluate(formula, {"x": X}, generator=torch.Generator().manual_seed(seed))

    state = torch.random.get_rng_state()
    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("x + ones(4)", 1, "`x + ones(4)` failed: RuntimeError: The size of tensor a"),
        ("1 + x @ x", 5, "`x @ x` failed"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("[1][5]", 1, "IndexError"),
        ("1 if x else 2", 6, "is neither true nor false"),
        ("x and x", 1, "is neither true nor false"),
        ("not x", 5, "is neither true nor false"),
        ("n.shape", 1, "`.shape` needs a tensor"),
        ("n.sum()", 1, "`.sum(…)` needs a tensor"),
        ("none + 1", 1, "TypeError"),
        ("x.values", 1, "no `.values`"),
        ("x.to('cuda')", 1, "is not a dtype"),
        ("randn(3, dtype='flot32')", 1, "is not a dtype"),
        ("randn(-1)", 1, "a size can't be negative"),
        ("randn(1.5)", 1, "a size must be an integer"),
        ("int('12')", 1, "takes a number, not a string"),
        ("list(x)", 1, "takes a list or tuple"),
        ("randint(5)", 1, "needs a size"),
    ],
)
def test_failures_point_at_the_part(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        evaluate(compile_expression(text, ENV), ENV)
    assert message in raised.value.message
    assert raised.value.column == column


def test_names_may_be_lazy() -> None:
    class Lazy(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            self[name] = 5
            return 5

    env = Lazy()
    assert evaluate(compile_expression("a if a else b", ["a", "b"]), env) == 5
    assert "b" not in env


B = torch.stack([X, -X, X * X])
ONES = torch.ones(2, dtype=torch.float64)
STATISTICS = {"x": B.mT, "w": W, "i": I, "m": ONES, "v": ONES}
F = torch.nn.functional
IMAGE = torch.arange(16.0, dtype=torch.float64).reshape(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("leaky_relu(x, 0.1)", F.leaky_relu(B.mT, 0.1)),
        ("normalize(x, 2, 1, 1e-3)", F.normalize(B.mT, 2, 1, 1e-3)),
        ("norm(x, 2, 1, True)", torch.norm(B.mT, 2, 1, True)),
        ("embedding(i, w, 0)", F.embedding(I, W, 0)),
        ("threshold(x, 0.5, 2.0)", F.threshold(B.mT, 0.5, 2.0)),
        ("batch_norm(x[:, :, 0], None, None, training=True)", None),
        ("batch_norm(x[:, :2], m, v, None, None, False)", F.batch_norm(B.mT[:, :2], ONES, ONES)),
        ("instance_norm(x)", F.instance_norm(B.mT)),
        ("quantile(x, 0.25, 1)", torch.quantile(B.mT, 0.25, 1)),
        ("x.quantile(tensor([0.5, 1.0]))", torch.quantile(B.mT, torch.tensor([0.5, 1.0]).double())),
        ("mvlgamma(x + 9, 2)", torch.mvlgamma(B.mT + 9, 2)),
        ("conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2))", torch.full((1, 1, 3, 3), 4.0).double()),
        ("tensordot(w, w, ([0], [0]))", W.mT @ W),
        ("tensordot(w, w)", (W * W).sum()),
        ("avg_pool2d(ones(1, 1, 4, 4), 2)", torch.ones(1, 1, 2, 2).double()),
        ("max_pool1d(w[None], 2)", F.max_pool1d(W[None], 2)),
        ("bilinear(w, w, ones(2, 3, 3))", F.bilinear(W, W, torch.ones(2, 3, 3).double())),
        ("cdist(w, w, 3.0)", torch.cdist(W, W, 3.0)),
        ("polygamma(1, w + 1)", torch.polygamma(1, W + 1)),
        ("cat([x, x], 1)", torch.cat([B.mT, B.mT], 1)),
        ("split(x, 1)[1]", B.mT[1:2]),
        ("split(x, [1, 2])[1]", B.mT[1:]),
        ("x.chunk(chunks=3)[2]", B.mT[2:]),
        ("round(2.567, 2)", 2.57),
        ("round(1234, -2)", 1200),
        ("zeros(0, 3).sum(0)", torch.zeros(3).double()),
        ("2 * x - x / 4 + 1j * x", B.mT * (1.75 + 1j)),
    ],
)  # fmt: skip
def test_limits_leave_ordinary_calls_alone(text: str, value: Any) -> None:
    result = evaluate(compile_expression(text, STATISTICS), STATISTICS)
    if value is None:
        value = F.batch_norm(B.mT[:, :, 0], None, None, training=True)
    if isinstance(value, torch.Tensor):
        torch.testing.assert_close(result, value)
    else:
        assert result == value


class Stop(Exception):
    pass


class _Stopping(torch.overrides.TorchFunctionMode):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.exp:
            raise self.error
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "error",
    [
        Stop("enough"),
        KeyboardInterrupt(),
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_errors_that_are_not_of_the_expression_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, _Stopping(error):
        evaluate(compile_expression("1 + x.exp()", ["x"]), {"x": X})
    assert raised.value is error


@pytest.mark.parametrize("text", ["x * x", "tanh(x) * sigmoid(x)", "(x.exp() @ x.mT).sum()"])
def test_formulas_can_be_recomputed(text: str) -> None:
    from torch.utils.checkpoint import checkpoint

    expression = compile_expression(text, ["x"])
    plain, recomputed = X.clone().requires_grad_(), X.clone().requires_grad_()
    evaluate(expression, {"x": plain}).sum().backward()
    made = checkpoint(lambda x: evaluate(expression, {"x": x}), recomputed, use_reentrant=False)
    made.sum().backward()
    torch.testing.assert_close(recomputed.grad, plain.grad)
