"""Pair potentials, bonded terms and radial features for small molecular models."""

import math

import torch
from torch import nn
from torch.autograd import Function


class LennardJonesCut(Function):
    """12-6 potential, truncated (and by default shifted) at ``rc``."""

    @staticmethod
    def forward(ctx, r, epsilon=1.0, sigma=1.0, rc=2.5, shift=True):
        s6 = (sigma / r) ** 6
        energy = 4.0 * epsilon * (s6 * s6 - s6)
        if shift:
            c6 = (sigma / rc) ** 6
            energy = energy - 4.0 * epsilon * (c6 * c6 - c6)
        ctx.save_for_backward(r)
        ctx.epsilon, ctx.sigma, ctx.rc = epsilon, sigma, rc
        return torch.where(r < rc, energy, torch.zeros_like(energy))

    @staticmethod
    def backward(ctx, grad_out):
        (r,) = ctx.saved_tensors
        s6 = (ctx.sigma / r) ** 6
        force = 24.0 * ctx.epsilon * (s6 * s6 - s6) / r
        grad_r = torch.where(r < ctx.rc, -force * grad_out, torch.zeros_like(r))
        return grad_r, None, None, None, None


class MorseBonds(Function):
    """Energy of every bond; bonds is a (B, 2) table of atom indices."""

    @staticmethod
    def forward(ctx, pos, bonds, depth=1.0, width=1.5, r0=1.0):
        if bonds.dim() != 2 or bonds.size(1) != 2:
            raise ValueError("bonds must have shape (B, 2)")
        i, j = bonds.unbind(1)
        r = (pos[j] - pos[i]).norm(dim=1)
        ctx.save_for_backward(pos, bonds)
        ctx.pars = (depth, width, r0)
        return depth * (1.0 - torch.exp(-width * (r - r0))) ** 2

    @staticmethod
    def backward(ctx, grad_energy):
        pos, bonds = ctx.saved_tensors
        depth, width, r0 = ctx.pars
        i, j = bonds.unbind(1)
        vec = pos[j] - pos[i]
        r = vec.norm(dim=1).clamp(min=1e-12)
        ex = torch.exp(-width * (r - r0))
        slope = 2.0 * depth * width * ex * (1.0 - ex)
        pull = (grad_energy * slope / r).unsqueeze(1) * vec
        grad_pos = torch.zeros_like(pos)
        grad_pos[j] += pull
        grad_pos.index_add_(0, i, -pull)
        return grad_pos, None, None, None, None


class CosineAngleEnergy(Function):
    @staticmethod
    def forward(ctx, pos, triples, k, c0=-0.5):
        i, j, m = triples.t()
        u, v = pos[i] - pos[j], pos[m] - pos[j]
        cos = (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1))
        ctx.save_for_backward(pos, triples, k)
        ctx.c0 = c0
        return 0.5 * k * (cos - c0) ** 2

    @staticmethod
    def backward(ctx, g):
        pos, triples, k = ctx.saved_tensors
        i, j, m = triples.t()
        u, v = pos[i] - pos[j], pos[m] - pos[j]
        nu = u.norm(dim=1, keepdim=True)
        nv = v.norm(dim=1, keepdim=True)
        cos = (u * v).sum(1, keepdim=True) / (nu * nv)
        s = (g * k).unsqueeze(1) * (cos - ctx.c0)
        du = s * (v / (nu * nv) - cos * u / nu**2)
        dv = s * u / (nu * nv)
        grad_pos = torch.zeros_like(pos)
        grad_pos.index_add_(0, i, du)
        grad_pos.index_add_(0, m, dv)
        grad_pos.index_add_(0, j, -du - dv)
        grad_k = 0.5 * g * (cos.squeeze(1) - ctx.c0) ** 2
        return grad_pos, None, grad_k, None


class TorsionAngle(Function):
    """Dihedral angle of four points, (M, 4, 3) -> (M,), gradient as in Blondel & Karplus."""

    @staticmethod
    def forward(ctx, points: torch.Tensor) -> torch.Tensor:
        assert points.dim() == 3 and points.shape[1:] == (4, 3)
        f = points[:, 0] - points[:, 1]
        g = points[:, 1] - points[:, 2]
        h = points[:, 3] - points[:, 2]
        a = torch.cross(f, g, dim=1)
        b = torch.cross(h, g, dim=1)
        sin = (torch.cross(b, a, dim=1) * g).sum(1) / g.norm(dim=1)
        ctx.save_for_backward(points)
        return torch.atan2(sin, (a * b).sum(1))

    @staticmethod
    def backward(ctx, grad_phi: torch.Tensor):
        (points,) = ctx.saved_tensors
        f = points[:, 0] - points[:, 1]
        g = points[:, 1] - points[:, 2]
        h = points[:, 3] - points[:, 2]
        a = torch.cross(f, g, dim=1)
        b = torch.cross(h, g, dim=1)
        ng = g.norm(dim=1, keepdim=True)
        a = a / (a * a).sum(1, keepdim=True)
        b = b / (b * b).sum(1, keepdim=True)
        fg = (f * g).sum(1, keepdim=True) / ng
        hg = (h * g).sum(1, keepdim=True) / ng
        inner = fg * a + hg * b
        d0, d3 = -ng * a, ng * b
        grad = torch.stack([d0, inner - d0, -inner - d3, d3], dim=1)
        return grad_phi[:, None, None] * grad


class GaussianSmearing(Function):
    """exp(-gamma (d - c_k)^2) with trainable centers."""

    @staticmethod
    def forward(ctx, dist, centers, gamma=4.0):
        assert centers.dim() == 1
        out = torch.exp(-gamma * (dist.unsqueeze(-1) - centers) ** 2)
        ctx.save_for_backward(dist, centers, out)
        ctx.gamma = gamma
        return out

    @staticmethod
    def backward(ctx, grad_out):
        dist, centers, out = ctx.saved_tensors
        grad_dist = grad_centers = None
        w = 2.0 * ctx.gamma * (dist.unsqueeze(-1) - centers) * out * grad_out
        if ctx.needs_input_grad[0]:
            grad_dist = -w.sum(-1)
        if ctx.needs_input_grad[2]:
            grad_centers = w.reshape(-1, centers.numel()).sum(0)
        return grad_dist, grad_centers, None


class CosineEnvelope(Function):
    @staticmethod
    def forward(r, cutoff=5.0, power=1):
        base = 0.5 * (1.0 + torch.cos(math.pi * r / cutoff))
        return base.pow(power) * (r < cutoff).to(r.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        r, ctx.cutoff, ctx.power = inputs
        ctx.save_for_backward(r)

    @staticmethod
    def backward(ctx, grad):
        (r,) = ctx.saved_tensors
        arg = math.pi / ctx.cutoff
        base = 0.5 * (1.0 + torch.cos(arg * r))
        outer = base.pow(ctx.power - 1)
        d = -0.5 * arg * torch.sin(arg * r) * outer
        return grad * d * (r < ctx.cutoff).to(r.dtype), None, None


def cosine_envelope(r, cutoff=5.0, power=1):
    return CosineEnvelope.apply(r, cutoff, power)


class EwaldRealSpace(Function):
    """Screened Coulomb energy over a half neighbour list (pairs: (2, P))."""

    @staticmethod
    def forward(ctx, q, pos, pairs, alpha=0.3):
        i, j = pairs
        r = (pos[i] - pos[j]).norm(dim=-1)
        ctx.save_for_backward(q, pos, pairs)
        ctx.alpha = alpha
        return (q[i] * q[j] * torch.erfc(alpha * r) / r).sum()

    @staticmethod
    def backward(ctx, grad_e):
        q, pos, pairs = ctx.saved_tensors
        i, j = pairs
        vec = pos[i] - pos[j]
        r = vec.norm(dim=-1)
        kern = torch.erfc(ctx.alpha * r) / r
        grad_q = torch.zeros_like(q)
        grad_q.index_add_(0, i, q[j] * kern)
        grad_q.index_add_(0, j, q[j] * kern)
        gauss = (
            2.0 * ctx.alpha / math.sqrt(math.pi) * torch.exp(-((ctx.alpha * r) ** 2))
        )
        dk = -(kern + gauss) / r
        f = (q[i] * q[j] * dk / r).unsqueeze(-1) * vec
        grad_pos = torch.zeros_like(pos).index_add(0, i, f).index_add(0, j, -f)
        return grad_q * grad_e, grad_pos * grad_e, None, None


class _BesselFn(Function):
    @staticmethod
    def forward(ctx, r, freq, cutoff):
        ctx.save_for_backward(r, freq)
        ctx.cutoff = cutoff
        x = r[:, None]
        return math.sqrt(2.0 / cutoff) * torch.sin(freq * x / cutoff) / x

    @staticmethod
    def backward(ctx, grad):
        r, freq = ctx.saved_tensors
        c = ctx.cutoff
        x = r[:, None]
        phase = freq * x / c
        scaled = grad * math.sqrt(2.0 / c)
        slope = freq / c * torch.cos(phase) / x - torch.sin(phase) / x**2
        grad_r = (scaled * slope).sum(dim=0)
        grad_f = (scaled * torch.cos(phase) / c).sum(dim=0)
        return grad_r, grad_f, None


class BesselRadial(nn.Module):
    """Radial Bessel features of a vector of distances, with trainable frequencies."""

    def __init__(self, n_basis=6, cutoff=4.0):
        super().__init__()
        self.cutoff = cutoff
        self.freq = nn.Parameter(math.pi * torch.arange(1, n_basis + 1).float())

    def forward(self, r):
        if r.dim() != 1:
            raise ValueError("expected a flat tensor of distances")
        return _BesselFn.apply(r, self.freq, self.cutoff)


class PairRepulsionSum(Function):
    """Per-atom sum over all the others of exp(-r_ij / length)."""

    @staticmethod
    def forward(ctx, pos, length=0.7):
        eye = torch.eye(pos.size(0), dtype=pos.dtype, device=pos.device)
        sq = ((pos[:, None] - pos[None]) ** 2).sum(-1)
        ctx.save_for_backward(pos)
        ctx.length = length
        return (torch.exp(-sq.sqrt() / length) * (1.0 - eye)).sum(1)

    @staticmethod
    def backward(ctx, grad_out):
        (pos,) = ctx.saved_tensors
        eye = torch.eye(pos.size(0), dtype=pos.dtype, device=pos.device)
        diff = pos[:, None] - pos[None]
        r = (diff**2).sum(-1).sqrt()
        e = torch.exp(-r / ctx.length) * (1.0 - eye)
        coef = -e / (ctx.length * r) * (grad_out[:, None] + grad_out[None])
        return (coef.unsqueeze(-1) * diff).sum(1), None


class SwitchingFunction(Function):
    """1 below r_on, 0 above r_off and a quintic in between."""

    @staticmethod
    def forward(ctx, r, r_on=1.0, r_off=2.0):
        if r_off <= r_on:
            raise ValueError("r_off must lie above r_on")
        t = ((r - r_on) / (r_off - r_on)).clamp(0.0, 1.0)
        ctx.save_for_backward(r)
        ctx.bounds = (r_on, r_off)
        return 1.0 - t**3 * (10.0 - 15.0 * t + 6.0 * t**2)

    @staticmethod
    def backward(ctx, grad_s):
        (r,) = ctx.saved_tensors
        lo, hi = ctx.bounds
        t = (r - lo) / (hi - lo)
        slope = -30.0 * t**2 * (1.0 - t) ** 2 / (hi - lo)
        inside = r > lo
        return grad_s * slope * inside, None, None
