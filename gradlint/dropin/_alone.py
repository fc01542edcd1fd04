"""Do the gradients of single outputs add up to that of all?"""

from __future__ import annotations

import torch

from gradlint.dropin._compare import close
from gradlint.dropin._function import Function
from gradlint.numerics._directions import cotangent
from gradlint.numerics._products import dense, norm, rms, widened


def unequal_shares(function: Function, seed: int) -> list[int]:
    """Positions of the inputs for which they don't, beyond rounding; one backward an output, and
    one for all."""
    outputs = function.outputs
    if len(outputs) < 2:
        return []
    generator = torch.Generator().manual_seed(seed + 7)
    # Of order one, not scaled to the outputs: where those underflow, so would what is compared.
    vs = [cotangent(torch.ones_like(y.detach()), generator) for y in outputs]
    totals = [None if g is None else dense(g) for g in function.backward(outputs, vs)]
    tops = [0.0] * len(totals)
    left = list(totals)
    for y, v in zip(outputs, vs, strict=True):
        for place, share in enumerate(function.backward([y], [v])):
            if share is None:
                continue
            share = dense(share)
            rest = left[place]
            left[place] = -share if rest is None else rest - share
            if share.numel():
                tops[place] = max(tops[place], float(share.abs().max()))
    # A gradient is a sum over outputs whose terms are of the size of v∘y per unit of the input.
    weighed = sum(norm(widened(v) * widened(y)) for v, y in zip(vs, outputs, strict=True))
    found = []
    for place, (rest, value) in enumerate(zip(left, function.values, strict=True)):
        top = max(tops[place], weighed / (rms(value) or 1.0))
        if rest is not None and not close(rest, torch.zeros_like(rest), top):
            found.append(place)
    return found
