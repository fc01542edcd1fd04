"""Values as Python source: what a script is called with.

Names, texts and paths come from the operator, whom nobody need trust. Each becomes a literal of
ASCII alone, so none can end a string or a comment and go on as code.
"""

from __future__ import annotations

import math
import types
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.inputs.stand_ins import Attributes

#: Elements of a tensor up to which its numbers stand in the script (heuristic: some lines).
INLINE = 64

#: Bytes of all tensors that are kept in a file beside the script, at most (heuristic: nobody reads
#: a defect off a larger one).
MOST_BYTES = 2**24


class NotWritten(Exception):
    """A value can't be written into a script; the text says which."""


@dataclass
class Literals:
    """Values as source, with the lines that make the tensors in them.

    Attributes:
        lines: assignments, one for each tensor, in their order.
        kept: the tensors that are too large for the source, by name.
    """

    lines: list[str] = field(default_factory=list)
    kept: dict[str, torch.Tensor] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)
    _held: list[torch.Tensor] = field(default_factory=list)

    def of(self, value: Any) -> str:  # noqa: PLR0911, a table by another name
        """An expression that gives ``value``.

        Raises:
            NotWritten: it is of a kind that can't be written.
        """
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if value is None or value is Ellipsis or isinstance(value, bool):
            return repr(value)
        kind = type(value)
        if kind in (int, float, complex, str, bytes):
            return number(value) if kind in (float, complex) else ascii(value)
        if kind in (list, tuple, set, frozenset, torch.Size):
            return self._sequence(value)
        if kind is dict:
            pairs = (f"{self.of(key)}: {self.of(item)}" for key, item in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, Attributes):
            return f'type("Attributes", (), {self.of(vars(value))})()'
        if kind is slice:
            return f"slice({self.of(value.start)}, {self.of(value.stop)}, {self.of(value.step)})"
        if kind in (torch.dtype, torch.layout, torch.memory_format):
            return str(value)
        if kind is torch.device:
            return f"torch.device({str(value)!a})"
        if kind in (types.BuiltinFunctionType, types.FunctionType):
            return _of_torch(value)
        raise NotWritten(f"an argument is a {kind.__name__}, which can't be written into a script")

    def _sequence(self, value: Any) -> str:
        if not value and isinstance(value, (set, frozenset)):
            return f"{type(value).__name__}()"
        inner = ", ".join(map(self.of, value))
        match value:
            case list():
                return f"[{inner}]"
            case set():
                return "{" + inner + "}"
            case frozenset():
                return f"frozenset([{inner}])"
            case torch.Size():
                return f"torch.Size([{inner}])"
        return f"({inner},)" if len(value) == 1 else f"({inner})"

    def _tensor(self, tensor: torch.Tensor) -> str:
        if id(tensor) in self._names:
            return self._names[id(tensor)]
        if tensor.layout != torch.strided or tensor.is_nested:
            raise NotWritten("an argument is a sparse or nested tensor")
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise NotWritten(f"an argument is of the class {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise NotWritten("it needs a GPU")
        name = f"t{len(self._names)}"
        self._names[id(tensor)] = name
        self._held.append(tensor)
        self.lines.append(f"{name} = {self._source(name, tensor.detach())}")
        if tensor.requires_grad:
            self.lines.append(f"{name}.requires_grad_()")
        return name

    def _source(self, name: str, tensor: torch.Tensor) -> str:
        if tensor.numel() > INLINE:
            self.kept[name] = tensor.clone()
            kept = sum(t.numel() * t.element_size() for t in self.kept.values())
            if kept > MOST_BYTES:
                raise NotWritten(f"its arguments take more than {MOST_BYTES >> 20} MiB")
            return f"KEPT[{name!r}]"
        dense = tensor.contiguous() if not tensor.is_contiguous() else tensor
        wide = dense.to(torch.float64) if dense.is_floating_point() else dense
        made = f"torch.tensor({_numbers(wide.tolist())}, dtype={tensor.dtype})"
        if 0 in tensor.shape:
            made = f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype})"
        if tensor.is_contiguous():
            return made
        strides = (list(tensor.shape), list(tensor.stride()))
        return f"{made}.new_empty_strided(*{strides}).copy_({made})"


def number(value: float | complex) -> str:
    """A float or complex number as source; NaN and infinities too."""
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_numbers, value)) + "]"
    return number(value) if isinstance(value, (float, complex)) else repr(value)


def _of_torch(value: Any) -> str:
    """A function of torch's own, under its public name."""
    name = getattr(value, "__name__", "")
    for place, where in ((torch.nn.functional, "torch.nn.functional"), (torch, "torch")):
        if name.isidentifier() and getattr(place, name, None) is value:
            return f"{where}.{name}"
    raise NotWritten("an argument is a function, which can't be written into a script")


def comment(text: str) -> str:
    """``text`` as lines of a comment, with everything that could end one escaped."""
    lines = text.split("\n")
    shown = (
        "".join(c if c.isprintable() and c.isascii() else ascii(c)[1:-1] for c in line)
        for line in lines
    )
    return "".join(f"# {line}".rstrip() + "\n" for line in shown)
