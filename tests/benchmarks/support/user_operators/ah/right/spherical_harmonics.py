"""Real spherical harmonics up to l = 2, polynomials in (x, y, z)."""
import math

import torch


def _polynomials(v: torch.Tensor) -> torch.Tensor:
    x, y, z = v.unbind(-1)
    s3 = math.sqrt(3)
    return torch.stack(
        [
            torch.ones_like(x),
            x,
            y,
            z,
            s3 * x * z,
            s3 * x * y,
            y * y - 0.5 * (x * x + z * z),
            s3 * y * z,
            s3 / 2 * (z * z - x * x),
        ],
        -1,
    )


def _pullback(v: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    x, y, z = v.unbind(-1)
    s3 = math.sqrt(3)
    g = g.unbind(-1)
    gx = g[1] + s3 * (g[4] * z + g[5] * y) - g[6] * x - s3 * g[8] * x
    gy = g[2] + s3 * (g[5] * x + g[7] * z) + 2 * g[6] * y
    gz = g[3] + s3 * (g[4] * x + g[7] * y) - g[6] * z + s3 * g[8] * z
    return torch.stack([gx, gy, gz], -1)


class SphericalHarmonicsFn(torch.autograd.Function):
    """
    Parameters
    ----------
    vectors : `torch.Tensor`
        tensor of shape ``(..., 3)``
    normalize : bool
        whether to project the vectors on the sphere; they must not be zero then
    normalization : {'integral', 'component', 'norm'}

    Returns
    -------
    `torch.Tensor`
        tensor of shape ``(..., 9)``, ordered l = 0, 1, 2
    """

    @staticmethod
    def _scales(normalization, ref):
        ls = [0] + [1] * 3 + [2] * 5
        if normalization == "norm":
            s = [1.0 for _ in ls]
        elif normalization == "component":
            s = [math.sqrt(2 * l + 1) for l in ls]
        elif normalization == "integral":
            s = [math.sqrt((2 * l + 1) / (4 * math.pi)) for l in ls]
        else:
            raise ValueError(f"unknown normalization {normalization}")
        return torch.tensor(s, dtype=ref.dtype, device=ref.device)

    @staticmethod
    def forward(ctx, vectors, normalize=True, normalization="integral"):
        if vectors.shape[-1] != 3:
            raise ValueError("the last axis must have three entries")
        if normalize:
            norm = vectors.norm(dim=-1, keepdim=True)
            if bool((norm == 0).any()):
                raise ValueError("cannot normalize zero vectors")
            unit = vectors / norm
        else:
            unit = vectors
        ctx.normalize, ctx.normalization = normalize, normalization
        ctx.save_for_backward(vectors)
        return _polynomials(unit) * SphericalHarmonicsFn._scales(normalization, vectors)

    @staticmethod
    def backward(ctx, grad):
        (vectors,) = ctx.saved_tensors
        grad = grad * SphericalHarmonicsFn._scales(ctx.normalization, vectors)
        if not ctx.normalize:
            return _pullback(vectors, grad), None, None
        norm = vectors.norm(dim=-1, keepdim=True)
        unit = vectors / norm
        g = _pullback(unit, grad)
        g = (g - unit * (unit * g).sum(-1, keepdim=True)) / norm
        return g, None, None
