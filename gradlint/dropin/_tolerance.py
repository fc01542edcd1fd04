"""Is a wrong gradient within the tolerances of the call, by torch's own criterion?

Torch compares every entry of the Jacobian, claimed against numerical: they may differ by
atol + rtol·|numerical|. A difference within that is no reason to fail, because a suite that runs
under torch was written for it (a solver that stops early, a constant with few digits). Here the
entries that matter are measured; torch's slow mode, which measures all of them, is the last resort.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from gradlint.dropin._torch import ask_torch, unaffordable
from gradlint.numerics.decide import Decision
from gradlint.numerics.elements import Residuals, measure_elements
from gradlint.numerics.locate import locate
from gradlint.numerics.map import Map
from gradlint.numerics.products import widened

#: Inputs of up to this many elements are compared element by element; of larger ones, the wrong
#: elements that a search finds and this many random ones (heuristic: an element takes six
#: evaluations).
COMPARED = 256
SAMPLED = 48

#: Elements with the largest excess for which an entry of the Jacobian is searched (heuristic: one
#: suffices unless errors of many entries add up in it).
SEARCHED = 3


def beyond_tolerances(
    function: Function, judged: Map, decision: Decision, wrong: Sequence[int], options: Options
) -> list[int]:
    """Those of ``wrong`` (positions in the judgement) whose gradient is beyond the tolerances."""
    if not wrong or (options.tolerant and torch_accepts(function, options)):
        return []
    open_ones, certain = [], []
    for place in wrong:
        excess = Excess(judged, decision, place, options)
        if excess.elements and excess.shows_entry():
            certain.append(place)
        elif excess.elements:
            open_ones.append(place)
    if not open_ones or certain or options.tolerant:
        return sorted(certain + open_ones)
    if unaffordable(function, options):
        # In double precision no entry was found beyond the tolerances. In less, sums over outputs
        # are all that can be told.
        return [] if _double(judged) else open_ones
    return [] if torch_accepts(function, options) else open_ones


def torch_accepts(function: Function, options: Options, *, forward_mode: bool = False) -> bool:
    """Whether torch's slow mode passes with the step and the tolerances of the call.

    Args:
        forward_mode: whether it checks forward mode instead of backward.
    """
    if unaffordable(function, options):
        return False
    try:
        ask_torch(
            function.call, function.args, options, function=function, forward_mode=forward_mode
        )
    except GradcheckError:
        return False
    return True


def _double(judged: Map) -> bool:
    return all(value.dtype in (torch.float64, torch.complex128) for value in judged.values)


class Excess:
    """The elements of one gradient that differ by more than the tolerances allow.

    The gradient is that of a weighted sum of the outputs, under two sets of weights of order one.

    Args:
        place: position of the input in the judgement.

    Attributes:
        elements: (excess, number of the set of weights, element), the largest excess first.
    """

    def __init__(self, judged: Map, decision: Decision, place: int, options: Options) -> None:
        self._judged, self._options = judged, options
        item = decision.judgement.inputs[place]
        self._index, self._kappa = item.index, item.kappa
        clearest = sorted(range(len(item.pairs)), key=lambda k: -item.pairs[k].clarity)[:2]
        probes = [decision.judgement.probe(k) for k in clearest]
        self._weights = [probe.cotangents for probe in probes]
        claimed = [probe.gradients[item.index] for probe in probes]
        residuals = Residuals(judged, item.index, self._weights, claimed, kappa=item.kappa)
        chosen = self._chosen(residuals, judged.values[item.index].numel())
        self.elements: list[tuple[float, int, int]] = []
        for k, found in enumerate(measure_elements(residuals, chosen)):
            returned = widened(claimed[k]).flatten().cpu()[found.indices]
            over = (returned - found.measured).abs() - self._allowed(found.measured, found.bars)
            over = torch.nan_to_num(over, nan=float("inf"))
            self.elements += [
                (float(over[at]), k, int(found.indices[at]))
                for at in range(len(chosen))
                if float(over[at]) > 0.0
            ]
        self.elements.sort(key=lambda one: -one[0])

    def shows_entry(self) -> bool:
        """Whether an entry of the Jacobian was found that is beyond the tolerances."""
        return any(
            self._entry_differs(element, self._weights[k])
            for _, k, element in self.elements[:SEARCHED]
        )

    def _chosen(self, residuals: Residuals, count: int) -> list[int]:
        if count <= COMPARED:
            return list(range(count))
        generator = torch.Generator().manual_seed(self._options.seed)
        sample = torch.randint(0, count, (SAMPLED,), generator=generator).tolist()
        return sorted({*sample, *locate(residuals, seed=self._options.seed).elements})

    def _allowed(self, measured: torch.Tensor, bars: torch.Tensor) -> torch.Tensor:
        options = self._options
        return bars + options.nondet_tol + options.atol + options.rtol * measured.abs()

    def _entry_differs(self, element: int, weights: Sequence[torch.Tensor]) -> bool:
        """Halve the outputs until one is left, keeping the half that differs more."""
        chosen = [torch.ones_like(v, dtype=torch.bool) for v in weights]
        while sum(int(mask.sum()) for mask in chosen) > 1:
            halves = _halved(chosen)
            found = self._compared(element, [_masked(weights, half) for half in halves])
            chosen = halves[int(abs(found[1][0] - found[1][1]) > abs(found[0][0] - found[0][1]))]
        alone = _masked(weights, chosen)
        size = sum(float(v.abs().sum()) for v in alone)
        returned, measured, bar = self._compared(element, [alone])[0]
        error = abs(returned - measured) - bar
        # Written so that NaN and an infinite bar are no proof.
        return error > self._options.atol * size + self._options.rtol * abs(measured)

    def _compared(
        self, element: int, weights: Sequence[Sequence[torch.Tensor]]
    ) -> list[tuple[complex, complex, float]]:
        """For each set of weights: the derivative that is claimed, the one measured, its bar."""
        index, judged = self._index, self._judged
        claimed = [judged.gradients_at(judged.values, vs)[index] for vs in weights]
        residuals = Residuals(judged, index, weights, claimed, kappa=self._kappa)
        return [
            (
                widened(own).flatten()[element].item(),
                found.measured[0].item(),
                float(found.bars[0]),
            )
            for own, found in zip(claimed, measure_elements(residuals, [element]), strict=True)
        ]


def _masked(weights: Sequence[torch.Tensor], chosen: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [v * mask for v, mask in zip(weights, chosen, strict=True)]


def _halved(chosen: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """The first and the second half of the chosen elements of several tensors."""
    flat = torch.cat([mask.reshape(-1) for mask in chosen])
    first = flat & (flat.cumsum(0) <= int(flat.sum()) // 2)
    sizes = [mask.numel() for mask in chosen]
    return [
        [part.reshape(mask.shape) for part, mask in zip(half.split(sizes), chosen, strict=True)]
        for half in (first, flat & ~first)
    ]
