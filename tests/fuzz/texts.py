"""Texts that are nearly expressions and nearly specs."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from gradlint.expressions.vocabulary import (
    ATTRIBUTES,
    CONSTANTS,
    DTYPES,
    FUNCTIONS,
    KEYWORDS,
    METHODS,
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

#: Numbers at which something ends: limits, widths of integers, floating formats.
NUMBERS = [
    *("0", "1", "2", "3", "-1", "-2", "7", "64", "65", "127", "4095", "2**12", "2**16", "65537"),
    *("2**18", "2**18+1", "2**26", "10**5", "10**9", "-10**9", "2**31", "2**63", "-2**63", "2**64"),
    *("10**38", "1e308", "1e-320", "0.5", "-0.0", "1e400", "nan", "inf", "-inf", "1j", "True"),
    *("int(8e8)", "400000", "16384"),
]
_ATOMS = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(["x", "y", "b", "i", "m", "k", "n", "s", "none", "parts"]),
    st.sampled_from(
        [
            *("randn(2, 3)", "zeros(0, 2**16)", "ones(2**17)", "ones(2**9, 2**9)", "tensor(3)"),
            *("ones(1).expand(2**18)", "zeros(2**14)", "tensor(4000000000)", "eye(300)"),
            *("linspace(0, 1, 2**12)", "arange(2**12)", "ones(1, 2, 64, 64)", "[0] * 60000"),
            *(
                "'a' * 60000",
                "[[0] * 250] * 250",
                "[x] * 500",
                "[]",
                "()",
                "{}",
                "''",
                "'ij,jk->ik'",
            ),
            *("'%2000000000d'", "'sum'", "'constant'", "float32", "'complex128'", "x.shape"),
            *("(2, 3)", "(2**9, 2**9)", "[1, 1]", "None", "True", "False", "1:", "::2", "..."),
        ]
    ),
    st.sampled_from(sorted({*CONSTANTS, *DTYPES})),
    st.integers().map(str),
    st.floats(width=32).map(str),
)


_OPERATORS = [
    *("+", "-", "*", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^", "<", "<=", "=="),
    *("!=", ">", "is", "is not", "in", "not in", "and", "or"),
]
_TENSORS_WRITTEN = [
    *("x", "x", "y", "b", "i", "m", "randn(2, 3)", "zeros(0, 2**16)", "ones(2**17)", "eye(300)"),
    *("ones(2**9, 2**9)", "tensor(3)", "ones(1).expand(2**18)", "ones(1, 2, 64, 64)", "x > 0.5"),
    *("linspace(0, 1, 2**12)", "arange(2**12)", "x[:, :2] + 0j", "randn(0)", "x.float()", "parts"),
]
_PREFIXES = ["", "", "", *(f"{name}." for name in sorted(PREFIXES))]
_SIGNS = ["-", "~", "not ", "+"]


@st.composite
def _written(draw: st.DrawFn, deepest: int = 3) -> str:
    """An expression that can be read, and that nothing else is sure of."""
    # Written by hand: nested strategies describe themselves in megabytes.
    number = st.integers(0, 19)

    def part(depth: int) -> str:
        which = draw(number) if depth < deepest else 19
        if which < 5:
            prefix = draw(st.sampled_from(_PREFIXES))
            return f"{prefix}{draw(st.sampled_from(_FUNCTIONS))}({arguments(depth)})"
        if which < 8:
            method = draw(st.sampled_from(_METHODS))
            return f"({tensor(depth + 1)}).{method}({arguments(depth, first=False)})"
        if which < 11:
            operator = draw(st.sampled_from(_OPERATORS))
            return f"({part(depth + 1)}) {operator} ({part(depth + 1)})"
        if which == 11:
            return f"({part(depth + 1)}).{draw(st.sampled_from(_ATTRIBUTES))}"
        if which == 12:
            return f"({part(depth + 1)})[{part(depth + 1)}]"
        if which == 13:
            return f"{draw(st.sampled_from(_SIGNS))}({part(depth + 1)})"
        if which == 14:
            return f"[{parts(depth)}]"
        if which == 15:
            return f"({parts(depth)},)"
        if which == 16:
            return f"({part(depth + 1)}) if ({part(depth + 1)}) else ({part(depth + 1)})"
        if which == 17:
            return f"{{{part(depth + 1)}: {part(depth + 1)}}}"
        return draw(_ATOMS)

    def tensor(depth: int) -> str:
        # Functions refuse most other values before they do anything.
        if draw(st.integers(0, 3)):
            return draw(st.sampled_from(_TENSORS_WRITTEN))
        return part(depth)

    def parts(depth: int) -> str:
        return ", ".join(part(depth + 1) for _ in range(draw(st.integers(1, 4))))

    def arguments(depth: int, first: bool = True) -> str:
        words = [tensor(depth + 1)] if first else []
        words += [
            draw(_ATOMS) if draw(st.booleans()) else tensor(depth + 1)
            for _ in range(draw(st.integers(0, 3)))
        ]
        if draw(st.integers(0, 3)) == 0:
            words.append(f"{draw(st.sampled_from(_KEYWORDS))}={part(depth + 1)}")
        return ", ".join(words)

    return part(0)


_WRITTEN = _written()
#: What only looks like an expression: words in any order, and attempts to reach out.
_WORDS = st.lists(
    st.sampled_from(
        [
            *_FUNCTIONS,
            *(f".{name}" for name in _METHODS),
            *NUMBERS,
            *("x", "y", "(", ")", "[", "]", "{", "}", ",", ":", "=", ".", "*", "**", "'", '"'),
            *(" if ", " else ", " for ", " in ", "lambda ", "await ", "yield ", ":=", "#", "\\"),
            *("__class__", "__import__", "_C", ".grad_fn", ".data", ".storage()", "f'{x}'", "b'a'"),
            *("\n", "\t", "\x00", "\x0c", "é", "ｘ", "\u2028", "\ud800", "🙂", "\u200b"),
        ]
    ),
    max_size=16,
).map("".join)


@st.composite
def _cut(draw: st.DrawFn) -> str:
    """An expression with something cut out or put in."""
    text = draw(_WRITTEN)
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 6)))
    return text[:start] + draw(_WORDS) + text[end:]


EXPRESSIONS = st.one_of(_WRITTEN, _WRITTEN, _WRITTEN, _cut(), _WORDS, st.text(max_size=60))

_KEYS = sorted(
    {
        field.alias or name
        for model in (OpSpec, Input, Case, Extension, Ignore)
        for name, field in model.model_fields.items()
    }
)
_FORMULAS = st.one_of(
    st.sampled_from(["x * x", "x @ w.mT", "grad_output * x", "sum(x)", "(x, w)", "y", "N"]),
    _WRITTEN,
)
_QUOTED = _FORMULAS.map(lambda text: "'" + text.replace("'", "''").replace("\n", " ") + "'")
_SCALARS = st.one_of(
    _QUOTED,
    st.sampled_from(
        [
            *("N", "K", "2*N", "N//0", "N**9", "-N", "x", "w", "1", "0", "-1", "3", "2.5", "true"),
            *("false", "null", "yes", "''", "1e-6", ".inf", ".nan", "0x" + "f" * 40, "9" * 30),
            *("2024-01-01", "*a", "&a x", "!!python/object x", "!x y", "[0, 1]", "(0, inf]", "{}"),
            *("[]", "GL503", "GL999", "float32", "coo", "csr", "cuda", "torch.int64", "a:b"),
            *(
                "9223372036854775807",
                "100000000000000000000",
                "1e308",
                "-1e308",
                "65536",
                "[1, 26]",
            ),
            *(f"'{name}'" for name in NAMES),
            *("'[1e308, 1.7e308]'", "'[-1, 1]'", "'(0, 1e-300)'", "'[5, 3]'"),
        ]
    ),
)


@st.composite
def _value(draw: st.DrawFn) -> str:
    """A value of any kind in YAML's flow style."""

    def part(depth: int) -> str:
        which = draw(st.integers(0, 3)) if depth < 3 else 3
        if which == 0:
            return "[" + ", ".join(part(depth + 1) for _ in range(draw(st.integers(0, 4)))) + "]"
        if which == 1:
            keys = draw(st.lists(st.sampled_from([*_KEYS, "x", "w", "N", "K"]), max_size=4))
            return "{" + ", ".join(f"{key}: {part(depth + 1)}" for key in keys) + "}"
        return draw(_SCALARS)

    return part(0)


_VALUES = _value()
_SHAPES = st.lists(
    st.sampled_from(["N", "K", "1", "3", "0", "2*N", "N+K", "'N // 2'", "-1", "2**16", "64"]),
    max_size=4,
)
_TENSORS = st.tuples(
    _SHAPES,
    st.dictionaries(
        st.sampled_from(
            [
                *("domain", "range", "value", "values", "dtype", "bool", "complex", "sparse"),
                *("requires_grad", "optional", "keyword"),
            ]
        ),
        _SCALARS | st.lists(_SCALARS, max_size=3).map(lambda p: f"[{', '.join(p)}]"),
        max_size=2,
    ),
).map(
    lambda p: (
        f"{{shape: [{', '.join(p[0])}]"
        + "".join(f", {key}: {value}" for key, value in p[1].items())
        + "}"
    )
)


@st.composite
def _formula_spec(draw: st.DrawFn) -> str:
    """A spec that defines an op by formula and is nearly right."""
    lines = [f"forward: {draw(_QUOTED)}", f"dims: {{N: {draw(_DIMS)}, K: {draw(_DIMS)}}}"]
    lines.append(f"inputs: {{x: {draw(_TENSORS)}, w: {draw(_TENSORS | _VALUES)}}}")
    for key, value in draw(st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=2)).items():
        lines.append(f"{key}: {value}")
    return "\n".join(lines) + "\n"


_DIMS = st.sampled_from(["1", "3", "[1, 4, 33]", "0", "[2, 2]", "65536", "-1", "[]", "x"])
_SHAPELESS = st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6).map(
    lambda items: "".join(f"{key}: {value}\n" for key, value in items.items())
)


@st.composite
def _broken(draw: st.DrawFn) -> str:
    """A spec with a few characters cut, doubled or replaced."""
    text = draw(_formula_spec())
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        put = [
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
        ]
        text = text[:start] + draw(st.sampled_from([*put, "\x00", "\x85", "é", "? "])) + text[end:]
    return text


SPECS = st.one_of(_formula_spec(), _formula_spec(), _SHAPELESS, _broken(), st.text(max_size=80))


_SETTINGS = [
    *("inputs", "devices", "device", "require-device", "dtypes", "dtype", "select", "ignore"),
    *("per-target-ignores", "order", "seed", "timeout", "jobs", "fail-on", "imports", "memory"),
    *(
        "memory_mb",
        "max-calls",
        "sanitizer",
        "debug",
        "nothing",
        "Seed",
        "'a b'",
        "a.b",
        '"\\u001b"',
    ),
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
    *("07:30:00", "9223372036854775807", "9223372036854775808", "0xffffffffffffffffffff"),
    *(
        "9" * 50,
        "'" + "9" * 5000 + "'",
        "0x" + "f" * 4000,
        "'\\ud800'",
        '"\\u0000\\u001b[31m"',
        "'a\tb'",
    ),
    *("'1_0'", "'0x10'", "' 3 '", "'inf'", "'1e-400'", "'٣'", "", "'GL4, wrong_gradient'"),
]


@st.composite
def _setting(draw: st.DrawFn) -> str:
    """One line of ``[tool.gradlint]``; without quotes, a flag's or a variable's."""

    def value(depth: int) -> str:
        which = draw(st.integers(0, 5)) if depth < 3 else 5
        if which == 0:
            return "[" + ", ".join(value(depth + 1) for _ in range(draw(st.integers(0, 3)))) + "]"
        if which == 1:
            names = draw(
                st.lists(st.sampled_from(["a", "'*.py'", "seed"]), max_size=2, unique=True)
            )
            return "{" + ", ".join(f"{name} = {value(depth + 1)}" for name in names) + "}"
        if which == 2:
            return draw(st.text(max_size=8))
        return draw(st.sampled_from(_TOML_ATOMS))

    return f"{draw(st.sampled_from(_SETTINGS))} = {value(0)}"


_TABLE = st.lists(_setting(), max_size=3).map("\n".join)
SETTINGS = st.one_of(
    _TABLE.map("[tool.gradlint]\n{}\n".format),
    _TABLE.map("[tool.gradlint]\n{}\n".format),
    _TABLE,
    _setting().map("[tool.gradlint.per-target-ignores]\n{}\n".format),
    st.integers(1, 3000).map(lambda depth: f"[tool.gradlint]\nseed = {'[' * depth}{']' * depth}"),
    st.text(max_size=60),
)

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


@st.composite
def _frame(draw: st.DrawFn) -> str:
    """The bytes of an event with a few of them replaced, doubled or left out."""
    text = draw(st.sampled_from(_EVENTS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 4)))
        put = draw(
            st.sampled_from(["", "\x91", "\x81", "\xc0", "\xdb\xff\xff\xff\xff", "\xdf\x7f"])
        )
        text = text[:start] + put + draw(_BYTES) + text[end:]
    return text


_BYTES = st.binary(max_size=3).map(lambda data: data.decode("latin-1"))
FRAMES = st.one_of(
    _frame(),
    _frame(),
    st.integers(1, 4000).map(lambda depth: "\x91" * depth),
    st.binary(max_size=40).map(lambda data: data.decode("latin-1")),
)
