"""Steps and tolerances that the caller gave: they widen what is accepted."""

from __future__ import annotations

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from gradlint.dropin._torch import ask_torch, unaffordable
from gradlint.numerics._decide import Decision
from gradlint.numerics._elements import Residuals, measure_elements
from gradlint.numerics._locate import locate
from gradlint.numerics._map import Map
from gradlint.numerics._products import widened

#: Inputs of up to this many elements are compared element by element; of larger ones, the wrong
#: elements that a search finds and as many at random (heuristic: six evaluations an element).
COMPARED = 256
SAMPLED = 48


def torch_accepts(function: Function, options: Options) -> bool:
    """Whether torch's slow mode, with the step and the tolerances of the call, passes."""
    if not options.tolerant or unaffordable(function, options):
        return False
    try:
        ask_torch(function.call, function.args, options, function=function)
    except GradcheckError:
        return False
    return True


def within(judged: Map, decision: Decision, place: int, options: Options) -> bool:
    """Whether the gradient of an input that disagrees is within atol + rtol·|derivative| of what
    was measured, element by element, under two cotangents of magnitudes around one; and within
    nondet_tol, where one run of backward may differ from the next by as much."""
    item = decision.judgement.inputs[place]
    value = judged.values[item.index]
    clearest = sorted(range(len(item.pairs)), key=lambda k: -item.pairs[k].clarity)[:2]
    probes = [decision.judgement.probe(k) for k in clearest]
    claimed = [probe.gradients[item.index] for probe in probes]
    residuals = Residuals(
        judged, item.index, [probe.cotangents for probe in probes], claimed, kappa=item.kappa
    )
    count = value.numel()
    chosen = list(range(min(count, COMPARED)))
    if count > COMPARED:
        generator = torch.Generator().manual_seed(options.seed)
        sample = torch.randint(0, count, (SAMPLED,), generator=generator).tolist()
        chosen = sorted({*sample, *locate(residuals, seed=options.seed).elements})
    for own, found in zip(claimed, measure_elements(residuals, chosen), strict=True):
        returned = widened(own).flatten().cpu()[found.indices]
        allowed = found.bars + options.nondet_tol
        if options.tolerant:
            allowed = allowed + options.atol + options.rtol * found.measured.abs()
        if not bool(((returned - found.measured).abs() <= allowed).all()):
            return False
    return True
