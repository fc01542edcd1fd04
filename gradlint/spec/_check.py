"""Checks of a spec beyond types: expressions, names, codes, and keys that exclude each other.

Everything here works on the plain data of the file and skips what has the wrong type, so that
all mistakes in a file are reported together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from gradlint.base.errors import SpecError
from gradlint.base.text import did_you_mean
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.limits import MAX_LENGTH, ExpressionError
from gradlint.expressions.vocabulary import DTYPES
from gradlint.rules.catalogue import rule_names
from gradlint.spec._dims import size_of
from gradlint.spec._domains import NAMES, parse_domain
from gradlint.spec._yaml import Document, Path, ordered

#: Characters of all sizes and formulas of a spec (heuristic: those of this repository have under
#: 1,000, and 100,000 take a second).
MAX_CHARACTERS = 100_000

#: Names that stand for what backward receives and for what forward returned.
GRADIENT_NAMES = ("grad_output", "grad_outputs")
OUTPUT_NAMES = ("output", "outputs")

_INPUT_NAME = re.compile(r"^[^\W\d]\w*(\[\d+\])?$")
#: Keys that say what an argument is; one of them or a shape must be given.
_PLAIN_KINDS = ("value", "values", "expression", "list", "tuple", "dict")
#: Keys that only tensors with a shape have.
_TENSOR_KEYS = ("domain", "range", "dtype", "bool", "complex", "sparse")
#: Ways to fill a tensor, of which only one can be given.
_FILLINGS = ("domain", "range", "value", "values", "bool")


class Checker:
    """Finds the mistakes of one document, and notes them in it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        data = document.data
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.dims = [name for name in _mapping(self.data, "dims") if isinstance(name, str)]
        self.inputs = list(_mapping(self.data, "inputs"))
        self.characters = 0

    def check(self) -> None:
        """Note everything."""
        self.what()
        self.names()
        for path, item in self.all_inputs():
            self.input(path, item)
        self.constructor()
        self.formulas()
        self.cases()
        self.ignores()

    def note(self, path: Path, message: str, hint: str = "", *, key: bool = False) -> None:
        mark = self.document.key(path) if key else self.document.value(path)
        self.document.problem(mark, message, hint)

    # -- the op --------------------------------------------------------------------------------

    def what(self) -> None:
        given = [key for key in ("op", "forward") if key in self.data]
        if not given:
            hint = "write op: pkg.mod:Name, or forward: with a formula"
            self.note((), "the spec does not say what the op is", hint)
        if len(given) == 2:
            self.note(("forward",), "both `op` and `forward` are given", "keep one", key=True)
        if "forward" not in self.data:
            for key in ("backward",):
                if key in self.data:
                    self.note((key,), f"`{key}` needs `forward`", key=True)
        elif not self.inputs:
            self.note(("forward",), "a formula needs `inputs`, which name its arguments", key=True)
        if "extension" in self.data and "op" not in self.data:
            self.note(
                ("extension",),
                "`extension` needs `op`",
                "such as op: torch.ops.ns.name, the op that the sources register",
                key=True,
            )

    def names(self) -> None:
        for name in self.dims:
            if not name.isidentifier() or name.startswith("_"):
                self.note(("dims", name), f"`{name}` is not a valid dim name", key=True)
        formula = "forward" in self.data
        for name in self.inputs:
            if not _INPUT_NAME.match(name) or (formula and not name.isidentifier()):
                self.note(("inputs", name), f"`{name}` is not a valid argument name", key=True)
            elif formula and (name.startswith("_") or name in (*GRADIENT_NAMES, *OUTPUT_NAMES)):
                self.note(
                    ("inputs", name), f"`{name}` can't be the name of a formula's input", key=True
                )

    # -- inputs --------------------------------------------------------------------------------

    def all_inputs(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Every description of an argument, those inside others and inside cases included."""

        def walk(path: Path, item: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
            if not isinstance(item, dict):
                return
            yield path, item
            for key in ("list", "tuple"):
                parts = item.get(key)
                for index, part in enumerate(parts if isinstance(parts, list) else ()):
                    yield from walk((*path, key, index), part)
            for name, part in _mapping(item, "dict").items():
                yield from walk((*path, "dict", name), part)

        for key in ("inputs", "constructor"):
            for name, item in _mapping(self.data, key).items():
                yield from walk((key, name), item)
        for index, case in enumerate(_sequence(self.data, "cases")):
            for name, item in _mapping(case, "inputs").items():
                yield from walk(("cases", index, "inputs", name), item)

    def input(self, path: Path, item: dict[str, Any]) -> None:
        kinds = [key for key in _PLAIN_KINDS if key in item]
        if "shape" in item:
            self.tensor(path, item)
        else:
            if not kinds:
                hint = "add shape: [N, …] for a tensor, or value: for anything else"
                self.note(path, "the spec does not say what this argument is", hint, key=True)
            for key in kinds[1:]:
                self.note((*path, key), f"`{kinds[0]}` and `{key}` can't both be given", key=True)
            for key in _TENSOR_KEYS:
                if key in item and item[key] not in (None, False):
                    self.note((*path, key), f"`{key}` needs `shape`", key=True)
        if "expression" in item:
            self.expression((*path, "expression"), item["expression"], self.dims)

    def tensor(self, path: Path, item: dict[str, Any]) -> None:
        for key in ("expression", "list", "tuple", "dict"):
            if key in item:
                self.note((*path, key), f"`shape` and `{key}` can't both be given", key=True)
        for axis, size in enumerate(_sequence(item, "shape")):
            self.size((*path, "shape", axis), size)
        for axis, size in enumerate(_sequence(item, "range")):
            self.size((*path, "range", axis), size)
        given = [key for key in _FILLINGS if item.get(key) not in (None, False)]
        for key in given[1:]:
            self.note((*path, key), f"`{given[0]}` and `{key}` can't both be given", key=True)
        if "domain" in item and item["domain"] is not None:
            try:
                parse_domain(item["domain"])
            except ValueError as error:
                self.note((*path, "domain"), str(error), self.domain_hint(item["domain"]))
        value = item.get("value")
        if isinstance(value, (str, dict)):
            hint = "write expression: without a shape, or numbers"
            self.note((*path, "value"), "the value of a tensor is a number or lists of them", hint)
        dtype = item.get("dtype")
        if not isinstance(dtype, str):
            return
        if dtype.removeprefix("torch.") not in DTYPES:
            hint = did_you_mean(dtype, DTYPES, "such as int64, bool, float64")
            self.note((*path, "dtype"), f"unknown dtype `{dtype[:40]}`", hint)
        elif "int" in dtype and not {"range", "value", "values"} & set(given):
            hint = "add range: [low, high], value: or values:"
            self.note((*path, "dtype"), "the spec does not say which integers", hint)

    def domain_hint(self, value: Any) -> str:
        known = f'domains are {", ".join(NAMES)}, or an interval such as "[-1, 1]"'
        return did_you_mean(value, NAMES, known) if isinstance(value, str) else known

    def size(self, path: Path, size: Any) -> None:
        if not isinstance(size, str):
            return
        self.count(path, size)
        try:
            # Any sizes will do: this only checks that it is arithmetic of dims.
            size_of(size, dict.fromkeys(self.dims, 3))
        except ExpressionError as error:
            if "division by zero" not in error.message:
                self.failed(path, error, self.dims, "dim")

    def constructor(self) -> None:
        if "constructor" in self.data and "forward" in self.data:
            self.note(("constructor",), "a formula has no `constructor`", key=True)
        for path, item in self.all_inputs():
            if path[0] != "constructor":
                continue
            for key in ("shape", "values", "optional", "requires_grad", "keyword"):
                if item.get(key) not in (None, False):
                    hint = "write a plain value, {value: …} or {expression: …}"
                    self.note((*path, key), f"`{key}` describes an input", hint, key=True)

    # -- expressions ---------------------------------------------------------------------------

    def expression(self, path: Path, text: Any, names: Iterable[str]) -> frozenset[str]:
        """Note what is wrong with ``text``; the names it uses."""
        names = list(names)
        if not isinstance(text, str) or not text:  # said by the model; one of blanks is not
            return frozenset()
        self.count(path, text)
        try:
            return compile_expression(text, names).names
        except ExpressionError as error:
            self.failed(path, error, names, "name")
            return frozenset()

    def count(self, path: Path, text: str) -> None:
        """Refuse the document where its expressions, aliases counted each time, are too long."""
        self.characters += min(len(text), MAX_LENGTH)
        if self.characters > MAX_CHARACTERS:
            self.note(path, f"all expressions together have over {MAX_CHARACTERS:,} characters")
            raise SpecError(self.document.path, ordered(self.document.problems))

    def failed(self, path: Path, error: ExpressionError, names: Iterable[str], kind: str) -> None:
        mark = self.document.inside(path, error.column - 1)
        message, hint = error.message, error.hint
        if message.startswith("unknown name "):
            shown = message.removeprefix("unknown name ")
            if kind == "dim":
                message = f"unknown dim {shown}"
                hint = did_you_mean(shown.strip("`"), names, "add it to `dims`")
            elif shown.strip("`") in self.dims:
                hint = "a formula can't use dims: take the size from an input, as in x.shape[0]"
            elif shown.strip("`") in _mapping(self.data, "let") and path[0] == "let":
                hint = "a let can use only the lets before it"
            elif shown.strip("`") in _mapping(self.data, "let"):
                hint = "that let uses names that only backward has"
                if path[0] == "surrogate":
                    hint = "a surrogate can't use lets"
        self.document.problem(mark, message, hint)

    def formulas(self) -> None:
        inputs = [name for name in self.inputs if name.isidentifier()]
        lets: dict[str, bool] = {}
        for name, text in _mapping(self.data, "let").items():
            path: Path = ("let", name)
            if not name.isidentifier() or name.startswith("_") or name in inputs:
                self.note(path, f"`{name}` can't be the name of a formula", key=True)
            used = self.expression(path, text, [*inputs, *lets, *GRADIENT_NAMES, *OUTPUT_NAMES])
            late = bool(used & {*GRADIENT_NAMES, *OUTPUT_NAMES})
            lets[name] = late or any(lets.get(other, False) for other in used)
        early = [name for name, late in lets.items() if not late]
        for key in ("forward", "reference"):
            if key in self.data:
                self.expression((key,), self.data[key], [*inputs, *early])
        behind = [*inputs, *lets, *GRADIENT_NAMES, *OUTPUT_NAMES]
        for key in ("backward", "surrogate"):
            names = behind if key == "backward" else [*inputs, *GRADIENT_NAMES, *OUTPUT_NAMES]
            for name, text in _mapping(self.data, key).items():
                if key == "surrogate" and isinstance(text, str) and not _may_be_tensor(text):
                    self.note((key, name), f"`{text[:40]}` is neither a tensor nor a number")
                if self.inputs and name not in self.inputs:
                    hint = did_you_mean(name, self.inputs, self.known_inputs())
                    self.note((key, name), f"`{name}` is not an input", hint, key=True)
                self.expression((key, name), text, names)

    def known_inputs(self) -> str:
        return "inputs are " + ", ".join(f"`{name}`" for name in self.inputs[:12])

    # -- the rest ------------------------------------------------------------------------------

    def cases(self) -> None:
        for index, case in enumerate(_sequence(self.data, "cases")):
            for name in _mapping(case, "dims"):
                self.known(("cases", index, "dims", name), name, self.dims, "dim")
            for name in _mapping(case, "inputs") if "forward" in self.data else ():
                # An op may take more than its inputs say; its signature is checked later.
                self.known(("cases", index, "inputs", name), name, self.inputs, "input")

    def known(self, path: Path, name: str, names: list[str], kind: str) -> None:
        if name not in names:
            self.note(path, f"unknown {kind} `{name}`", did_you_mean(name, names), key=True)

    def ignores(self) -> None:
        known = list(rule_names())
        for index, item in enumerate(_sequence(self.data, "ignore")):
            code = item.get("code") if isinstance(item, dict) else None
            if not isinstance(code, str):
                continue
            path: Path = ("ignore", index, "code")
            if not re.fullmatch(r"GL\d{3}", code):
                hint = did_you_mean(code, known, "such as GL503")
                self.note(path, f"`{code[:40]}` is not a rule code", hint)
            elif code not in known:
                self.note(path, f"no rule has the code `{code}`", did_you_mean(code, known))


def _may_be_tensor(text: str) -> bool:
    """Whether the expression ``text`` may give a tensor or a number, by its outermost form."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return True  # said elsewhere
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (bool, int, float, complex))
    return not isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr))


def _mapping(data: Any, key: str) -> dict[str, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _sequence(data: Any, key: str) -> list[Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, list) else []
