"""An operator made from formulas: a Function where a backward is given."""

from __future__ import annotations

import ast
import builtins
import hashlib
import math
import operator
import os
import re
from collections.abc import Mapping
from functools import partial, reduce
from typing import Any

import torch

from gradlint.reproduction.torch_alone.case import tensors

#: Names that torch spells differently, and numbers that have a name.
ALIASES = {"stop_gradient": "detach", "inverse": "inv", "ln": "log", "concatenate": "concat"}
NUMBERS = {"e": math.e, "inf": math.inf, "nan": math.nan, "pi": math.pi}

#: Functions of two tensors that take a plain number for one of them.
PAIRS = ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "heaviside")

#: Functions that make floating tensors from sizes.
MAKING = ("zeros", "ones", "full", "eye", "rand", "randn", "tensor", "linspace", "logspace")

#: Functions of Python on plain values.
PLAIN = ("bool", "float", "int", "len", "list", "range", "tuple")

#: What stands before a dot and only says where a function lives.
WHERE = re.compile(
    r"torch(\.(nn|linalg|special))?(\.functional)?|nn\.functional|[Fn]n?|linalg|math"
)


class Formula(ast.NodeTransformer):
    """A formula as Python: `a < b < c` for tensors too, and functions by their names alone. It
    may use what is given and these words, so that it can't be more than a formula."""

    def __init__(self, given: set[str], words: frozenset[str]) -> None:
        self.given = given
        self.words = words

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, if it may be used."""
        if node.id not in self.given and node.id not in self.words:
            raise NameError(f"a formula must not use {node.id}")
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Comparisons one by one, and all of them."""
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        parts: list[ast.expr] = [
            ast.Compare(left, [kind], [right])
            for left, kind, right in zip(sides, node.ops, sides[1:])
        ]
        return reduce(lambda a, b: ast.BinOp(a, ast.BitAnd(), b), parts)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A function without the module before its name."""
        if node.attr not in self.words:
            raise NameError(f"a formula must not use {node.attr}")
        before = ast.unparse(node.value)
        if WHERE.fullmatch(before) and before.partition(".")[0] not in self.given:
            return ast.Name(node.attr, ast.Load())
        self.generic_visit(node)
        return node


def found(name: str, like: torch.Tensor | None) -> Any:
    """The function or number that `name` stands for in a formula."""
    if name in NUMBERS:
        return NUMBERS[name]
    if name in PLAIN:
        return getattr(builtins, name)
    name = ALIASES.get(name, name)
    homes = (torch.nn.functional, torch, torch.linalg, torch.special)
    home = next((place for place in homes if hasattr(place, name)), None)
    if home is None:
        raise NameError(f"PyTorch has no {name}")
    of_torch = getattr(home, name)
    return of_torch if not callable(of_torch) else partial(called, name, of_torch, like)


def called(name: str, of_torch: Any, like: torch.Tensor | None, *args: Any, **kwargs: Any) -> Any:
    """The function `name` at these arguments, which may be plain numbers."""
    if isinstance(kwargs.get("dtype"), str):
        kwargs["dtype"] = getattr(torch, kwargs["dtype"])
    if name in MAKING and like is not None:
        kwargs = {"dtype": like.dtype, "device": like.device, **kwargs}
    if name in (*MAKING, "arange", "randint", "randperm"):
        return of_torch(*args, **kwargs)
    if name == "sum" and isinstance(args[0], (list, tuple)):
        return reduce(operator.add, args[0])
    if not any(True for _ in tensors((args, tuple(kwargs.values())))):
        plain = getattr(math, name, None) or getattr(builtins, name, None)
        return plain(*args) if plain is not None else args[0] * args[0]
    if name in PAIRS and like is not None:
        args = tuple(like.new_tensor(a) if isinstance(a, (int, float)) else a for a in args)
    return of_torch(*args, **kwargs)


class Names(dict):  # type: ignore[type-arg]
    """What the names of a formula stand for: arguments, earlier formulas, functions of torch."""

    def __init__(
        self, given: Mapping[str, Any], lets: Mapping[str, str], words: frozenset[str]
    ) -> None:
        super().__init__(given)
        self.lets = lets
        self.words = words
        kinds = [t for t in tensors(dict(given)) if t.is_floating_point() or t.is_complex()]
        self.like = kinds[0].detach().real if kinds else None

    def __missing__(self, name: str) -> Any:
        if name not in self.lets:
            return found(name, self.like)
        self[name] = self.value(self.lets[name])
        return self[name]

    def value(self, text: str) -> Any:
        """The value of a formula."""
        tree: Any = ast.parse(" ".join(text.split()), mode="eval")
        tree = Formula({*self, *self.lets}, self.words).visit(tree)
        code = compile(ast.fix_missing_locations(tree), "<formula>", "eval")
        # PyTorch imports modules when they are first needed; no formula can name what does that.
        return eval(code, {"__builtins__": {"__import__": builtins.__import__}}, self)


def with_formulas(formulas: dict[str, Any], words: frozenset[str]) -> Any:
    """The operator that they describe: `apply` of a Function where a backward is given."""
    names, lets, gradients = formulas["inputs"], formulas["let"], formulas["backward"]

    def forward(*args: Any, **kwargs: Any) -> Any:
        made = Names({**dict(zip(names, args)), **kwargs}, lets, words).value(formulas["forward"])
        fresh = [t.view_as(t) if any(t is a for a in args) else t for t in tensors(made)]
        return tuple(fresh) if isinstance(made, (list, tuple)) else fresh[0]

    if gradients is None:
        return forward

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(
            *(t for t in outputs if not (t.is_floating_point() or t.is_complex()))
        )
        ctx.plain = [None if isinstance(item, torch.Tensor) else item for item in inputs]
        ctx.places = [k for k, item in enumerate(inputs) if isinstance(item, torch.Tensor)]
        kept = [inputs[k] for k in ctx.places]
        ctx.save_for_backward(*kept, *outputs)

    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        saved = ctx.saved_tensors
        values = list(ctx.plain)
        for place, tensor in zip(ctx.places, saved):
            values[place] = tensor
        outputs = saved[len(ctx.places) :]
        scope = Names(dict(zip(names, values)), lets, words)
        scope.update(grad_output=grad_outputs[0], grad_outputs=grad_outputs)
        scope.update(output=outputs[0], outputs=outputs)
        return tuple(
            scope.value(gradients[name]) if needed and name in gradients else None
            for name, needed in zip(names, ctx.needs_input_grad)
        )

    refusing = torch.autograd.function.once_differentiable
    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(refusing(backward) if formulas["once"] else backward),
        "generate_vmap_rule": True,
    }
    made: Any = type("Formulas", (torch.autograd.Function,), members)
    return made.apply


def present(formulas: dict[str, Any], file: str, digest: str) -> dict[str, Any]:
    """The formulas of the specification, as it is now."""
    if not os.path.isfile(file):
        return formulas
    with open(file, "rb") as opened:
        text = opened.read()
    if hashlib.sha256(text).hexdigest() == digest:
        return formulas
    try:
        import yaml  # noqa: PLC0415, where it is missing, most scripts need none
    except ImportError:
        raise ImportError(
            f"{file} has changed, and reading it needs PyYAML: install that, or put its formulas "
            "into FORMULAS"
        ) from None
    now = yaml.safe_load(text)
    backward = now.get("backward")
    return {
        **formulas,
        "forward": str(now["forward"]),
        "let": {name: str(text) for name, text in (now.get("let") or {}).items()},
        "backward": backward and {name: str(text) for name, text in backward.items()},
        "once": bool(now.get("once_differentiable", False)),
    }
