"""Texts that are nearly expressions, specs, settings and events: one grammar, drawn in two ways.

Every function here writes a text by the choices of a ``random.Random``. A long run gives them one
that is seeded and cheap. Hypothesis gives them one of its own (``st.randoms``), whose choices it
remembers and makes smaller where it finds a fault; so the first of several choices is the plainest.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from random import Random

import msgspec
import torch

from gradlint.expressions.vocabulary import (
    ATTRIBUTES,
    BUILTINS,
    CONSTANTS,
    DTYPES,
    FACTORIES,
    FUNCTIONS,
    KEYWORDS,
    MATH,
    METHODS,
    PARAMETERS,
    PREFIXES,
)
from gradlint.model.events import Begin, CheckDone, Found, Note, Skip
from gradlint.model.report import Check, Finding
from gradlint.spec._domains import NAMES
from gradlint.spec._model import Case, Extension, Ignore, Input, OpSpec

_FUNCTIONS = sorted(FUNCTIONS)
_METHODS = sorted(METHODS)
_ATTRIBUTES = sorted(ATTRIBUTES)
_KEYWORDS = sorted(KEYWORDS)
_MATH = sorted(MATH)

#: Numbers at which something ends: limits, widths of integers, floating formats.
NUMBERS = [
    *("0", "1", "2", "3", "-1", "-2", "7", "64", "65", "127", "4095", "2**12", "2**16", "65537"),
    *("2**18", "2**18+1", "2**26", "10**5", "10**9", "-10**9", "2**31", "2**63", "-2**63", "2**64"),
    *("10**38", "1e308", "1e-320", "0.5", "-0.0", "1e400", "nan", "inf", "-inf", "1j", "True"),
    *("int(8e8)", "400000", "16384"),
]
_NAMES = ["x", "y", "b", "i", "m", "k", "n", "s", "none", "parts"]
_ODD = [
    *("randn(2, 3)", "zeros(0, 2**16)", "ones(2**17)", "ones(2**9, 2**9)", "tensor(3)", "[]", "()"),
    *("ones(1).expand(2**18)", "zeros(2**14)", "tensor(4000000000)", "eye(300)", "{}", "''", "..."),
    *("linspace(0, 1, 2**12)", "arange(2**12)", "ones(1, 2, 64, 64)", "[0] * 60000", "'a' * 60000"),
    *("[[0] * 250] * 250", "[x] * 500", "'ij,jk->ik'", "'%2000000000d'", "'sum'", "'constant'"),
    *("float32", "'complex128'", "x.shape", "(2, 3)", "(2**9, 2**9)", "[1, 1]", "None", "True"),
    *("False", "1:", "::2"),
]
_PLAIN_NAMES = sorted({*CONSTANTS, *DTYPES})
_OPERATORS = [
    *("+", "-", "*", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^", "<", "<=", "=="),
    *("!=", ">", "is", "is not", "in", "not in", "and", "or"),
]
_PREFIXES = ["", "", "", *(f"{name}." for name in sorted(PREFIXES))]

# -- right arguments -------------------------------------------------------------------------------

#: Tensors whose shapes broadcast together, as most functions want them.
_TENSORS = [
    *("x", "x", "y", "x", "randn(2, 3)", "parts[0]", "ones(2, 1)", "rand(3)", "tensor(3.0)"),
    *("x.float()", "x + 0j", "m", "x[:, :1]", "tensor([1.5, -2, 0])", "x.abs()"),
]
#: Tensors that are unusual: empty, of other dtypes and layouts, large, without memory of their own.
_UNUSUAL_TENSORS = [
    *("b", "i", "x > 0.5", "randn(0)", "zeros(0, 2**16)", "eye(300)", "ones(2**9, 2**9)"),
    *("ones(1).expand(2**18)", "arange(2**12)", "linspace(0, 1, 2**12)", "ones(1, 2, 64, 64)"),
    *("x.half()", "x.bfloat16()", "x.int()", "x.to_sparse()", "m.bool()", "x.mT", "x[..., None]"),
    *("x.to('complex64').conj()", "ones(2**17)", "tensor(nan)", "x / 0", "x.expand(4, 2, 3)"),
]
#: The kind or the name of an argument → what it may be given; names come first.
_RIGHT: dict[str, list[str]] = {
    **{key: ["0", "-1", "1", "-2", "k - 2"] for key in ("dim", "dim0", "dim1", "dim2")},
    **{key: ["(0,)", "(0, 1)", "[-1]", "(-1, 0)"] for key in ("dims", "shifts")},
    **{key: ["(2, 3)", "[3, 2]", "(6,)", "(-1,)", "(1, 2, 3)"] for key in ("size", "shape")},
    **{key: ["i", "m.long()", "arange(2)", "tensor([[0, 1]])"] for key in ("index", "indices")},
    **{key: ["0", "-1", "x"] for key in ("source", "destination")},
    **{key: ["m", "x > 0.5"] for key in ("mask", "condition")},
    **{key: ["1", "2", "0", "k"] for key in ("k", "chunks", "diagonal", "offset", "split_size")},
    "target": ["x", "i", "m.double()"],
    "normalized_shape": ["(3,)", "[2, 3]"],
    "repeats": ["(2, 1)", "[2, 2, 1]", "2", "(1, 1)"],
    "rounding_mode": ["'floor'", "'trunc'", "None"],
    "reduction": ["'mean'", "'sum'", "'none'"],
    "interpolation": ["'linear'", "'lower'", "'nearest'"],
    "approximate": ["'tanh'", "'none'"],
    "dtype": ["float64", "float32", "torch.int64", "'bool'", "complex128"],
    "eps": ["1e-5", "1e-12", "0.1"],
    "p": ["2", "1", "0.5", "3"],
    "ord": ["2", "1", "inf", "'fro'"],
    "q": ["0.5", "tensor([0.1, 0.9])"],
    "bool": ["True", "False"],
    "int": ["1", "2", "0", "-1", "k", "x.shape[0]", "len(parts)"],
    "float": ["0.5", "2.0", "1e-5", "pi", "-1.5", "k / 2"],
    "number": ["2", "0.5", "1", "-1.5", "k", "x.ndim", "inf"],
    "str": ["'mean'", "'sum'", "s", "'linear'", "'constant'"],
    "List[int]": ["(0, 1)", "[0]", "(2, 3)", "[1, 2]", "x.shape"],
    "List[float]": ["[0.5]", "[1.0, 2.0]"],
    "List[Tensor]": ["parts", "[x, x]", "(x, parts[0])", "[x]"],
}
#: Calls whose arguments must fit each other: functions of certain ranks and shapes.
_FITTING = """
adaptive_avg_pool1d(b[0], 2) adaptive_avg_pool2d(b, (2, 2)) addbmm(eye(4), b[0], b[0])
addmm(eye(2), x, x.mT) addmv(ones(2), x, y) addr(x, ones(2), y) avg_pool1d(b[0], 2)
avg_pool2d(b, 2) avg_pool3d(b, 2) baddbmm(b[0], b[0], b[0]) batch_norm(b,none,none,training=True)
bilinear(x, x, randn(4, 3, 3)) binary_cross_entropy(x, m.double()) block_diag(x, y)
bmm(b[0], b[0]) broadcast_to(y, (2, 3)) bucketize(x, y.sort().values) cat(parts) cat([x, x], dim=1)
cdist(x, x) cholesky(eye(3) + 1) concat([x, x]) conv1d(b[0], randn(3, 4, 2))
conv2d(b, randn(3, 2, 2, 2)) conv2d(b, randn(2, 1, 2, 2), None, 1, 1, 1, 2)
conv3d(b[None], randn(1, 1, 1, 1, 1)) conv3d(b, randn(1, 1, 2, 2, 2))
conv_transpose1d(b[0], randn(4, 3, 2)) conv_transpose2d(b, randn(2, 3, 2, 2), stride=2)
conv_transpose3d(b, randn(1, 1, 2, 2, 2)) cosine_similarity(x, y) cross(x, x)
cross_entropy(x, i) det(b) diag(y) diag_embed(x) diagflat(x) dot(y, y) eigvalsh(b)
einsum('ij->ji', x) einsum('ij,kj->ik', x, x) einsum('...j,j', x, y) embedding(i, x)
expand_copy(y, (2, 3)) fold(ones(1, 8, 4), (3, 3), 2) gather(x, 1, m.long()) glu(x[:, :2])
group_norm(b, 2) hstack(parts) hstack([y, y]) index_add(x, 0, i, x) index_fill(x, 0, i, 1.5)
index_select(x, 0, i) inner(x, y) instance_norm(b) interpolate(b, scale_factor=2)
interpolate(b, size=(3, 3), mode='bilinear', align_corners=True) inv(eye(3) * 2) kl_div(x, x)
kron(x, eye(2)) kthvalue(x, 2) layer_norm(x, (3,)) layer_norm(x, [3], y, y) linear(x, x)
linear(x, x, ones(2)) masked_fill(x, m, 0.0) masked_select(x, m) matmul(x, x.mT) matmul(b, b)
matrix_exp(b) matrix_norm(x) max_pool1d(b[0], 2) max_pool2d(b, 2, padding=1) max_pool3d(b, 2)
meshgrid(y, y) mm(x, x.mT) movedim(b, 0, -1) mv(x, y) mvlgamma(x + 5, 2) narrow(x, 1, 0, 2)
nll_loss(x, i) normalize(x) one_hot(i, 4) outer(y, y) pad(x, (1, 1)) pad(b, (1,1,1,1), 'reflect')
pairwise_distance(x, x) permute(x, (1, 0)) pixel_shuffle(ones(1, 4, 2, 2), 2)
pixel_unshuffle(b, 2) polar(x, x) polygamma(1, x) pow(x, 2) quantile(x, 0.5, dim=1)
quantile(x, tensor([0.2, 0.8])) repeat_interleave(x, 2, dim=0) reshape(x, (3, 2)) rms_norm(x, (3,))
roll(x, 1) rot90(x) scaled_dot_product_attention(b, b, b)
scaled_dot_product_attention(x, x, x, is_causal=True) scatter(x, 1, m.long(), x)
scatter_add(x, 1, m.long(), x) searchsorted(y.sort().values, x) select(x, 1, 0) slogdet(b)
solve(b, b) solve_triangular(eye(4), b, upper=True) split(x, 1) split(x, [1, 2], 1) stack(parts)
std_mean(x) sum(parts) sum(x, dim=(0, 1)) svdvals(x) swapaxes(x, 0, 1) t(x) take(x, i)
take_along_dim(x, m.long(), 1) tensordot(x, x, 2) tensordot(x, x, ([1], [1])) threshold(x, 0.5, 0)
tile(x, (2, 2)) topk(x, 2) trace(b[0, 0]) transpose(x, 0, 1) tril(x) unbind(x, 1)
unflatten(x, 1, (3, 1)) unfold(b, 2) unsqueeze(x, 0) var_mean(x) vdot(y, y)
view_as_complex(x[:, :2].contiguous()) view_as_real(x + 0j) vstack(parts) where(m, x, 0.0)
arange(6) arange(0, 1, 0.25) bernoulli(x) eye(3) eye(2, 3) full((2, 3), 0.5) full_like(x, 2)
linspace(0, 1, 5) logspace(0, 1, 5) ones(2, 3) ones_like(x) rand(2, 3) rand_like(x)
randint(0, 5, (2, 3)) randint(3, (3,)) randn(2, 3) randn(3, requires_grad=True) randn_like(x)
randperm(3) tensor([[1, 2.5], [3, k]]) tensor(x) tril_indices(3, 3) triu_indices(3, 3, 1)
zeros(2, 3) zeros((3,), dtype=float32) zeros_like(m)
bool(k) float(k) int(2.5) len(parts) list((1, 2)) range(3) tuple([1]) range(0, 6, 2)
x.addmm(x, eye(3)) x.addmv(x, y) b[0].baddbmm(b[0], b[0]) b[0].bmm(b[0]) y.diag()
x.expand(4, 2, 3) y.expand_as(x) x.gather(1, m.long()) x.index_add(0, i, x) x.sum(0)
x.index_select(0, i) x.inner(y) x.item() x.sum().item() x.kron(x) x.matmul(x.mT) x.mm(x.mT)
x.masked_fill(m, 0.0) x.movedim(0, 1) x.mv(y) x.new_full((2,), 1.5) x.new_ones(2, 3)
x.new_zeros((3,)) x.outer(y) y.outer(y) x.permute(1, 0) x.quantile(0.5) x.repeat(2, 1)
x.repeat_interleave(2) x.reshape(-1) x.reshape_as(parts[0]) x.scatter(1, m.long(), x)
x.scatter_add(1, m.long(), x) x.select(0, 1) x.size(0) x.split(1) x.square() x.sum_to_size(1, 3)
x.t() x.take(i) x.tile(2, 1) x.to(float32) x.to(y) x.topk(2) x.to_sparse().to_dense()
x.to_sparse().coalesce() x.to_sparse_csr() x.transpose(0, 1) x.type_as(y) x.unbind()
x.unflatten(0, (1, 2)) x.unfold(1, 2, 1) x.unsqueeze(-1) x.view(3, 2) x.view_as(parts[0])
x.max(1).values x.min(0).indices x.sort().indices x.shape x.ndim x.dtype x.T x.H x.mH
(x+1j).imag (x+1j).real x.narrow(1, 0, 2) x.swapaxes(0, 1) x.cumsum(-1) x.softmax(-1)
b[..., i] b[0, :, i] b[None, i, 1:] einsum('ij,kj->ik', [x, x]) pow(2, 3) inverse(eye(2) * 2)
gcd(i, i + 2) arange(start=0, end=3) arange(2, end=6, step=2) randint(low=0, high=3, size=(2,))
one_hot(i) tensor([1j, 2]) tensor([x, y]) sum([[1], [2]]) sum(1, 2) pad(x, x)
meshgrid(y, i, indexing='ij')
where(x > 0.5) round(2.567, 2) max(1, 2) min((3, k)) x.flatten() x.double().mT.contiguous()
(1 if k else 2) (x if k > 2 else y) (k < 4 < 5) (x < y < 1) ('a' + 'b') ([1, 2] + [3])
(1, 2)[0] {'a': 1}['a'] s[0]
x.log_softmax(1) x.norm(dim=1,keepdim=True) x.logsumexp(1) x.flatten(0, 1) x.squeeze(0)
"""


def _separate(text: str) -> list[str]:
    """The calls in ``text``: a blank outside of brackets parts them."""
    made, depth = [""], 0
    for character in " ".join(text.split()):
        depth += (character in "([") - (character in ")]")
        if character == " " and depth == 0:
            made.append("")
        else:
            made[-1] += character
    return made


_FITTING_CALLS = _separate(_FITTING)
#: One argument of a function: its name, its kind, whether it may be missing, whether by name only.
_Argument = tuple[str, str, bool, bool]


def _signatures(name: str) -> list[list[_Argument]]:
    """The ways to call ``name`` that torch knows, without arguments that it would write to."""
    made = []
    for home in ("", "linalg_", "special_"):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{home}{name}"):
            if "out" in schema.overload_name or str(schema).partition("(")[2][:6] != "Tensor":
                continue
            arguments = []
            for position, argument in enumerate(schema.arguments):
                kind = str(argument.type)
                optional = argument.has_default_value() or kind.startswith("Optional")
                kind = kind.removeprefix("Optional[").removesuffix("]" * kind.startswith("Opt"))
                if position and argument.name not in KEYWORDS and (argument.kwarg_only or optional):
                    continue
                arguments.append((argument.name, kind, optional, argument.kwarg_only))
            made.append(arguments)
    return made


#: Name → its signatures: of torch, and of what torch writes in Python.
_SIGNATURES: dict[str, list[list[_Argument]]] = {
    name: _signatures(name)
    or [[(word, "Tensor", False, False) for word in PARAMETERS.get(name, ("input",))[:1]]]
    for name in sorted((FUNCTIONS | set(METHODS)) - FACTORIES - BUILTINS)
}
_CALLED = sorted(FUNCTIONS & set(_SIGNATURES))
_CALLED_METHODS = sorted(set(METHODS) & set(_SIGNATURES))


class _Writer:
    """Writes one expression.

    Args:
        random: the choices.
        wrong: the share of arguments that are anything instead of what would be right.
        deepest: at this depth, an expression has no further parts.
    """

    def __init__(self, random: Random, wrong: float, deepest: int) -> None:
        self.random = random
        self.choice = random.choice
        self.wrong = wrong
        self.deepest = deepest

    def some(self, share: float) -> bool:
        """True in ``share`` of all cases, and never where the choices are the smallest."""
        return self.random.random() > 1 - share

    # What is right, but where something wrong is wanted.

    def tensor(self, depth: int) -> str:
        if self.some(self.wrong):
            return self.anything(depth)
        if depth >= self.deepest or self.some(0.3):
            return self.choice(_UNUSUAL_TENSORS if self.some(0.08) else _TENSORS)
        which = self.random.randrange(20)
        if which < 5:
            return self.choice(_FITTING_CALLS)
        if which < 9:
            return self.call(depth)
        if which < 12:
            return self.method(depth)
        if which < 15:
            operator = self.choice(_OPERATORS[:-8] if self.some(0.3) else _OPERATORS[:5])
            return f"({self.tensor(depth + 1)}) {operator} ({self.tensor(depth + 1)})"
        if which == 15:
            return (
                f"({self.tensor(depth + 1)}) {self.choice(_OPERATORS)} ({self.number(depth + 1)})"
            )
        if which == 16:
            return f"{self.choice(['-', '~', '+', '-'])}({self.tensor(depth + 1)})"
        if which == 17:
            index = self.choice(["0", "-1", "...", ":1", "::2", ":, 0", "m", "i", "None", "[0, 1]"])
            return f"({self.tensor(depth + 1)})[{index}]"
        if which == 18:
            return f"({self.tensor(depth + 1)}).{self.choice(_ATTRIBUTES)}"
        condition = self.choice(["k > 2", "x.ndim == 2", "s == 'mean'", "none is None", "not k"])
        return f"({self.tensor(depth + 1)} if {condition} else {self.tensor(depth + 1)})"

    def number(self, depth: int) -> str:
        if self.some(self.wrong):
            return self.anything(depth)
        which = self.random.randrange(8) if depth < self.deepest else 0
        if which < 4:
            return self.choice(_RIGHT["number"])
        if which == 4:
            left, operator = self.number(depth + 1), self.choice(_OPERATORS[:11])
            return f"({left}) {operator} ({self.number(depth + 1)})"
        if which == 5:
            return f"{self.choice(_MATH)}({self.number(depth + 1)})"
        if which == 6:
            return self.choice(NUMBERS)
        return self.choice(["x.shape[-1]", "len(parts)", "x.sum().item()", "x.numel()", "int(2.5)"])

    def call(self, depth: int) -> str:
        name = self.choice(_CALLED)
        arguments = self.arguments(self.choice(_SIGNATURES[name]), depth)
        return f"{self.choice(_PREFIXES)}{name}({', '.join(arguments)})"

    def method(self, depth: int) -> str:
        name = self.choice(_CALLED_METHODS)
        first, *arguments = self.arguments(self.choice(_SIGNATURES[name]), depth) or ["x"]
        return f"({first}).{name}({', '.join(arguments)})"

    def arguments(self, signature: Sequence[_Argument], depth: int) -> list[str]:
        made: list[str] = []
        named = False
        for name, kind, optional, by_name in signature:
            if optional and not self.some(0.3):
                named = True  # what follows one that is left out is given by name
                continue
            value = self.argument(name, kind, depth + 1)
            if by_name or (named and name in KEYWORDS):
                value = f"{name}={value}"
            elif named:
                continue
            made.append(value)
        if self.some(self.wrong / 2):
            made.append(f"{self.choice(_KEYWORDS)}={self.anything(depth + 1)}")
        return made

    def argument(self, name: str, kind: str, depth: int) -> str:
        if self.some(self.wrong):
            return self.anything(depth)
        if kind == "Tensor" and name not in ("index", "indices", "mask", "condition", "target"):
            return self.tensor(depth)
        if name in _RIGHT and not (kind == "bool" or (kind == "List[int]" and name == "dim")):
            return self.choice(_RIGHT[name])
        if kind == "number":
            return self.number(depth)
        return self.choice(_RIGHT.get(kind, _RIGHT["number"]))

    # What is not sure of anything but that it can be read.

    def anything(self, depth: int) -> str:
        which = self.random.randrange(20) if depth < self.deepest else 0
        if which < 5:
            return self.atom()
        if which < 9:
            prefix, name = self.choice(_PREFIXES), self.choice(_FUNCTIONS)
            return f"{prefix}{name}({self.anythings(depth)})"
        if which < 12:
            return f"({self.tensor(depth + 1)}).{self.choice(_METHODS)}({self.anythings(depth)})"
        one, other = self.anything(depth + 1), self.anything(depth + 1)
        if which < 14:
            return f"({one}) {self.choice(_OPERATORS)} ({other})"
        return (
            f"({one}).{self.choice(_ATTRIBUTES)}",
            f"({one})[{other}]",
            f"{self.choice(['-', '~', 'not ', '+'])}({one})",
            f"[{one}, {other}]",
            f"({one},)",
            f"{{{one}: {other}}}",
        )[which - 14]

    def anythings(self, depth: int) -> str:
        words = [self.anything(depth + 1) for _ in range(self.random.randrange(4))]
        if self.some(0.25):
            words.append(f"{self.choice(_KEYWORDS)}={self.anything(depth + 1)}")
        return ", ".join(words)

    def atom(self) -> str:
        which = self.random.randrange(6)
        if which < 4:
            return self.choice((NUMBERS, _NAMES, _ODD, _PLAIN_NAMES)[which])
        if which == 4:
            return str(_integer(self.random))
        return str(struct.unpack("f", struct.pack("I", self.random.getrandbits(32)))[0])


def _integer(random: Random) -> int:
    return random.choice((1, -1)) * random.getrandbits(random.choice((4, 8, 33, 65, 130)))


def _written(random: Random) -> str:
    """An expression that can be read; how much of it is wrong differs."""
    wrong = random.choice((0.0, 0.0, 0.02, 0.1, 0.5))
    writer = _Writer(random, wrong, random.choice((1, 2, 2, 3, 4, 6)))
    which = random.randrange(10)
    if which < 8:
        return writer.tensor(0)
    if which == 8:
        return writer.number(0)
    return f"({writer.tensor(0)}, {writer.number(0)})"


def _any_text(random: Random, longest: int) -> str:
    """Characters of all kinds, lone surrogates among them."""
    ends = (0x7F, 0x7F, 0x100, 0x3000, 0x10FFFF)
    length = random.randrange(longest + 1)
    return "".join(chr(random.randrange(random.choice(ends))) for _ in range(length))


#: What only looks like an expression: words in any order, and attempts to reach out.
_WORDS = [
    *_FUNCTIONS,
    *(f".{name}" for name in _METHODS),
    *NUMBERS * 4,
    *("x", "y", "(", ")", "[", "]", "{", "}", ",", ":", "=", ".", "*", "**", "'", '"') * 8,
    *(" if ", " else ", " for ", " in ", "lambda ", "await ", "yield ", ":=", "#", "\\") * 4,
    *("__class__", "__import__", "_C", ".grad_fn", ".data", ".storage()", "f'{x}'", "b'a'") * 4,
    *("\n", "\t", "\x00", "\x0c", "é", "ｘ", "\u2028", "\ud800", "🙂", "\u200b") * 4,
]


def _words(random: Random) -> str:
    return "".join(random.choice(_WORDS) for _ in range(random.randrange(17)))


def _cut(random: Random, text: str, put: str, longest: int) -> str:
    """``text`` with something cut out or put in."""
    start = random.randrange(len(text) + 1)
    end = min(len(text), start + random.randrange(longest + 1))
    return text[:start] + put + text[end:]


def _deep(random: Random) -> str:
    """An expression nested about as deeply, or about as long, as may be."""
    before, after = random.choice(
        [
            *(("-", ""), ("abs(", ")"), ("(", ")"), ("[", "]"), ("(", ",)"), ("x if x else ", "")),
            *(
                ("", ".mT"),
                ("", "[0]"),
                ("", ".abs()"),
                ("x + ", ""),
                ("x * (", ")"),
                ("{1: ", "}"),
            ),
            *(("not ", ""), ("", " < x"), ("sum([", "])"), ("2**", ""), ("x[", "]"), ("x @ ", "")),
        ]
    )
    depth = random.choice((3, 30, 97, 98, 99, 100, 101, 199, 200, 201, 1000))
    return before * depth + _written(random) + after * depth


def expression(random: Random) -> str:
    """An expression, or what only looks like one."""
    which = random.randrange(40)
    if which < 32:
        return _written(random)
    if which < 36:
        return _cut(random, _written(random), _words(random), 6)
    if which < 38:
        return _words(random)
    return _deep(random) if which == 38 else _any_text(random, 60)


# -- specs -----------------------------------------------------------------------------------------

_KEYS = sorted(
    {
        field.alias or name
        for model in (OpSpec, Input, Case, Extension, Ignore)
        for name, field in model.model_fields.items()
    }
)
_FORMULAS = [
    *("x * x", "x @ w.mT", "sum(x)", "(x, w)", "x.sum(-1) * 2", "where(x > 0, x, 0.0)", "x"),
    *("softmax(x, -1)", "x.mean() + w.sum()", "x if w is None else x.sum() + w.sum()", "y", "N"),
]
_GRADIENTS = ["grad_output * x", "grad_output", "2 * x * grad_output", "output", "x", "w"]
_SCALARS = [
    *("N", "K", "2*N", "N//0", "N**9", "-N", "x", "w", "1", "0", "-1", "3", "2.5", "true", "a:b"),
    *("false", "null", "yes", "''", "1e-6", ".inf", ".nan", "0x" + "f" * 40, "9" * 30, "{}", "[]"),
    *("2024-01-01", "*a", "&a x", "!!python/object x", "!x y", "[0, 1]", "(0, inf]", "[1, 26]"),
    *("GL503", "GL999", "float32", "coo", "csr", "cuda", "torch.int64", "9223372036854775807"),
    *("100000000000000000000", "1e308", "-1e308", "65536", *(f"'{name}'" for name in NAMES)),
    *("'[1e308, 1.7e308]'", "'[-1, 1]'", "'(0, 1e-300)'", "'[5, 3]'"),
]
_INTERVALS = ["'[-1, 1]'", "'(0, 2]'", "[2, 3.5]", "'(1, inf)'", "'[-5, -1e-300)'", "'[0, 1e300]'"]
#: What an input has beside its shape, for each kind of values that it may hold.
_FILLINGS = [
    *("", "", "", "", ", value: 1.5", ", values: [1, 2, 3.5]", ", range: [0, 5]", ", bool: true"),
    *(", complex: true", ", sparse: coo", ", dtype: float32", ", range: [0, K], dtype: int32"),
    *(", requires_grad: false", ", dtype: int64, value: 2", ", dtype: bool", ", value: 0"),
    *(f", domain: {name}" for name in NAMES),
    *(f", domain: {interval}" for interval in _INTERVALS),
]
_DIMS = ["3", "1", "[1, 4, 33]", "2", "[2, 2]", "0", "[4, 1]", "[3, 0, 5]"]
_ODD_DIMS = ["65536", "-1", "[]", "x", "2.5", "[1, x]", "'3'", "true", "9" * 30]
_SIZES = ["N", "K", "3", "2*N", "1", "N+K", "'N // 2'", "'max(N, K)'", "0"]
_ODD_SIZES = ["-1", "2**16", "64", "N**9", "N//0", "2.5", "Q", "x", "''", "[N]", "null"]
#: Whole lines that a right spec may have.
_LINES = [
    *("dtypes: [float64, float32]", "devices: [cpu]", "order: 1", "seed: 7", "stochastic: false"),
    *("once_differentiable: true", "description: 'what it is'", "name: an_op", "dtypes: [float16]"),
    *("ignore: [{code: GL503, reason: known}]", "surrogate: {x: 'grad_output'}", "order: 2"),
    *(
        "cases: [{label: a, dims: {N: 2}}, {dims: {K: 5}}]",
        "cases: [{omit: w}]",
        "let: {v: 'x + 1'}",
    ),
    *(
        "cases: [{inputs: {w: null}}]",
        "extension: {sources: [a.cpp], name: a}",
        "let: {v: 'x', u: 'v * 2'}",
        "seed: 0",
        "import: math",
    ),
    *("cases: [{label: b, inputs: {x: {shape: [2, N]}}}]", "let: {Q: 'x'}"),
]
_CUTS = [
    *(
        "",
        "\n",
        "  ",
        "\t",
        ":",
        "- ",
        "{",
        "]",
        '"',
        "'",
        "&a ",
        "*a",
        "!!x ",
        "#",
        "---\n",
        "\x00",
    ),
    *("\x85", "é", "? ", "\ufeff", "\u2028", "%YAML 1.1\n", "<<: ", "|\n", ">-\n"),
]


class _SpecWriter:
    """Writes one spec; ``wrong`` is the share of its values that are anything."""

    def __init__(self, random: Random, wrong: float) -> None:
        self.random = random
        self.choice = random.choice
        self.wrong = wrong

    def some(self, share: float) -> bool:
        return self.random.random() > 1 - share

    def formula(self, known: Sequence[str] = _FORMULAS) -> str:
        text = _written(self.random) if self.some(0.08 + self.wrong) else self.choice(known)
        return "'" + text.replace("'", "''").replace("\n", " ") + "'"

    def line(self, key: str, known: Sequence[str] = _FORMULAS) -> str:
        """A formula in one of the styles of YAML."""
        quoted = self.formula(known)
        text = quoted[1:-1].replace("''", "'")
        if self.some(0.8):
            return f"{key}: {quoted}"
        style = self.choice(["|\n  ", ">-\n  ", "|\n   x *\n   ", ">\n  (x)\n  + ", ""])
        return f"{key}: {style}{text}" if style else f"{key}: {json.dumps(text)}"

    def value(self, depth: int = 0) -> str:
        """A value of any kind in YAML's flow style."""
        which = self.random.randrange(4) if depth < 3 else 0
        if which < 2:
            return self.formula() if self.some(0.3) else self.choice(_SCALARS)
        count = self.random.randrange(5)
        if which == 2:
            return "[" + ", ".join(self.value(depth + 1) for _ in range(count)) + "]"
        keys = [self.choice([*_KEYS, "x", "w", "N", "K"]) for _ in range(count)]
        return "{" + ", ".join(f"{key}: {self.value(depth + 1)}" for key in keys) + "}"

    def or_odd(self, right: Sequence[str], odd: Sequence[str]) -> str:
        if self.some(self.wrong):
            return self.choice(odd) if self.some(0.7) else self.value()
        return self.choice(right)

    def input(self, depth: int = 0) -> str:
        if self.some(self.wrong):
            return self.value()
        which = self.random.randrange(16)
        if which < 11:
            sizes = [
                self.or_odd(_SIZES, _ODD_SIZES) for _ in range(self.random.choice((1, 2, 2, 0, 3)))
            ]
            filling = self.choice(_FILLINGS)
            if self.some(self.wrong):
                filling += f", {self.choice(_KEYS)}: {self.value(1)}"
            if self.some(0.1):
                filling += self.choice([", optional: true", ", keyword: true"])
            return f"{{shape: [{', '.join(sizes)}]{filling}}}"
        if which == 11:
            return self.choice(["1.5", "3", "true", "null", "text", "{value: [1, 2]}"])
        if which == 12:
            return f"{{values: [{self.choice(['1, 2', '0.5, 1e-3, -2', 'sum, mean', 'null'])}]}}"
        if which == 13:
            formula = self.formula(
                ["randn(N, K)", "torch.float32", "eye(N).tril()", "arange(K)", "N"]
            )
            return f"{{expression: {formula}}}"
        if depth > 2:
            return "1"
        parts = [self.input(depth + 1) for _ in range(self.random.randrange(4))]
        if which == 14:
            return f"{{{self.choice(['list', 'tuple'])}: [{', '.join(parts)}]}}"
        return f"{{dict: {{{', '.join(f'a{n}: {part}' for n, part in enumerate(parts))}}}}}"

    def spec(self) -> str:
        """A spec that defines an op by formula."""
        dims = [f"{name}: {self.or_odd(_DIMS, _ODD_DIMS)}" for name in ("N", "K")]
        lines = [
            self.line("forward")
            if self.some(0.9)
            else f"op: {self.choice(['a:b', 'torch.ops.a.b'])}",
            f"dims: {{{', '.join(dims)}}}",
            f"inputs: {{x: {self.input()}, w: {self.input()}}}",
        ]
        if self.some(0.3):
            lines.append(f"backward: {{x: {self.formula(_GRADIENTS)}}}")
        if self.some(0.2):
            lines.append(self.line("reference"))
        for _ in range(self.random.choice((0, 0, 1, 2))):
            lines.append(self.choice(_LINES))
        while self.some(self.wrong):
            lines.append(f"{self.choice(_KEYS)}: {self.value()}")
        return "\n".join(lines) + "\n"


def spec(random: Random) -> str:
    """A spec, or what only looks like one."""
    writer = _SpecWriter(random, random.choice((0.0, 0.0, 0.02, 0.1, 0.4)))
    which = random.randrange(20)
    if which < 14:
        return writer.spec()
    if which < 17:
        text = writer.spec()
        for _ in range(random.randrange(1, 4)):
            text = _cut(random, text, random.choice(_CUTS), 12)
        return text
    if which < 19:
        keys = {random.choice(_KEYS) for _ in range(random.randrange(7))}
        return "".join(f"{key}: {writer.value()}\n" for key in sorted(keys))
    return _any_text(random, 80)


# -- settings --------------------------------------------------------------------------------------

_SETTINGS = [
    *("inputs", "devices", "device", "require-device", "dtypes", "dtype", "select", "ignore"),
    *("per-target-ignores", "order", "seed", "timeout", "jobs", "fail-on", "imports", "memory"),
    *("memory_mb", "max-calls", "sanitizer", "debug", "nothing", "Seed", "'a b'", "a.b"),
    '"\\u001b"',
]
_TOML_ATOMS = [
    *(
        "0",
        "1",
        "-1",
        "2.5",
        "1e9",
        "1e400",
        "inf",
        "nan",
        "-inf",
        "true",
        "''",
        "'GL401'",
        "'cpu'",
    ),
    *("'cuda,cpu'", "'float64'", "'torch.half'", "'error'", "'GL999'", "'x'", "2020-01-01"),
    *("07:30:00", "9223372036854775807", "9223372036854775808", "0xffffffffffffffffffff", "9" * 50),
    *("'" + "9" * 5000 + "'", "0x" + "f" * 4000, "'\\ud800'", '"\\u0000\\u001b[31m"', "'a\tb'"),
    *("'1_0'", "'0x10'", "' 3 '", "'inf'", "'1e-400'", "'٣'", "", "'GL4, wrong_gradient'"),
]
#: Settings and values that they take.
_RIGHT_SETTINGS = [
    *(
        "seed = 3",
        "timeout = 2.5",
        "jobs = 2",
        "order = 1",
        "select = ['GL4']",
        "dtypes = 'float32'",
    ),
    *(
        "ignore = ['GL503', 'wrong_gradient']",
        "fail-on = 'error'",
        "devices = ['cpu']",
        "debug = true",
    ),
    *(
        "max-calls = 100",
        "memory = 512",
        "imports = ['math']",
        "per-target-ignores = {'*.py' = ['GL4']}",
    ),
]


def _setting(random: Random) -> str:
    """One line of ``[tool.gradlint]``; without quotes, a flag's or a variable's."""

    def value(depth: int) -> str:
        which = random.randrange(6) if depth < 3 else 0
        if which < 3:
            return random.choice(_TOML_ATOMS)
        if which == 3:
            return "[" + ", ".join(value(depth + 1) for _ in range(random.randrange(4))) + "]"
        if which == 4:
            names = ["a", "'*.py'", "seed"][random.randrange(3) :]
            return "{" + ", ".join(f"{name} = {value(depth + 1)}" for name in names) + "}"
        return _any_text(random, 8)

    if random.randrange(2):
        return random.choice(_RIGHT_SETTINGS)
    return f"{random.choice(_SETTINGS)} = {value(0)}"


def settings(random: Random) -> str:
    """A pyproject.toml, whose lines are also tried as flags and variables of the environment."""
    which = random.randrange(16)
    table = "\n".join(_setting(random) for _ in range(random.randrange(4)))
    if which < 8:
        return f"[tool.gradlint]\n{table}\n"
    if which < 12:
        return table
    if which < 14:
        return f"[tool.gradlint.per-target-ignores]\n{table}\n"
    if which == 14:
        depth = random.randrange(1, 3000)
        return f"[tool.gradlint]\nseed = {'[' * depth}{']' * depth}"
    return _any_text(random, 60)


# -- frames ----------------------------------------------------------------------------------------

_EVENTS = [
    _bytes.decode("latin-1")
    for _bytes in map(
        msgspec.msgpack.encode,
        [
            Note("x"),
            Skip("GL401", "why"),
            Begin("GL401", "spec"),
            Found(Finding("GL401", "x", "error", "x", evidence={"a": [1, {"b": 2.5}]})),
            CheckDone(Check("GL401", "pass")),
            {"type": "Result", "value": [1]},
            {"type": "Hello"},
            [1, 2],
        ],
    )
]
_PUT = ["", "\x91", "\x81", "\xc0", "\xdb\xff\xff\xff\xff", "\xdf\x7f", "\xc7", "\xd4", "\xcb"]


def frame(random: Random) -> str:
    """The bytes of an event, in Latin-1, with a few of them replaced, doubled or left out."""
    which = random.randrange(12)
    if which == 10:
        return "\x91" * random.randrange(1, 4000)
    if which == 11:
        return "".join(chr(random.randrange(256)) for _ in range(random.randrange(40)))
    text = random.choice(_EVENTS)
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        put = "".join(chr(random.randrange(256)) for _ in range(random.randrange(4)))
        text = _cut(random, text, random.choice(_PUT) + put, 4)
    return text


#: Kind of text → what writes one; ``cell.ATTEMPTS`` has what is tried with it.
GRAMMARS: dict[str, Callable[[Random], str]] = {
    "expression": expression,
    "spec": spec,
    "settings": settings,
    "frame": frame,
}
