"""The random draws behind a judgement: cotangents v, claimed gradients g and directions u.

Every draw has a seed of its own and can be repeated, so draws of large tensors need not be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics.directions import cotangent, direction, move_scale, signs
from gradlint.numerics.map import Map
from gradlint.numerics.products import widened
from gradlint.numerics.seeds import mixed

#: Draws are kept if inputs and outputs together have at most this many elements (heuristic: 16 MiB
#: of float64 for four draws); larger ones are repeated when needed, at the price of one VJP each.
KEPT = 2**17


@dataclass(frozen=True)
class Draw:
    """The pair (v, u) along which a sweep measures one input.

    Args:
        x: the input; u: the direction, float64 or complex128.
        vs: cotangents, one per output; g: the claimed gradient.
    """

    x: torch.Tensor
    u: torch.Tensor
    vs: Sequence[torch.Tensor]
    g: torch.Tensor


def drawn(function: Map, index: int, seed: int, masks: Sequence[torch.Tensor] | None) -> Draw:
    """The pair for input ``index``; v is zero where ``masks`` are False."""
    generator = torch.Generator().manual_seed(seed)
    x = function.values[index]
    vs = cotangents(function, generator)
    if masks is not None:
        vs = [v * mask for v, mask in zip(vs, masks, strict=True)]
    claimed = function.pull(vs)[index]
    g = torch.zeros_like(x) if claimed is None else claimed
    return Draw(x, function.projected(index, _direction(x, g, generator)), vs, g)


def _direction(x: torch.Tensor, g: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A direction whose signs follow the claimed gradient, or are random where that is zero.

    The slope along it never cancels, so an error can be stated relative to the slope. Every element
    moves by at least half its size, so that one wrong element shows, and by different shares, so
    that no two equal errors cancel.
    """
    scale = move_scale(x)
    share = torch.rand(tuple(x.shape), generator=generator, dtype=torch.float64)
    phase = torch.sgn(widened(g))
    phase = torch.where(phase.abs() > 0.0, phase, signs(x, generator))
    return phase * scale * (0.5 + 0.5 * share).to(x.device)


@dataclass
class Probe:
    """One draw for all inputs.

    Args:
        kind: kind of direction, one of :data:`gradlint.numerics.directions.KINDS`.
        cotangents: v, one per output.
        gradients: g, one per input; zeros where backward returned None.
        moves: input position → direction u, float64 or complex128, drawn on first use.
    """

    kind: str
    cotangents: list[torch.Tensor]
    gradients: list[torch.Tensor]
    moves: dict[int, torch.Tensor] = field(default_factory=dict)


class _Drawn(dict[int, torch.Tensor]):
    """Directions by input position, each drawn on first use."""

    def __init__(self, draw: Callable[[int], torch.Tensor]) -> None:
        super().__init__()
        self._draw = draw

    def __missing__(self, index: int) -> torch.Tensor:
        self[index] = found = self._draw(index)
        return found


class Bank:
    """The draws of one judgement.

    Args:
        function: the map that is judged.
        kinds: kinds of direction, one draw each.
        seed: seed of all draws.
        inputs: positions of the inputs that are moved.
        masks: for each output, True for the elements that count, or None for all.
    """

    def __init__(
        self,
        function: Map,
        kinds: Sequence[str],
        seed: int,
        inputs: Sequence[int],
        masks: Sequence[torch.Tensor | None] | None = None,
    ) -> None:
        self.function, self.kinds, self.seed = function, list(kinds), seed
        self.inputs, self.masks = list(inputs), masks
        self._kept: dict[int, Probe] = {}
        self._latest: tuple[int, Probe] | None = None

    def probe(self, k: int) -> Probe:
        """Draw number ``k``."""
        if k in self._kept:
            return self._kept[k]
        if self._latest is not None and self._latest[0] == k:
            return self._latest[1]
        self._latest = None  # freed first, so that only one draw of large tensors exists at a time
        drawn = self._draw(k)
        if self.function.elements <= KEPT:
            self._kept[k] = drawn
        else:
            self._latest = (k, drawn)
        return drawn

    def __len__(self) -> int:
        return len(self.kinds)

    def _draw(self, k: int) -> Probe:
        function, kind = self.function, self.kinds[k]
        generator = torch.Generator().manual_seed(mixed(self.seed, k, 0))
        vs = cotangents(function, generator)
        for position, mask in enumerate(self.masks or ()):
            if mask is not None:
                vs[position] = vs[position] * mask
        gradients = function.gradients_at(function.values, vs)

        def move(index: int) -> torch.Tensor:
            fresh = torch.Generator().manual_seed(mixed(self.seed, k, index + 1))
            drawn = direction(kind, function.values[index], gradients[index], fresh)
            return function.projected(index, drawn)

        return Probe(kind, vs, gradients, _Drawn(move))


def cotangents(function: Map, generator: torch.Generator) -> list[torch.Tensor]:
    """A cotangent for each output of ``function``."""
    known = function.rounding or [0.0] * len(function.outputs)
    pairs = zip(function.outputs, known, strict=True)
    return [cotangent(output, generator, rounding) for output, rounding in pairs]
