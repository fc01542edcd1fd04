import torch
from torch import Tensor


def _distance(n: int, like: Tensor) -> Tensor:
    i = torch.arange(n, device=like.device, dtype=like.dtype)
    return (i[:, None] - i).abs()


@torch.library.custom_op("posbias::kerple", mutates_args=())
def kerple(r1: Tensor, r2: Tensor, n: int, kind: str) -> Tensor:
    d, a, p = _distance(n, r1), r1[:, None, None], r2[:, None, None]
    return -a * torch.log1p(p * d) if kind == "log" else -a * d**p


def _setup(ctx, inputs, output):
    r1, r2, ctx.n, ctx.kind = inputs
    ctx.save_for_backward(r1, r2)


def _backward(ctx, g):
    r1, r2 = ctx.saved_tensors
    d, a, p = _distance(ctx.n, r1), r1[:, None, None], r2[:, None, None]
    if ctx.kind == "log":
        f, df = torch.log1p(p * d), d / (1 + p * d)
    else:
        f, df = d**p, d**p * d.log()
    return -(g * f).sum((1, 2)), -(g * a * df).sum((1, 2)), None, None


kerple.register_autograd(_backward, setup_context=_setup)


def kerple_bias(r1: Tensor, r2: Tensor, n: int, kind: str = "log") -> Tensor:
    """KERPLE relative bias (H, n, n). r1, r2 (H,) positive, kind 'log' or 'power'."""
    return torch.ops.posbias.kerple(r1, r2, n, kind)
