"""Differentiable bits of the simulator: rotations, intersections, fluxes, integrators."""
import math

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class QuatRotate(Function):
    """Rotate points by quaternions (w, x, y, z). q is taken as it is, not normalised."""

    @staticmethod
    def forward(ctx, q, v):
        if q.shape[-1] != 4 or v.shape[-1] != 3 or q.dim() != v.dim():
            raise ValueError("expected q (..., 4) and v (..., 3)")
        ctx.save_for_backward(q, v)
        w, u = q[..., :1], q[..., 1:]
        t = 2.0 * torch.linalg.cross(u, v)
        return v + w * t + torch.linalg.cross(u, t)

    @staticmethod
    def backward(ctx, grad):
        q, v = ctx.saved_tensors
        w, u = q[..., :1], q[..., 1:]
        t = 2.0 * torch.linalg.cross(u, v)
        gt = w * grad + torch.linalg.cross(grad, u)
        gw = (grad * t).sum(-1, keepdim=True)
        gu = torch.linalg.cross(t, grad) + 2.0 * torch.linalg.cross(v, gt)
        gv = grad + 2.0 * torch.linalg.cross(gt, u)
        return torch.cat([gw, gu], dim=-1), gv


def quat_rotate(q, v):
    return QuatRotate.apply(q, v)


class Rotation6D(Function):
    """Gram-Schmidt on two 3-vectors, (..., 6) -> (..., 3, 3), rows orthonormal."""

    @staticmethod
    def _frames(d6):
        a1, a2 = d6[..., :3], d6[..., 3:]
        n1 = a1.norm(dim=-1, keepdim=True)
        b1 = a1 / n1
        dot = (b1 * a2).sum(-1, keepdim=True)
        r = a2 - dot * b1
        n2 = r.norm(dim=-1, keepdim=True)
        return a2, n1, b1, dot, n2, r / n2

    @staticmethod
    def forward(ctx, d6):
        assert d6.size(-1) == 6
        ctx.save_for_backward(d6)
        _, _, b1, _, _, b2 = Rotation6D._frames(d6)
        return torch.stack((b1, b2, torch.linalg.cross(b1, b2)), dim=-2)

    @staticmethod
    def backward(ctx, grad):
        (d6,) = ctx.saved_tensors
        a2, n1, b1, dot, n2, b2 = Rotation6D._frames(d6)
        g1, g2, g3 = grad.unbind(-2)
        # third row
        g1 = g1 + torch.linalg.cross(b2, g3)
        g2 = g2 + torch.linalg.cross(g3, b1)
        # second row
        gr = (g2 - (g2 * b2).sum(-1, keepdim=True) * b2) / n2
        along = (gr * b1).sum(-1, keepdim=True)
        ga2 = gr - along * b1
        # first row
        g1 = g1 - dot * gr - along * a2
        ga1 = (g1 - (g1 * b1).sum(-1, keepdim=True) * b1) / n1
        return torch.cat([ga1, ga2], dim=-1)


class RaySphere(Function):
    """Distance along each ray to the near side of one sphere, and a hit mask.

    origins, dirs: (R, 3); center: (3,); radius: 0-d. Rays that miss get t = 0.
    """

    @staticmethod
    def forward(ctx, origins, dirs, center, radius):
        oc = origins - center
        a = (dirs * dirs).sum(-1)
        b = (oc * dirs).sum(-1)
        c = (oc * oc).sum(-1) - radius ** 2
        disc = b * b - a * c
        t = (-b - disc.clamp(min=0).sqrt()) / a
        hit = (disc > 0) & (t > 0)
        t = torch.where(hit, t, torch.zeros_like(t))
        ctx.mark_non_differentiable(hit)
        ctx.save_for_backward(origins, dirs, center, radius, t, hit)
        return t, hit

    @staticmethod
    def backward(ctx, grad_t, _):
        origins, dirs, center, radius, t, hit = ctx.saved_tensors
        n = origins + t.unsqueeze(-1) * dirs - center
        nd = (n * dirs).sum(-1)
        s = torch.where(hit, grad_t / torch.where(hit, nd, torch.ones_like(nd)), torch.zeros_like(nd))
        sn = s.unsqueeze(-1) * n
        return -sn, -t.unsqueeze(-1) * sn, sn.sum_to_size(center.shape), (s * radius).sum_to_size(radius.shape)


class Barycentric(Function):
    """Barycentric coordinates of 2-d points in triangles (one triangle per point)."""

    @staticmethod
    def forward(ctx, p, a, b, c):
        if not (p.shape == a.shape == b.shape == c.shape) or p.shape[-1] != 2:
            raise ValueError("all of p, a, b, c must be (N, 2)")
        e1, e2, ep = b - a, c - a, p - a
        det = e1[:, 0] * e2[:, 1] - e1[:, 1] * e2[:, 0]
        wb = (ep[:, 0] * e2[:, 1] - ep[:, 1] * e2[:, 0]) / det
        wc = (e1[:, 0] * ep[:, 1] - e1[:, 1] * ep[:, 0]) / det
        w = torch.stack([1 - wb - wc, wb, wc], dim=1)
        ctx.save_for_backward(a, b, c, w)
        return w

    @staticmethod
    def backward(ctx, g):
        a, b, c, w = ctx.saved_tensors
        e1, e2 = b - a, c - a
        det = e1[:, 0] * e2[:, 1] - e1[:, 1] * e2[:, 0]
        hb, hc = g[:, 1] - g[:, 0], g[:, 2] - g[:, 0]
        gx = (e2[:, 1] * hb - e1[:, 1] * hc) / det
        gy = (e1[:, 0] * hc - e2[:, 0] * hb) / det
        gp = torch.stack([gx, gy], dim=1)
        # p = wa * a + wb * b + wc * c holds for every p, so each vertex gets -w * gp
        wa, wb, wc = w.split(1, dim=1)
        return gp, -wa * gp, -wb * gp, -wc * gp


class RusanovRHS(Function):
    """du/dt of Burgers' equation, local Lax-Friedrichs fluxes, periodic in the last axis."""

    @staticmethod
    def forward(ctx, u, dx=1.0):
        ul, ur = u, torch.roll(u, -1, dims=-1)
        alpha = torch.maximum(ul.abs(), ur.abs())
        flux = 0.25 * (ul * ul + ur * ur) - 0.5 * alpha * (ur - ul)
        ctx.save_for_backward(u)
        ctx.dx = dx
        return -(flux - torch.roll(flux, 1, dims=-1)) / dx

    @staticmethod
    def backward(ctx, g):
        (u,) = ctx.saved_tensors
        ul, ur = u, torch.roll(u, -1, dims=-1)
        alpha = torch.maximum(ul.abs(), ur.abs())
        left = ul.abs() >= ur.abs()
        jump = ur - ul
        g_flux = (torch.roll(g, -1, dims=-1) - g) / ctx.dx
        d_l = 0.5 * ul + 0.5 * alpha - 0.5 * jump * torch.sign(ul) * left
        d_r = 0.5 * ur - 0.5 * alpha - 0.5 * jump * torch.sign(ur) * ~left
        return g_flux * d_l + torch.roll(g_flux * d_r, 1, dims=-1), None


class HermiteSpline(Function):
    """Cubic Hermite curve with knots 0..n-1 (values y, slopes m), read at positions t."""

    @staticmethod
    def forward(ctx, y, m, t):
        assert y.dim() == 1 and y.shape == m.shape and y.numel() >= 2
        i = t.detach().floor().long().clamp(0, y.numel() - 2)
        s = t - i
        ctx.save_for_backward(y, m, s, i)
        h00 = (1 + 2 * s) * (1 - s) ** 2
        h10 = s * (1 - s) ** 2
        h01 = s ** 2 * (3 - 2 * s)
        h11 = s ** 2 * (s - 1)
        return h00 * y[i] + h10 * m[i] + h01 * y[i + 1] + h11 * m[i + 1]

    @staticmethod
    def backward(ctx, g):
        y, m, s, i = ctx.saved_tensors
        gy = torch.zeros_like(y)
        gm = torch.zeros_like(m)
        gy.index_put_((i,), g * (1 + 2 * s) * (1 - s) ** 2, accumulate=True)
        gy.index_put_((i + 1,), g * s ** 2 * (3 - 2 * s), accumulate=True)
        gm.index_put_((i,), g * s * (1 - s) ** 2, accumulate=True)
        gm.index_put_((i + 1,), g * s ** 2 * (s - 1), accumulate=True)
        slope = 6 * s * (s - 1) * (y[i] - y[i + 1])
        slope = slope + (3 * s ** 2 - 4 * s + 1) * m[i] + (3 * s ** 2 - 2 * s) * m[i + 1]
        return gy, gm, g * slope


class PendulumMidpoint(Function):
    """One explicit midpoint step of theta'' = -k sin(theta)."""

    @staticmethod
    def forward(ctx, theta, omega, k, dt=0.05):
        th_h = theta + 0.5 * dt * omega
        om_h = omega - 0.5 * dt * k * theta.sin()
        ctx.save_for_backward(theta, omega, k)
        ctx.dt = dt
        return theta + dt * om_h, omega - dt * k * th_h.sin()

    @staticmethod
    def backward(ctx, g_theta, g_omega):
        theta, omega, k = ctx.saved_tensors
        dt = ctx.dt
        th_h = theta + 0.5 * dt * omega
        g_om_h = dt * g_theta
        g_th_h = -dt * k * th_h.cos() * g_omega
        d_theta = g_theta + g_th_h - 0.5 * dt * k * theta.cos() * g_om_h
        d_omega = g_omega + g_om_h + 0.5 * dt * g_th_h
        d_k = -dt * th_h.sin() * g_omega - 0.5 * dt * theta.sin() * g_om_h
        return d_theta, d_omega, d_k.sum_to_size(k.shape), None


class EccentricAnomaly(Function):
    """Solve Kepler's equation E - e sin E = M for E. 0 <= e < 1."""

    @staticmethod
    def forward(mean_anom, ecc, n_iter=20):
        if bool((ecc < 0).any()) or bool((ecc >= 1).any()):
            raise ValueError("eccentricity out of [0, 1)")
        E = mean_anom + 0.85 * ecc * torch.sign(torch.sin(mean_anom))
        for _ in range(n_iter):
            E = E - (E - ecc * torch.sin(E) - mean_anom) / (1 - ecc * torch.cos(E))
        return E

    @staticmethod
    def setup_context(ctx, inputs, output):
        mean_anom, ecc, _ = inputs
        ctx.m_shape = mean_anom.shape
        ctx.save_for_backward(output, ecc)

    @staticmethod
    def backward(ctx, g):
        E, ecc = ctx.saved_tensors
        gm = g / (1 - ecc * torch.cos(E))
        ge = gm * torch.sin(E)
        return gm.sum_to_size(ctx.m_shape), ge.sum_to_size(ecc.shape), None


def eccentric_anomaly(mean_anom, ecc, n_iter=20):
    return EccentricAnomaly.apply(mean_anom, ecc, n_iter)


class PairDistances(Function):
    """All distances between rows of x, (N, D) -> (N, N). Zero on the diagonal."""

    @staticmethod
    def forward(ctx, x):
        assert x.dim() == 2
        d = (x.unsqueeze(1) - x.unsqueeze(0)).pow(2).sum(-1).sqrt()
        ctx.save_for_backward(x, d)
        return d

    @staticmethod
    def backward(ctx, g):
        x, d = ctx.saved_tensors
        apart = d > 0
        w = torch.where(apart, g / torch.where(apart, d, torch.ones_like(d)), torch.zeros_like(d))
        w = w + w.t()
        return w.sum(1, keepdim=True) * x - w @ x


class _FixedPoint(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, n_iter, tol):
        z = torch.zeros_like(x)
        for _ in range(n_iter):
            z_new = torch.tanh(z @ weight.t() + x + bias)
            done = (z_new - z).abs().max() < tol
            z = z_new
            if done:
                break
        ctx.save_for_backward(z, weight)
        ctx.n_iter, ctx.tol = n_iter, tol
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_z):
        z, weight = ctx.saved_tensors
        d = 1 - z * z
        v = d * grad_z
        for _ in range(ctx.n_iter):
            v_new = d * (grad_z + v @ weight)
            done = (v_new - v).abs().max() < ctx.tol
            v = v_new
            if done:
                break
        return v, v.t() @ z, v.sum(0), None, None


class EquilibriumLayer(nn.Module):
    """z = tanh(W z + x + b), solved by iteration; W is scaled to stay a contraction."""

    def __init__(self, features, n_iter=300, tol=1e-13):
        super().__init__()
        w = torch.randn(features, features) / math.sqrt(features)
        self.weight = nn.Parameter(0.5 * w / torch.linalg.matrix_norm(w, 2))
        self.bias = nn.Parameter(torch.zeros(features))
        self.n_iter = n_iter
        self.tol = tol

    def forward(self, x):
        return _FixedPoint.apply(x, self.weight, self.bias, self.n_iter, self.tol)
