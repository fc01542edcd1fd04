"""Multivariate normal negative log likelihood with a Cholesky factor."""
import math

import torch


class _MVN(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, loc, tril):
        L = torch.tril(tril)
        z = torch.linalg.solve_triangular(L, (x - loc).unsqueeze(-1), upper=False).squeeze(-1)
        ctx.save_for_backward(x, loc, tril)
        half_logdet = L.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
        d = x.shape[-1]
        return 0.5 * (z * z).sum(-1) + half_logdet + 0.5 * d * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, g):
        x, loc, tril = ctx.saved_tensors
        L = torch.tril(tril)
        z = torch.linalg.solve_triangular(L, (x - loc).unsqueeze(-1), upper=False)
        a = torch.linalg.solve_triangular(L.mT, z, upper=True)
        gx = g.unsqueeze(-1) * a.squeeze(-1)
        inv_diag = torch.diag_embed(1.0 / L.diagonal(dim1=-2, dim2=-1))
        gl = -(g[:, None, None] * (a @ z.mT)).sum(0) + g.sum() * inv_diag
        return gx, -gx.sum(0), torch.tril(gl)


def mvn_nll(x, loc, scale_tril, reduction="mean"):
    """x (N, d), loc (d,), scale_tril (d, d) of which the lower triangle is read."""
    if x.ndim != 2 or loc.ndim != 1 or scale_tril.ndim != 2:
        raise ValueError("bad ranks")
    nll = _MVN.apply(x, loc, scale_tril)
    return {"mean": nll.mean, "sum": nll.sum, "none": lambda: nll}[reduction]()
