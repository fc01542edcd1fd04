"""An operator with its arguments, and what is compared of it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Defect:
    """A defect that was seen: what, at which element, and what it was compared with."""

    what: str
    expected: str
    got: str
    source: str
    index: tuple[int, ...] | None = None
    input: str = ""


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)


def mapped(value: Any, convert: Callable[[torch.Tensor], Any]) -> Any:
    """The same nested tuples, lists and dicts with every tensor replaced."""
    if isinstance(value, torch.Tensor):
        return convert(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(part, convert) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(part, convert) for part in value)
    if isinstance(value, dict):
        return {key: mapped(part, convert) for key, part in value.items()}
    return value


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in memory of its own, with the same strides and offset."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided or (tensor.is_contiguous() and not tensor.storage_offset()):
        return tensor.clone()
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    whole = torch.as_strided(tensor, (count,), (1,), 0).clone()
    return torch.as_strided(whole, tensor.shape, tensor.stride(), tensor.storage_offset())


def seed_all(seed: int) -> None:
    """Every call starts from the same random numbers."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


class Case:
    """An operator, what it is called with, and the names of its differentiable inputs."""

    def __init__(
        self,
        call: Callable[[Any], Any],
        given: Any,
        names: Sequence[str],
        seed: int,
        every_output: bool = False,
    ) -> None:
        self.call = call
        self.given = given
        self.names = list(names)
        self.seed = seed
        self.every_output = every_output
        self.inputs: list[torch.Tensor] = []
        for tensor in tensors(given):
            if tensor.requires_grad and not any(tensor is known for known in self.inputs):
                self.inputs.append(tensor)
        self.in_place = False
        self.passed: Any = None
        self.operator: Any = None

    def moved(self, share: float) -> Case:
        """The same operator with other floating numbers: this share of each, in tensors or not."""

        def numbers(value: Any) -> Any:
            if isinstance(value, float):
                return value * share
            if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
                return type(value)(map(numbers, value))
            if isinstance(value, dict):
                return {key: numbers(part) for key, part in value.items()}
            return value

        found = self.changed(lambda t: t * share if t.is_floating_point() else t)
        found.given = numbers(found.given)
        return found

    def changed(self, convert: Callable[[torch.Tensor], torch.Tensor]) -> Case:
        """The same operator with other arguments: every tensor as `convert` returns it."""
        seen: dict[int, torch.Tensor] = {}

        def once(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in seen:
                seen[id(tensor)] = convert(tensor).detach().requires_grad_(tensor.requires_grad)
            return seen[id(tensor)]

        return Case(self.call, mapped(self.given, once), self.names, self.seed, self.every_output)

    def run(
        self,
        values: Sequence[torch.Tensor] | None = None,
        grad: bool = True,
        flags: Sequence[bool] | None = None,
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Copies of the inputs, and the outputs that the operator gives for them."""
        values = self.inputs if values is None else values
        flags = flags or [grad] * len(values)
        leaves = [copied(x).requires_grad_(flag) for x, flag in zip(values, flags)]
        handed = [leaf.clone() if self.in_place and grad else leaf for leaf in leaves]
        new = {id(x): leaf for x, leaf in zip(self.inputs, handed)}

        def replaced(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in new:
                new[id(tensor)] = copied(tensor)
            return new[id(tensor)]

        self.passed = mapped(self.given, replaced)
        seed_all(self.seed)
        try:
            with torch.set_grad_enabled(grad):
                return leaves, list(tensors(self.call(self.passed)))
        except RuntimeError as error:
            # PyTorch lets no operator write to a leaf, so it gets tensors that are none.
            if self.in_place or "leaf Variable" not in str(error) or "in-place" not in str(error):
                raise
        self.in_place = True
        return self.run(values, grad, flags)

    def cotangents(self, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
        """Random numbers by which the outputs are weighed (grad_output); None for those that have
        no gradient."""
        generator = torch.Generator().manual_seed(self.seed)
        found: list[torch.Tensor | None] = []
        for y in outputs:
            wide = torch.complex128 if y.is_complex() else torch.float64
            v = torch.randn(y.shape, generator=generator, dtype=wide).to(y.device, y.dtype)
            floating = y.is_floating_point() or y.is_complex()
            used = y.requires_grad or (self.every_output and floating)
            found.append(v if used else None)
        return found

    def gradients(
        self,
        values: Sequence[torch.Tensor] | None = None,
        flags: Sequence[bool] | None = None,
    ) -> list[torch.Tensor | None]:
        """The gradients that backward returns for the inputs."""
        leaves, outputs = self.run(values, flags=flags)
        return pulled(outputs, leaves, self.cotangents(outputs))

    def weighed(
        self, values: Sequence[torch.Tensor], vs: Sequence[torch.Tensor | None]
    ) -> tuple[float, float]:
        """The sum of the outputs, each number times its number in grad_output, and how large the
        terms of that sum are."""
        try:
            _, outputs = self.run(values, grad=False)
        except Exception:
            _, outputs = self.run(values)
        total = size = 0.0
        for y, v in zip(outputs, vs):
            if v is not None:
                terms = (v.conj() * y.detach()).real.double()
                total += float(terms.sum())
                size += float(terms.abs().sum())
        return total, size


def pulled(
    outputs: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    vs: Sequence[torch.Tensor | None],
    retain_graph: bool | None = None,
) -> list[torch.Tensor | None]:
    """What torch.autograd.grad gives for those of `leaves` that require grad."""
    pairs = [(y, v) for y, v in zip(outputs, vs) if v is not None and y.requires_grad]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if not pairs or not wanted:
        return [None] * len(leaves)
    found = iter(
        torch.autograd.grad(
            [y for y, _ in pairs],
            wanted,
            [v for _, v in pairs],
            retain_graph=retain_graph,
            allow_unused=True,
        )
    )
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


def precision(tensor: torch.Tensor) -> float:
    """The spacing of numbers near one, in the dtype of `tensor`."""
    return torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 1.2e-7


def shown(value: Any) -> str:
    """A number, or the numbers of a small tensor, in a few digits."""
    if isinstance(value, torch.Tensor):
        value = value.detach().tolist() if value.numel() <= 16 else f"shape {tuple(value.shape)}"
    return f"{value:.9g}" if isinstance(value, (float, complex)) else str(value)


def compared(
    got: torch.Tensor | None,
    expected: torch.Tensor | None,
    what: str,
    source: str,
    name: str = "",
    roundings: float = 1000.0,
) -> Defect | None:
    """Where two tensors that should be equal, but for rounding, differ most; None if nowhere."""
    if got is None and expected is None:
        return None
    if got is None or expected is None:
        given = got if expected is None else expected
        if given is None or not bool((given.detach() != 0).any()):
            return None
        words = ["None" if t is None else f"a tensor, {shown(t)}" for t in (expected, got)]
        return Defect(what, words[0], words[1], source, None, name)
    got, expected = got.detach(), expected.detach()
    if got.shape != expected.shape:
        return Defect(what, f"shape {tuple(expected.shape)}", f"shape {tuple(got.shape)}", source)
    if not got.numel():
        return None
    eps = max(precision(got), precision(expected))
    wide = torch.complex128 if got.is_complex() or expected.is_complex() else torch.float64
    a, b = got.cpu().to(wide), expected.cpu().to(wide)
    good = b[torch.isfinite(b.abs())].abs()
    bound = roundings * eps * (float(good.max()) if good.numel() else 0.0)
    error = (a - b).abs()
    error[a.isnan() & b.isnan() | (a == b)] = 0.0
    error[error.isnan()] = float("inf")
    if not bool((error > bound).any()):
        return None
    place = int(error.flatten().argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), error.shape))
    return Defect(what, shown(b[index].item()), shown(a[index].item()), source, index, name)


def each_compared(
    case: Case,
    got: Sequence[torch.Tensor | None],
    expected: Sequence[torch.Tensor | None],
    what: str,
    source: str,
    roundings: float = 1000.0,
) -> Defect | None:
    """The first input whose gradients, in `got` and `expected`, are not the same."""
    for name, a, b in zip(case.names, got, expected):
        found = compared(a, b, f"{what} `{name}`", source, name, roundings)
        if found is not None:
            return found
    return None
