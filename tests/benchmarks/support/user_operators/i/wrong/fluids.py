"""Pieces of small differentiable flow solvers."""

import math
from typing import Optional

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ScalarTransportStep(Function):
    """One conservative explicit step of a scalar on a periodic line.

    Args:
        q: (..., cells) cell averages.
        speed: (..., cells) or (cells,), speed at the right face of each cell; broadcasts
            against ``q``.
        ratio: time step over cell width.
        scheme: "upwind", "central" or "lax_wendroff".
    """

    @staticmethod
    def forward(ctx, q, speed, ratio, scheme="upwind"):
        if scheme not in ("upwind", "central", "lax_wendroff"):
            raise ValueError(f"unknown scheme {scheme!r}")
        ahead = q.roll(-1, -1)
        if scheme == "upwind":
            flux = speed.clamp(min=0) * q + speed.clamp(max=0) * ahead
        else:
            flux = 0.5 * speed * (q + ahead)
            if scheme == "lax_wendroff":
                flux = flux - 0.5 * ratio * speed * speed * (ahead - q)
        ctx.save_for_backward(q, speed)
        ctx.ratio = ratio
        ctx.scheme = scheme
        return q - ratio * (flux - flux.roll(1, -1))

    @staticmethod
    def backward(ctx, grad):
        q, speed = ctx.saved_tensors
        ahead = q.roll(-1, -1)
        d_flux = -ctx.ratio * (grad - grad.roll(-1, -1))
        if ctx.scheme == "upwind":
            own, other = speed.clamp(min=0), speed.clamp(max=0)
            d_speed = torch.where(speed >= 0, q, ahead)
        elif ctx.scheme == "central":
            own = other = 0.5 * speed
            d_speed = 0.5 * (q + ahead)
        else:
            half = 0.5 * ctx.ratio * speed * speed
            own, other = 0.5 * speed + half, 0.5 * speed - half
            d_speed = 0.5 * (q + ahead) - 0.5 * ctx.ratio * speed * (ahead - q)
        d_q = None
        if ctx.needs_input_grad[0]:
            d_q = (grad + d_flux * own + (d_flux * other).roll(1, -1)).sum_to_size(q.shape)
        d_speed = (d_flux * d_speed).sum_to_size(speed.shape) if ctx.needs_input_grad[1] else None
        return d_q, d_speed, None, None


def _helmholtz(rhs: Tensor, kappa: Tensor, dx: float, dy: float) -> Tensor:
    height, width = rhs.shape[-2:]
    kx = 2 * math.pi * torch.arange(width, dtype=rhs.dtype, device=rhs.device) / width
    ky = 2 * math.pi * torch.arange(height, dtype=rhs.dtype, device=rhs.device) / height
    symbol = (2 - 2 * kx.cos()) / dx**2 + ((2 - 2 * ky.cos()) / dy**2).unsqueeze(1) + kappa
    return torch.fft.ifft2(torch.fft.fft2(rhs) / symbol).real


class HelmholtzPeriodic(Function):
    """Solves ``kappa p - laplace(p) = rhs`` on a periodic grid, kappa a positive scalar."""

    @staticmethod
    def forward(rhs, kappa, dx=1.0, dy=1.0):
        if kappa.dim() != 0 or float(kappa) <= 0:
            raise ValueError("kappa must be a positive scalar tensor")
        return _helmholtz(rhs, kappa, dx, dy)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, kappa, ctx.dx, ctx.dy = inputs
        ctx.save_for_backward(kappa, output)
        ctx.save_for_forward(kappa, output)

    @staticmethod
    def backward(ctx, grad):
        kappa, pressure = ctx.saved_tensors
        adjoint = _helmholtz(grad, kappa, ctx.dy, ctx.dx)
        d_kappa = -(adjoint * pressure).sum() if ctx.needs_input_grad[1] else None
        return adjoint if ctx.needs_input_grad[0] else None, d_kappa, None, None

    @staticmethod
    def jvp(ctx, t_rhs, t_kappa, *_):
        kappa, pressure = ctx.saved_tensors
        source = torch.zeros_like(pressure)
        if t_rhs is not None:
            source = source + t_rhs
        if t_kappa is not None:
            source = source - t_kappa * pressure
        return _helmholtz(source, kappa, ctx.dx, ctx.dy)


def _thomas(lower, diag, upper, rhs):
    """Tridiagonal solve along the last axis; lower[0] and upper[-1] are not used."""
    n = rhs.shape[-1]
    c, d = [upper[0] / diag[0]], [rhs[..., 0] / diag[0]]
    for i in range(1, n):
        pivot = diag[i] - lower[i] * c[-1]
        c.append(upper[i] / pivot)
        d.append((rhs[..., i] - lower[i] * d[-1]) / pivot)
    x = [d[-1]]
    for i in range(n - 2, -1, -1):
        x.append(d[i] - c[i] * x[-1])
    return torch.stack(x[::-1], dim=-1)


class ImplicitDiffusionStep(Function):
    """Backward-Euler diffusion on cells of given widths, closed at both ends.

    u: (..., cells), conductivity: (cells - 1,) at the inner faces, widths: (cells,).
    The grid is fixed: widths that require a gradient are refused.
    """

    @staticmethod
    def _bands(conductivity, widths, dt):
        reach = 0.5 * (widths[1:] + widths[:-1])
        link = dt * conductivity / reach
        zero = link.new_zeros(1)
        upper = -torch.cat([link, zero]) / widths
        lower = -torch.cat([zero, link]) / widths
        return lower, 1 - lower - upper, upper

    @staticmethod
    def forward(ctx, u, conductivity, widths, dt):
        if ctx.needs_input_grad[2]:
            raise ValueError("widths must not require a gradient")
        if len(widths) < 2:
            raise ValueError("need two cells or more")
        if len(conductivity) != len(widths) - 1 or u.shape[-1] != len(widths):
            raise ValueError("need one width per cell and one conductivity per inner face")
        out = _thomas(*ImplicitDiffusionStep._bands(conductivity, widths, dt), u)
        ctx.save_for_backward(conductivity, widths, out)
        ctx.dt = dt
        return out

    @staticmethod
    def backward(ctx, grad):
        conductivity, widths, out = ctx.saved_tensors
        lower, diag, upper = ImplicitDiffusionStep._bands(conductivity, widths, ctx.dt)
        adjoint = _thomas(lower, diag, upper, grad)
        d_cond = None
        if ctx.needs_input_grad[1]:
            scaled = adjoint / widths
            reach = 0.5 * (widths[1:] + widths[:-1])
            d_cond = -ctx.dt * scaled.diff(dim=-1) * out.diff(dim=-1) / reach
            d_cond = d_cond.reshape(-1, len(conductivity)).sum(0)
        return adjoint if ctx.needs_input_grad[0] else None, d_cond, None, None


def _arakawa(a, b, dx, dy):
    def at(f, i, j):
        return f.roll((-j, -i), (-2, -1))

    ae, aw, an, as_ = at(a, 1, 0), at(a, -1, 0), at(a, 0, 1), at(a, 0, -1)
    be, bw, bn, bs = at(b, 1, 0), at(b, -1, 0), at(b, 0, 1), at(b, 0, -1)
    ane, anw, ase, asw = at(a, 1, 1), at(a, -1, 1), at(a, 1, -1), at(a, -1, -1)
    bne, bnw, bse, bsw = at(b, 1, 1), at(b, -1, 1), at(b, 1, -1), at(b, -1, -1)
    j1 = (ae - aw) * (bn - bs) - (an - as_) * (be - bw)
    j2 = ae * (bne - bse) - aw * (bnw - bsw) - an * (bne - bnw) + as_ * (bse - bsw)
    j3 = bn * (ane - anw) - bs * (ase - asw) - be * (ane - ase) + bw * (anw - asw)
    return (j1 + j2 + j3) / (12 * dx * dy)


class ArakawaJacobian(Function):
    @staticmethod
    def forward(stream, vorticity, dx=1.0, dy=1.0):
        if stream.shape != vorticity.shape:
            raise ValueError("stream and vorticity must have one shape")
        return _arakawa(stream, vorticity, dx, dy)

    @staticmethod
    def setup_context(ctx, inputs, output):
        stream, vorticity, ctx.dx, ctx.dy = inputs
        ctx.save_for_backward(stream, vorticity)
        ctx.save_for_forward(stream, vorticity)

    @staticmethod
    def backward(ctx, grad):
        stream, vorticity = ctx.saved_tensors
        d_stream = d_vort = None
        if ctx.needs_input_grad[0]:
            d_stream = _arakawa(vorticity, grad, ctx.dx, ctx.dy)
        if ctx.needs_input_grad[1]:
            d_vort = _arakawa(stream, grad, ctx.dx, ctx.dy)
        return d_stream, d_vort, None, None

    @staticmethod
    def jvp(ctx, t_stream, t_vort, *_):
        stream, vorticity = ctx.saved_tensors
        out = torch.zeros_like(stream)
        if t_stream is not None:
            out = out + _arakawa(t_stream, vorticity, ctx.dx, ctx.dy)
        if t_vort is not None:
            out = out + _arakawa(stream, t_vort, ctx.dx, ctx.dy)
        return out


class BacktraceAdvect(Function):
    """Semi-Lagrangian step on a periodic grid, speeds in cells per unit time."""

    @staticmethod
    def _upstream(u, v, dt):
        height, width = u.shape
        x = torch.arange(width, dtype=u.dtype, device=u.device) - dt * u
        y = torch.arange(height, dtype=u.dtype, device=u.device).unsqueeze(1) - dt * v
        x0, y0 = x.detach().floor(), y.detach().floor()
        fx, fy = (x - x0).reshape(-1), (y - y0).reshape(-1)
        left, up = x0.long().remainder(width), y0.long().remainder(height)
        right, down = (left + 1) % width, (up + 1) % height
        cells = [(r * width + c).reshape(-1) for r in (up, down) for c in (left, right)]
        return fx, fy, cells

    @staticmethod
    def forward(ctx, field, u, v, dt=1.0):
        if field.dim() != 2 or field.shape != u.shape or field.shape != v.shape:
            raise ValueError("field, u and v must be (height, width)")
        fx, fy, cells = BacktraceAdvect._upstream(u, v, dt)
        f00, f01, f10, f11 = (field.reshape(-1)[c] for c in cells)
        out = (1 - fy) * ((1 - fx) * f00 + fx * f01) + fy * ((1 - fx) * f10 + fx * f11)
        ctx.save_for_backward(field, u, v)
        ctx.dt = dt
        return out.view(field.shape)

    @staticmethod
    def backward(ctx, grad):
        field, u, v = ctx.saved_tensors
        fx, fy, cells = BacktraceAdvect._upstream(u, v, ctx.dt)
        g = grad.reshape(-1)
        d_field = d_u = d_v = None
        if ctx.needs_input_grad[0]:
            d_field = g.new_zeros(field.numel())
            shares = ((1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx)
            for cell, share in zip(cells, shares):
                d_field = d_field.index_add(0, cell, g * share)
            d_field = d_field.view(field.shape)
        flat = field.as_strided((field.numel(),), (1,))
        f00, f01, f10, f11 = (flat[c] for c in cells)
        if ctx.needs_input_grad[1]:
            slope = (1 - fy) * (f01 - f00) + fy * (f11 - f10)
            d_u = (-ctx.dt * g * slope).view(u.shape)
        if ctx.needs_input_grad[2]:
            slope = (1 - fx) * (f10 - f00) + fx * (f11 - f01)
            d_v = (-ctx.dt * g * slope).view(v.shape)
        return d_field, d_u, d_v, None


class ParticleDensity(Function):
    """Density of particles by summation with the cubic spline kernel."""

    @staticmethod
    def _reduced(positions, h):
        gap = positions.unsqueeze(1) - positions.unsqueeze(0)
        dist_sq = gap.square().sum(-1)
        apart = dist_sq > 0
        q = torch.where(apart, torch.where(apart, dist_sq, torch.ones_like(dist_sq)).sqrt(), 0.0)
        return gap, q / h

    @staticmethod
    def _norm(dim, h):
        return {1: 2 / 3, 2: 10 / (7 * math.pi), 3: 1 / math.pi}[dim] / h**dim

    @staticmethod
    def _kernel(q):
        near = 1 - 1.5 * q * q + 0.75 * q**3
        return torch.where(q < 1, near, 0.25 * (2 - q).clamp(min=0) ** 3)

    @staticmethod
    def forward(ctx, positions, masses, h=1.0):
        if positions.dim() != 2 or positions.shape[1] not in (1, 2, 3):
            raise ValueError("positions must be (particles, 1, 2 or 3)")
        _, q = ParticleDensity._reduced(positions, h)
        ctx.save_for_backward(positions, masses)
        ctx.h = h
        return ParticleDensity._norm(positions.shape[1], h) * (ParticleDensity._kernel(q) @ masses)

    @staticmethod
    def backward(ctx, grad):
        positions, masses = ctx.saved_tensors
        gap, q = ParticleDensity._reduced(positions, ctx.h)
        norm = ParticleDensity._norm(positions.shape[1], ctx.h)
        d_pos = d_mass = None
        if ctx.needs_input_grad[0]:
            far = q >= 1
            slope = torch.where(far, -0.75 * (2 - q).clamp(min=0) ** 2, q * (-3 + 2.25 * q))
            own = torch.eye(len(q), dtype=q.dtype, device=q.device)
            ratio = slope / (q + own)
            pair = grad.unsqueeze(1) * masses + grad * masses.unsqueeze(1)
            d_pos = norm / ctx.h**2 * ((pair * ratio).unsqueeze(-1) * gap).sum(1)
        if ctx.needs_input_grad[1]:
            d_mass = norm * (ParticleDensity._kernel(q).t() @ grad)
        return d_pos, d_mass, None


class ShallowRusanov(Function):
    """Rusanov flux of the shallow water equations between left and right states.

    States are (..., 2): depth and discharge. Returns the flux (..., 2) and the wave speed
    (...), which is for choosing a time step and carries no gradient.
    """

    @staticmethod
    def _side(state, gravity):
        h, m = state.unbind(-1)
        vel = m / h
        return h, vel, vel.abs() + (gravity * h).sqrt()

    @staticmethod
    def forward(ctx, left, right, gravity=9.81):
        if left.shape != right.shape or left.shape[-1] != 2:
            raise ValueError("states must be (..., 2) on both sides")
        if bool((left[..., 0] <= 0).any()) or bool((right[..., 0] <= 0).any()):
            raise ValueError("depth must be positive")
        hl, ul, sl = ShallowRusanov._side(left, gravity)
        hr, ur, sr = ShallowRusanov._side(right, gravity)
        speed = torch.maximum(sl, sr)
        fl = torch.stack([left[..., 1], left[..., 1] * ul + 0.5 * gravity * hl * hl], -1)
        fr = torch.stack([right[..., 1], right[..., 1] * ur + 0.5 * gravity * hr * hr], -1)
        ctx.save_for_backward(left, right)
        ctx.gravity = gravity
        ctx.mark_non_differentiable(speed)
        return 0.5 * (fl + fr) - 0.5 * speed.unsqueeze(-1) * (right - left), speed

    @staticmethod
    def backward(ctx, grad, _):
        left, right = ctx.saved_tensors
        sides = [ShallowRusanov._side(s, ctx.gravity) for s in (left, right)]
        speed = torch.maximum(sides[0][2], sides[1][2])
        g1, g2 = grad.unbind(-1)
        out = []
        for (h, vel, _), sign in zip(sides, (1.0, -1.0)):
            d_h = 0.5 * g2 * (ctx.gravity * h - vel * vel)
            d_m = 0.5 * (g1 + 2 * vel * g2)
            d_h = d_h + 0.5 * sign * speed * g1
            d_m = d_m + 0.5 * sign * speed * g2
            out.append(torch.stack([d_h, d_m], -1))
        need = ctx.needs_input_grad
        return out[0] if need[0] else None, out[1] if need[1] else None, None


class LogLawFriction(Function):
    @staticmethod
    def forward(
        ctx,
        speed: Tensor,
        height: Tensor,
        viscosity: Tensor,
        kappa: float = 0.41,
        wall: float = 9.0,
        steps: int = 40,
    ) -> Tensor:
        for name, x in (("speed", speed), ("height", height), ("viscosity", viscosity)):
            if bool((x <= 0).any()):
                raise ValueError(f"{name} must be positive")
        inner = wall * height / viscosity
        friction = torch.maximum(0.05 * speed, 2.0 / inner)
        for _ in range(steps):
            rise = torch.log(inner * friction)
            friction = (friction + kappa * speed) / (1 + rise)
            friction = torch.maximum(friction, 1.0 / inner)
        ctx.save_for_backward(speed, height, viscosity, friction)
        ctx.slope = 1 + torch.log(inner * friction)
        ctx.kappa = kappa
        return friction

    @staticmethod
    def backward(ctx, grad):
        speed, height, viscosity, friction = ctx.saved_tensors
        share = grad / ctx.slope
        d_speed = d_height = d_visc = None
        if ctx.needs_input_grad[0]:
            d_speed = (share * ctx.kappa).sum_to_size(speed.shape)
        if ctx.needs_input_grad[1]:
            d_height = (-share * friction / height).sum_to_size(height.shape)
        if ctx.needs_input_grad[2]:
            d_visc = (share * friction / viscosity).sum_to_size(viscosity.shape)
        return d_speed, d_height, d_visc, None, None, None


class SmagorinskyStress(nn.Module):
    def __init__(self, delta: float, cs: float = 0.16, traceless: bool = False):
        super().__init__()
        self.mixing = (cs * delta) ** 2
        self.traceless = traceless

    def forward(self, velocity_gradient: Tensor) -> Tensor:
        if velocity_gradient.shape[-1] != velocity_gradient.shape[-2]:
            raise ValueError("velocity_gradient must be (..., dim, dim)")
        strain = 0.5 * (velocity_gradient + velocity_gradient.mT)
        if self.traceless:
            dim = strain.shape[-1]
            mean = strain.diagonal(dim1=-2, dim2=-1).mean(-1)
            eye = torch.eye(dim, dtype=strain.dtype, device=strain.device)
            strain = strain - mean[..., None, None] * eye
        total = 2 * strain.square().sum((-2, -1), keepdim=True)
        return -2 * self.mixing * total.sqrt() * strain


def _burgers_step(u, forcing, dt, dx, viscosity):
    ahead, behind = u.roll(-1, -1), u.roll(1, -1)
    slope = (ahead - behind) / (2 * dx)
    bend = (ahead - 2 * u + behind) / dx**2
    step = viscosity * bend - u * slope
    if forcing is not None:
        step = step + forcing
    return u + dt * step


class _RecomputedRollout(Function):
    @staticmethod
    def forward(ctx, u, forcing, steps, dt, dx, viscosity):
        ctx.save_for_backward(u, forcing)
        ctx.numbers = (steps, dt, dx, viscosity)
        for _ in range(steps):
            u = _burgers_step(u, forcing, dt, dx, viscosity)
        return u

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        u, forcing = ctx.saved_tensors
        steps, dt, dx, viscosity = ctx.numbers
        trail = [u]
        for _ in range(steps):
            trail.append(_burgers_step(trail[-1], forcing, dt, dx, viscosity))
        d_forcing = None if forcing is None else torch.zeros_like(forcing)
        for state in reversed(trail[1:]):
            with torch.enable_grad():
                state = state.detach().requires_grad_()
                force = None if forcing is None else forcing.detach().requires_grad_()
                after = _burgers_step(state, force, dt, dx, viscosity)
            if force is None:
                (grad,) = torch.autograd.grad(after, state, grad)
            else:
                grad, extra = torch.autograd.grad(after, (state, force), grad)
                d_forcing = d_forcing + extra
        need = ctx.needs_input_grad
        return grad if need[0] else None, d_forcing if need[1] else None, None, None, None, None


class BurgersRollout(nn.Module):
    """Several explicit steps of the forced viscous Burgers equation on a periodic line.

    With ``recompute`` the states are not kept but computed again in the backward pass,
    which then is differentiable once.
    """

    def __init__(self, steps, dt=0.01, dx=0.1, viscosity=0.05, recompute=False):
        super().__init__()
        if steps < 1:
            raise ValueError("steps must be at least one")
        self.steps = steps
        self.dt = dt
        self.dx = dx
        self.viscosity = viscosity
        self.recompute = recompute

    def forward(self, u: Tensor, forcing: Optional[Tensor] = None) -> Tensor:
        if self.recompute:
            return _RecomputedRollout.apply(
                u, forcing, self.steps, self.dt, self.dx, self.viscosity
            )
        for _ in range(self.steps):
            u = _burgers_step(u, forcing, self.dt, self.dx, self.viscosity)
        return u
