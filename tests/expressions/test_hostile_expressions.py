"""Texts that try to run code, to reach out, or to eat the machine: all refused, none executed."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlint.expressions import vocabulary as words
from gradlint.expressions.arguments import parse_arguments
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate, evaluate_arguments
from gradlint.expressions.limits import MAX_DEPTH, MAX_ELEMENTS, MAX_LENGTH, ExpressionError
from gradlint.expressions.vocabulary import FUNCTIONS, METHODS

#: Refused when compiled, whatever the names stand for.
ESCAPES = [
    "__import__('os')",
    "__import__('os').system('true')",
    "__builtins__",
    "x.__class__",
    "x.__class__.__mro__[1].__subclasses__()",
    "().__class__.__bases__[0]",
    "''.__class__",
    "x._backward_hooks",
    "x.grad_fn._saved_self",
    "x.grad_fn",
    "x.data_ptr()",
    "x.storage()",
    "x.untyped_storage()",
    "x.numpy()",
    "x.tolist()",
    "x.register_hook(1)",
    "x.backward()",
    "x.set_(x)",
    "x.zero_()",
    "x.requires_grad_()",
    "x.as_strided((9,), (1,))",
    "x.share_memory_()",
    "torch.load('f')",
    "torch.save(x, 'f')",
    "torch.hub",
    "torch.ops.load_library('f')",
    "torch.utils",
    "torch._C",
    "torch.classes",
    "torch.from_file('f')",
    "from_file('f')",
    "torch.empty(3)",
    "torch.seed()",
    "torch.set_default_dtype(float32)",
    "torch.nn.Module()",
    "torch.jit",
    "math.factorial(10)",
    "eval('1')",
    "exec('1')",
    "open('f')",
    "compile('1', 'f', 'eval')",
    "getattr(x, 'data')",
    "setattr(x, 'data', 1)",
    "globals()",
    "vars()",
    "type(x)",
    "print(1)",
    "input('x')",
    "breakpoint()",
    "help()",
    "exit()",
    "lambda: 1",
    "(lambda: 1)()",
    "[y for y in x]",
    "{y for y in x}",
    "{y: y for y in x}",
    "(y for y in x)",
    "(y := 1)",
    "f'{x}'",
    "f'{x.__class__}'",
    "'{0.__class__}'.format(x)",
    "'a'.join(['b'])",
    "b'a'",
    "relu(*x)",
    "relu(**x)",
    "[*x]",
    "{**x}",
    "{1, 2}",
    "await x",
    "yield x",
    "x if x",
    "not_there(x)",
    "x.__matmul__(x)",
    "getattr",
    "ｇｌｏｂａｌｓ()",
    "__ｉmport__('os')",
    "x.＿＿class＿＿",
    "x.\u200b__class__",
    "randn(3, _x=1)",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_escape_is_refused_when_compiled(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text, ["x"])


#: Giants that can be told from the text.
WRITTEN_GIANTS = [
    "9**9**9",
    "9**9**9**9",
    "x + 10**(10**10)",
    "2**(2**(2**30))",
    "1 << 10**9",
    "(2**100) * (2**100)",
    "'a' * 10**9",
    "10**9 * 'a'",
    "[0] * 10**9",
    "(0, 1) * 10**9",
    "[[0] * 60000] * 60000 * 60000",
    "[[[0] * 4096] * 4096] * 4096",
    "zeros(10**9)",
    "torch.ones(2**20, 2**20)",
    "randn((10**5, 10**5))",
    "rand(size=(10**10,))",
    "full((10**5, 10**6), 1.0)",
    "eye(10**6)",
    "arange(10**12)",
    "linspace(0, 1, 10**10)",
    "logspace(0, 1, 10**10)",
    "randperm(10**10)",
    "x.repeat(10**9)",
    "x.expand(10**9, 10**9)",
    "x.tile(10**5, 10**5)",
    "x.new_zeros(10**10)",
    "1" * 500,
    "1 + " + "9" * 3000,
]


@pytest.mark.parametrize("text", WRITTEN_GIANTS)
def test_giant_is_refused_when_compiled(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text, ["x"])


#: Giants that show only when values are known; ``x`` has 3 elements, ``n`` is 10**9.
COMPUTED_GIANTS = [
    "zeros(n)",
    "zeros(n, n)",
    "zeros([n])",
    "x.repeat(n)",
    "x.tile(n)",
    "x.expand(n, 3) + 1",
    "x.repeat_interleave(n)",
    "repeat_interleave(x, n)",
    "eye(n)",
    "arange(n)",
    "arange(0, 1, 1e-12)",
    "arange(0.0, 1.0 * n)",
    "linspace(0, 1, n)",
    "randperm(n)",
    "randint(0, 5, (n,))",
    "tril_indices(n, n)",
    "full((n,), 1.0)",
    "full_like(x.expand(n, 3), 1.0)",
    "zeros_like(x.expand(n, 3))",
    "one_hot(arange(3), n)",
    "pad(x, (n, 0))",
    "diag_embed(ones(9000))",
    "ones(20000).diag()",
    "outer(ones(10**5), ones(10**5))",
    "ones(10**5)[:, None] * ones(10**5)",
    "ones(10**5, 1) < ones(10**5)",
    "maximum(ones(10**5, 1), ones(10**5))",
    "where(ones(10**5, 1) > 0, ones(10**5), 0.0)",
    "ones(10**5, 1) @ ones(1, 10**5)",
    "matmul(ones(10**5, 1), ones(1, 10**5))",
    "einsum('i,j->ij', ones(10**5), ones(10**5))",
    "einsum('i,j,ij->', ones(10**5), ones(10**5), ones(1, 1))",
    "kron(ones(10**5), ones(10**5))",
    "cdist(ones(10**5, 1), ones(10**5, 1))",
    "tensordot(ones(10**5), ones(10**5), 0)",
    "meshgrid(ones(10**5), ones(10**5))",
    "block_diag(ones(9000, 1), ones(1, 9000))",
    "cat([ones(2**25)] * 3)",
    "stack([ones(2**25)] * 3)",
    "ones(2**26).split(1)",
    "ones(2**26).unbind()",
    "ones(2**20).chunk(2**20)",
    "ones(2**10, 2**14)[[0] * 60000]",
    "ones(2**13, 2**13)[arange(2**13).repeat(9)]",
    "ones(2**13, 2**13).index_select(0, arange(2**13).repeat(9))",
    "conv1d(ones(1, 1, 9), ones(1, 1, 3), padding=n)",
    "interpolate(ones(1, 1, 9), n)",
    "~(~ones(2**26, dtype=bool)) & ones(2**26, dtype=bool)",
    "[0] * n",
    "'a' * n",
    "[[[0] * n] * n] * n",
    "list(range(n))",
    "range(n)",
    "n ** n",
    "n ** 9 ** 9",
    "1 << n",
    "n * n * n * n * n * n",
    "pow(n, n)",
    "x.sum(n)",
    "x.unfold(0, n, 1)",
    "x.new_full((n,), 1.0)",
    "'%2000000000d' % tensor(1)",
    "'a' * tensor(4000000000)",
    "[0] * tensor(n)",
    "round(5, -n)",
    "round(5.0, n)",
    "cat(zeros(2**22))",
    "stack(zeros(2**22))",
    "pad(x, zeros(2**22))",
    "zeros(size=zeros(2**22))",
    "x.new_zeros(size=zeros(2**22))",
    "tensor([zeros(2**22)])",
    "zeros(0, int(8e8)).sum(0)",
    "zeros(0, 1).expand(0, n).sum(0)",
    "zeros(0).reshape(n, 0)",
    "mvlgamma(ones(2**20) + n, 400000)",
    "quantile(ones(2**10, 2**10), linspace(0, 1, 10**6), 0)",
    "ones(2**10, 2**10).quantile(linspace(0, 1, 10**6), 0)",
    "(ones(1).expand(2**26).contiguous(), ones(1).expand(2**26).contiguous())",
    "ones(2, 1).expand(2, 2**25).reshape(2**26) + ones(1).expand(2**26).flatten()",
    "conv2d(ones(1, 64, 512, 512), ones(1, 64, 31, 31), padding=15)",
    "conv_transpose2d(ones(1, 1, 512, 512), ones(1, 64, 31, 31))",
    "ones(2**11, 2**11) @ ones(2**11, 2**11)",
    "ones(2**9, 2**9) @ ones(2**9, 2**9)" + ", ones(2**9, 2**9) @ ones(2**9, 2**9)" * 32,
    "einsum('ij,jk->ik', ones(2**11, 2**11), ones(2**11, 2**11))",
    "tensordot(ones(2**11, 2**11), ones(2**11, 2**11), 1)",
    "svdvals(ones(2000, 2000))",
    "matrix_exp(ones(2000, 2000))",
    "solve(ones(2000, 2000), ones(2000))",
    "sum([[0]] * 60000)",
    "polygamma(2, ones(2**26))",
    "cdist(ones(2**13, 60), ones(2**13, 60), 3.5)",
    "avg_pool2d(ones(1, 1, 4096, 4096), 2049, 1)",
    "max_pool2d(ones(1, 1, 3000, 3000), 1501, 1)",
    "max_pool1d(ones(1, 1, 2**20), 2**19, 1)",
    "conv2d(ones(1, 8, 256, 256), ones(64, 8, 11, 11))",
    "bilinear(ones(300, 300), ones(300, 300), ones(300, 300, 300))",
    "ones(2**13, 2**13)[[arange(2**13).repeat(9)]]",
    "split(ones(2**16), [1] * 2**16)",
]


@pytest.mark.parametrize("text", COMPUTED_GIANTS)
def test_giant_is_refused_before_it_is_made(text: str) -> None:
    import torch

    x = torch.ones(3, dtype=torch.float64)
    expression = compile_expression(text, ["x", "n"])
    tracemalloc.start()
    try:
        with pytest.raises(ExpressionError):
            evaluate(expression, {"x": x, "n": 10**9})
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()


def test_the_largest_tensor_allowed_is_allowed() -> None:
    made = evaluate(compile_expression(f"ones({MAX_ELEMENTS}, dtype=bool)"), {})
    assert made.numel() == MAX_ELEMENTS
    with pytest.raises(ExpressionError, match=f"{MAX_ELEMENTS + 1:,} elements"):
        compile_expression(f"ones({MAX_ELEMENTS} + 1)")


@pytest.mark.parametrize(
    "text",
    [
        "-" * (MAX_LENGTH - 1) + "1",
        "~" * 3000 + "1",
        "not " * 900 + "1",
        "(" * 1900 + "1" + ")" * 1900,
        "[" * 190 + "]" * 190,
        "x" + ".mT" * 1000,
        "x" + "[0]" * 1000,
        "x" + "+x" * 1500,
        "x" + "**x" * 1000,
        "relu(" * 150 + "x" + ")" * 150,
        "x if x else " * 300 + "x",
        "x" * (MAX_LENGTH + 1),
    ],
)
def test_deep_and_long_texts_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text, ["x"])


def test_depth_that_is_allowed_evaluates() -> None:
    text = "-" * (MAX_DEPTH - 1) + "x"
    assert evaluate(compile_expression(text, ["x"]), {"x": 1}) == (-1) ** (MAX_DEPTH - 1)
    with pytest.raises(ExpressionError, match="levels deep"):
        compile_expression("-" + text, ["x"])


@pytest.mark.parametrize("text", ["'%s' % x", "'%d' % 3", "'%1000000000d' % 3"])
def test_no_string_formatting(text: str) -> None:
    with pytest.raises(ExpressionError, match="formatting"):
        evaluate(compile_expression(text, ["x"]), {"x": 1})


def test_values_are_not_reached_into() -> None:
    class Secret:
        shape = "secret"
        real = "secret"

        def sum(self) -> str:
            return "secret"

    for text in ("x.shape", "x.real", "x.sum()", "x[0]"):
        with pytest.raises(ExpressionError):
            evaluate(compile_expression(text, ["x"]), {"x": Secret()})


def test_dict_and_string_methods_are_not_there() -> None:
    for text in ("x.values", "x.indices", "x.T"):
        with pytest.raises(ExpressionError):
            evaluate(compile_expression(text, ["x"]), {"x": {"a": 1}})


#: Calls that would write to what they are given.
WRITING = [
    ("leaky_relu(x, 0.1, True)", 20, "argument number 3 of `leaky_relu`"),
    ("F.elu(x, 1.0, True)", 15, "argument number 3 of `elu`"),
    ("relu6(x, True)", 10, "argument number 2 of `relu6`"),
    ("threshold(x, 0.1, 0.0, True)", 24, "argument number 4 of `threshold`"),
    ("normalize(x, 2, 1, 1e-12, x)", 27, "argument number 5 of `normalize`"),
    ("norm(x, 2, 1, False, x)", 22, "argument number 5 of `norm`"),
    ("tensordot(x, x, 2, x)", 20, "argument number 4 of `tensordot`"),
    ("embedding(i, x, None, 0.1)", 23, "argument number 4 of `embedding`"),
    ("embedding(i, x, max_norm=0.1)", 17, "unknown keyword argument `max_norm`"),
    ("silu(x, inplace=True)", 9, "unknown keyword argument `inplace`"),
    ("batch_norm(x, m, v, training=True)", 1, "it would write to running_mean"),
    ("batch_norm(x, m, v, None, None, True)", 1, "it would write to running_mean"),
    ("batch_norm(x, None, v, training=1)", 1, "it would write to running_mean"),
    ("instance_norm(x[None], m, v)", 1, "it would write to running_mean"),
]


@pytest.mark.parametrize(("text", "column", "message"), WRITING)
def test_no_call_writes_to_its_arguments(text: str, column: int, message: str) -> None:
    import torch

    env = {
        "x": torch.rand(4, 3, dtype=torch.float64),
        "i": torch.tensor([0, 2]),
        "m": torch.zeros(3, dtype=torch.float64),
        "v": torch.ones(3, dtype=torch.float64),
    }
    kept = {name: value.clone() for name, value in env.items()}
    with pytest.raises(ExpressionError) as raised:
        evaluate(compile_expression(text, env), env)
    assert message in raised.value.message
    assert raised.value.column == column
    for name, value in env.items():
        assert torch.equal(value, kept[name])


def test_an_input_that_was_written_to_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    allowed = ("input", "negative_slope", "inplace")
    monkeypatch.setitem(words.PARAMETERS, "leaky_relu", allowed)
    x = torch.ones(3, dtype=torch.float64)
    for env in ({"x": x}, {"x": [x, 2]}):
        text = "leaky_relu(x, 0.1, True)" if env["x"] is x else "leaky_relu(x[0], 0.1, True)"
        with pytest.raises(ExpressionError, match="the formula writes to its input `x`"):
            evaluate(compile_expression(text, env), env)
    # What the formula made itself is its own.
    made = evaluate(compile_expression("leaky_relu(x - 3, 0.5, True)", ["x"]), {"x": x})
    assert made.tolist() == [-1.0, -1.0, -1.0]


def _check(error: ExpressionError, text: str) -> None:
    assert 1 <= error.column <= len(text) + 1
    assert "\n" not in error.message


_WORDS = st.sampled_from(
    sorted(FUNCTIONS)
    + [f".{name}" for name in METHODS]
    + ["x", "y", "(", ")", "[", "]", ",", "+", "-", "*", "**", "/", "@", "//", "%", "<<", ">>"]
    + ["<", "==", " if ", " else ", " and ", " or ", "not ", "~", "&", "|", ":", "=", "'a'"]
    + ["0", "1", "2", "3", "1e3", "-1", "None", "True", "dim=", "dtype=", "float32", "{", "}"]
    + ["__class__", "lambda ", "import ", ";", "\n", "\t", "#", "\\", '"', "é", "\x00", "."]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORDS, max_size=14).map("".join) | st.text(max_size=60))
def test_random_text_either_evaluates_or_is_refused(text: str) -> None:
    import torch

    env = {"x": torch.ones(2, 2, dtype=torch.float64), "y": 3}
    for run in (
        lambda: evaluate(compile_expression(text, env), env),
        lambda: evaluate_arguments(parse_arguments(text), 0),
    ):
        try:
            run()
        except ExpressionError as error:
            _check(error, text)


_SMALL = st.integers(-3, 12)
_LEAVES = st.one_of(
    _SMALL.map(str), st.just("x"), st.just("y"), st.just("randn(2, 2)"), st.just("(2, 3)")
)


def _calls(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = sorted(FUNCTIONS)
    methods = sorted(METHODS)
    arguments = st.lists(parts, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(st.sampled_from(names), arguments).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(parts, st.sampled_from(methods), arguments).map(
            lambda p: f"({p[0]}).{p[1]}({p[2]})"
        ),
        st.tuples(parts, st.sampled_from(["+", "-", "*", "@", "/", "**", "<"]), parts).map(
            lambda p: f"({p[0]}) {p[1]} ({p[2]})"
        ),
    )


@settings(max_examples=400, deadline=None)
@given(st.recursive(_LEAVES, _calls, max_leaves=6))
def test_random_calls_either_evaluate_or_are_refused(text: str) -> None:
    import torch

    env = {"x": torch.ones(2, 2, dtype=torch.float64), "y": 3}
    try:
        evaluate(compile_expression(text, env), env)
    except ExpressionError as error:
        _check(error, text)
    torch.testing.assert_close(env["x"], torch.ones(2, 2, dtype=torch.float64))
