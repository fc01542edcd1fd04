import math
import torch

SQ23 = math.sqrt(2.0 / 3.0)


class RadialReturn(torch.autograd.Function):
    """J2 plasticity with linear isotropic hardening, stress at the end of the step.

    strain, strain_p: (Q, 3, 3) symmetric, total strain and old plastic strain at quadrature points
    yield0: (Q,) current yield stress;  K, G, H: bulk, shear and hardening modulus
    """

    @staticmethod
    def forward(ctx, strain, strain_p, yield0, K=2.0, G=1.0, H=0.1):
        eye = torch.eye(3, dtype=strain.dtype)
        el = strain - strain_p
        tr = el.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
        s = 2 * G * (el - tr / 3 * eye)
        norm = s.flatten(1).norm(dim=1)
        f = norm - SQ23 * yield0
        dgamma = f.clamp(min=0) / (2 * G + 2 * H / 3)
        n = s / norm.clamp(min=1e-14)[:, None, None]
        ctx.save_for_backward(n, norm, dgamma, f)
        ctx.mod = K, G, H
        return K * tr * eye + s - (2 * G * dgamma)[:, None, None] * n

    @staticmethod
    def backward(ctx, gsig):
        n, norm, dgamma, f = ctx.saved_tensors
        K, G, H = ctx.mod
        eye = torch.eye(3, dtype=gsig.dtype)
        plastic = (f > 0).to(gsig.dtype)
        gn = (gsig * n).flatten(1).sum(1)
        theta = torch.ones_like(norm)
        theta_bar = 1 - plastic * 2 * G / (2 * G + 2 * H / 3)
        # algorithmic (consistent) tangent
        gs = theta[:, None, None] * gsig + ((theta_bar - theta) * gn)[:, None, None] * n
        gtr = gs.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
        gel = 2 * G * (gs - gtr / 3 * eye)
        gel = gel + K * gsig.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None] * eye
        gy = plastic * gn * 2 * G * SQ23 / (2 * G + 2 * H / 3)
        return gel, -gel, gy, None, None, None
