"""Differentiable pieces of the toy engine: bodies, cloth, smoke, shading."""

import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional as F


class SpringForces(Function):
    """Net spring force on every particle of a cloth.

    springs is (E, 2); Hooke's law with rest lengths (E,) and one stiffness.
    """

    @staticmethod
    def forward(ctx, pos, springs, rest, stiffness=10.0):
        i, j = springs[:, 0], springs[:, 1]
        d = pos[j] - pos[i]
        length = d.norm(dim=1, keepdim=True)
        f = stiffness * (1.0 - rest[:, None] / length) * d
        ctx.save_for_backward(pos, springs, rest)
        ctx.stiffness = stiffness
        return torch.zeros_like(pos).index_add_(0, i, f).index_add_(0, j, -f)

    @staticmethod
    def backward(ctx, grad_force):
        pos, springs, rest = ctx.saved_tensors
        i, j = springs[:, 0], springs[:, 1]
        d = pos[j] - pos[i]
        length = d.norm(dim=1, keepdim=True)
        n = d / length
        g = ctx.stiffness * (grad_force[i] - grad_force[j])
        along = (n * g).sum(1, keepdim=True)
        slack = rest[:, None] / length
        g_d = (1.0 - slack) * g + slack * along * n
        grad_pos = torch.zeros_like(pos).index_add(0, j, g_d).index_add(0, i, -g_d)
        return grad_pos, None, -along.squeeze(1), None


def _periodic_taps(vel, dt):
    _, h, w = vel.shape
    ys = torch.arange(h, dtype=vel.dtype, device=vel.device)[:, None] - dt * vel[0]
    xs = torch.arange(w, dtype=vel.dtype, device=vel.device)[None, :] - dt * vel[1]
    y0, x0 = ys.detach().floor(), xs.detach().floor()
    r0, c0 = y0.long() % h, x0.long() % w
    r1, c1 = (r0 + 1) % h, (c0 + 1) % w
    idx = [(r * w + c).reshape(-1) for r in (r0, r1) for c in (c0, c1)]
    return idx, (ys - y0).reshape(-1), (xs - x0).reshape(-1)


class AdvectPeriodic(Function):
    """Semi-Lagrangian step of an (H, W) density on a torus; vel is (2, H, W)."""

    @staticmethod
    def forward(ctx, rho: torch.Tensor, vel: torch.Tensor, dt: float = 1.0):
        idx, fy, fx = _periodic_taps(vel, dt)
        a, b, c, d = (rho.reshape(-1)[i] for i in idx)
        ctx.save_for_backward(rho, vel)
        ctx.dt = dt
        top, bottom = torch.lerp(a, b, fx), torch.lerp(c, d, fx)
        return torch.lerp(top, bottom, fy).view(rho.shape)

    @staticmethod
    def backward(ctx, grad_out: torch.Tensor):
        rho, vel = ctx.saved_tensors
        idx, fy, fx = _periodic_taps(vel, ctx.dt)
        g = grad_out.reshape(-1)
        grad_rho = grad_vel = None
        if ctx.needs_input_grad[0]:
            taps = [(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx]
            grad_rho = g.new_zeros(g.shape)
            for i, weight in zip(idx, taps):
                grad_rho = grad_rho.index_add(0, i, g * weight)
            grad_rho = grad_rho.view(rho.shape)
        if ctx.needs_input_grad[1]:
            a, b, c, d = (rho.reshape(-1)[i] for i in idx)
            dy = (1 - fx) * (c - a) + fx * (d - b)
            dx = (1 - fy) * (b - a) + fy * (d - c)
            grad_vel = -ctx.dt * torch.stack([g * dy, g * dx]).view(vel.shape)
        return grad_rho, grad_vel, None


class QuatRotate(Function):
    """Rotates v (N, 3) by q (N, 4) = (w, x, y, z); any q but 0 will do."""

    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        unit = F.normalize(q, dim=-1)
        w, u = unit[:, :1], unit[:, 1:]
        t = 2.0 * torch.linalg.cross(u, v)
        return v + w * t + torch.linalg.cross(u, t)

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        norm = q.norm(dim=-1, keepdim=True)
        unit = q / norm
        w, u = unit[:, :1], unit[:, 1:]
        t = 2.0 * torch.linalg.cross(u, v)
        g_t = w * g + torch.linalg.cross(g, u)
        g_w = (g * t).sum(-1, keepdim=True)
        g_u = torch.linalg.cross(t, g) + 2.0 * torch.linalg.cross(v, g_t)
        g_v = g + 2.0 * torch.linalg.cross(g_t, u)
        g_unit = torch.cat([g_w, g_u], dim=-1)
        g_q = (g_unit - unit * (unit * g_unit).sum(-1, keepdim=True)) / norm
        return g_q, g_v


# what the debug overlay draws: the particles that touched the ball last
_OVERLAY = {}


class _PushOut(Function):
    @staticmethod
    def forward(ctx, pos, center, radius):
        d = pos - center
        dist = d.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        hit = dist < radius
        _OVERLAY["hit"] = hit
        ctx.save_for_backward(pos, center, hit)
        ctx.radius = radius
        return torch.where(hit, center + radius * d / dist, pos)

    @staticmethod
    def backward(ctx, grad):
        pos, center, hit = ctx.saved_tensors
        d = pos - center
        dist = d.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        n = d / dist
        slide = ctx.radius / dist * (grad - n * (n * grad).sum(-1, keepdim=True))
        grad_pos = torch.where(hit, slide, grad)
        return grad_pos, (grad - grad_pos).sum(0), None


class BallCollider(nn.Module):
    """Moves particles in substeps and keeps them out of a ball that can be fitted."""

    def __init__(self, radius=1.0, substeps=2):
        super().__init__()
        self.radius, self.substeps = radius, substeps
        self.center = nn.Parameter(torch.zeros(3))

    def forward(self, pos, vel, dt=0.1):
        h = dt / self.substeps
        for _ in range(self.substeps):
            pos = _PushOut.apply(pos + h * vel, self.center, self.radius)
        return pos


class _DragStep(Function):
    """Semi-implicit Euler with linear drag; returns the new (x, v)."""

    @staticmethod
    def forward(ctx, x, v, accel, dt, drag):
        ctx.set_materialize_grads(False)
        ctx.dt, ctx.decay = dt, 1.0 / (1.0 + drag * dt)
        ctx.accel_shape = accel.shape
        v_new = (v + dt * accel) * ctx.decay
        return x + dt * v_new, v_new

    @staticmethod
    def backward(ctx, grad_x, grad_v):
        if grad_x is None and grad_v is None:
            return None, None, None, None, None
        total = grad_v
        if grad_x is not None:
            total = ctx.dt * grad_x if grad_v is None else grad_v + ctx.dt * grad_x
        g_v = total * ctx.decay
        return grad_x, g_v, (ctx.dt * g_v).sum_to_size(ctx.accel_shape), None, None


class BallisticTracker(nn.Module):
    """Where thrown balls are after a number of frames."""

    def __init__(self, frames=3, dt=0.05, drag=0.2):
        super().__init__()
        self.frames, self.dt, self.drag = frames, dt, drag
        self.gravity = nn.Parameter(torch.tensor([0.0, -9.81, 0.0]))

    def forward(self, x, v):
        for _ in range(self.frames):
            x, v = _DragStep.apply(x, v, self.gravity, self.dt, self.drag)
        return x


class SoftDiscs(Function):
    """Coverage (H, W) of soft discs: 1 - prod_k (1 - sigmoid(sharp (r_k - dist_k)))."""

    @staticmethod
    def forward(ctx, centers, radii, size, sharp=4.0):
        ctx.size, ctx.sharp = size, sharp
        _, dist = SoftDiscs._offsets(centers, size)
        s = torch.sigmoid(sharp * (radii[:, None, None] - dist))
        cover = 1.0 - (1.0 - s).prod(dim=0)
        ctx.save_for_backward(centers, radii, cover)
        return cover

    @staticmethod
    def _offsets(centers, size):
        kw = dict(dtype=centers.dtype, device=centers.device)
        ys, xs = (torch.arange(n, **kw) + 0.5 for n in size)
        grid = torch.stack(torch.meshgrid(ys, xs, indexing="ij"), dim=-1)
        off = grid - centers[:, None, None, :]
        return off, (off.square().sum(-1) + 1e-12).sqrt()

    @staticmethod
    def backward(ctx, grad_cover):
        centers, radii, cover = ctx.saved_tensors
        off, dist = SoftDiscs._offsets(centers, ctx.size)
        s = torch.sigmoid(ctx.sharp * (radii[:, None, None] - dist))
        open_part = grad_cover * (1.0 - cover)
        g = ctx.sharp * open_part * s
        grad_centers = (g.unsqueeze(-1) * off / dist.unsqueeze(-1)).sum((1, 2))
        return grad_centers, g.sum((1, 2)), None, None


class VolumeRender(Function):
    """Emission-absorption along rays: sigma, delta (R, S), rgb (R, S, 3) -> (R, 3)."""

    @staticmethod
    def forward(ctx, sigma, rgb, delta, background=0.0):
        if ctx.needs_input_grad[2]:
            raise NotImplementedError("step lengths are taken as given")
        tau = sigma * delta
        trans = torch.exp(tau - tau.cumsum(-1))
        weight = trans * (1.0 - torch.exp(-tau))
        ctx.save_for_backward(sigma, rgb, delta)
        ctx.background = background
        return background + (weight.unsqueeze(-1) * (rgb - background)).sum(1)

    @staticmethod
    def backward(ctx, grad_pixel):
        sigma, rgb, delta = ctx.saved_tensors
        tau = sigma * delta
        trans = torch.exp(tau - tau.cumsum(-1))
        weight = trans * (1.0 - torch.exp(-tau))
        g_w = (grad_pixel.unsqueeze(1) * (rgb - ctx.background)).sum(-1)
        lost = weight * g_w
        behind = lost.flip(-1).cumsum(-1).flip(-1) - lost
        g_tau = g_w * trans * torch.exp(-tau) - behind
        g_rgb = weight.unsqueeze(-1) * grad_pixel.unsqueeze(1)
        return g_tau * delta, g_rgb, None, None


class BoxDistance(Function):
    """Signed distance of points (N, D) to an axis-aligned box with half extents (D,)."""

    @staticmethod
    def forward(ctx, points, half):
        q = points.abs() - half
        ctx.save_for_backward(points, half)
        return q.clamp(min=0).norm(dim=-1) + q.amax(dim=-1).clamp(max=0)

    @staticmethod
    def backward(ctx, grad_dist):
        points, half = ctx.saved_tensors
        q = points.abs() - half
        outer = q.clamp(min=0)
        away = outer / outer.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        nearest = F.one_hot(q.argmax(dim=-1), q.size(-1)).to(q.dtype)
        is_out = (q > 0).any(dim=-1, keepdim=True)
        g_q = grad_dist.unsqueeze(-1) * torch.where(is_out, away, nearest)
        return g_q * points.sign(), -g_q.sum(dim=0)


class JacobiPressure(Function):
    """Pressure after a number of Jacobi sweeps from zero; walls of zero pressure."""

    @staticmethod
    def _sweeps(rhs, dy, dx, count):
        cy, cx = 1.0 / dy**2, 1.0 / dx**2
        p = torch.zeros_like(rhs)
        for _ in range(count):
            pad = F.pad(p, (1, 1, 1, 1))
            near = cy * (pad[:-2, 1:-1] + pad[2:, 1:-1])
            near = near + cx * (pad[1:-1, :-2] + pad[1:-1, 2:])
            p = (near - rhs) / (2.0 * (cy + cx))
        return p

    @staticmethod
    def forward(ctx, divergence, spacing=(1.0, 1.0), sweeps=20):
        ctx.spacing, ctx.sweeps = spacing, sweeps
        return JacobiPressure._sweeps(divergence, *spacing, sweeps)

    @staticmethod
    def backward(ctx, grad_p):
        # the sweeps are linear and symmetric in the right-hand side
        return JacobiPressure._sweeps(grad_p, *ctx.spacing, ctx.sweeps), None, None


class LambertShade(Function):
    """albedo * (ambient + max(n . l, 0)) with l the normalised light vector."""

    @staticmethod
    def forward(ctx, normals, light, albedo, ambient=0.1):
        cos = normals @ (light / light.norm())
        ctx.save_for_backward(normals, light, albedo)
        ctx.ambient = ambient
        return albedo * (ambient + cos.clamp(min=0.0))

    @staticmethod
    def backward(ctx, grad):
        normals, light, albedo = ctx.saved_tensors
        size = light.norm()
        direction = light / size
        cos = normals @ direction
        g_cos = grad * albedo * (cos > 0)
        g_dir = normals.t() @ g_cos
        g_light = (g_dir - direction * (direction * g_dir).sum()) / size
        g_albedo = grad * (ctx.ambient + cos.clamp(min=0.0))
        return g_cos[:, None] * direction, g_light, g_albedo, None
