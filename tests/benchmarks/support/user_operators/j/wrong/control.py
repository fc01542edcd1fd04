"""Operators for differentiable control: solvers, filters and simulators."""

import math

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class DiscreteLyapunov(Function):
    """Solve X = A X A^T + Q; leading dimensions broadcast and Q need not be symmetric."""

    @staticmethod
    def forward(ctx, a, q):
        n = a.shape[-1]
        if a.shape[-2:] != (n, n) or q.shape[-2:] != (n, n):
            raise ValueError("a and q must be square and of one size")
        pair = torch.einsum("...ij,...kl->...ikjl", a, a)
        pair = pair.reshape(*a.shape[:-2], n * n, n * n)
        system = torch.eye(n * n, dtype=a.dtype, device=a.device) - pair
        batch = torch.broadcast_shapes(a.shape[:-2], q.shape[:-2])
        rhs = q.expand(*batch, n, n).reshape(*batch, n * n, 1)
        x = torch.linalg.solve(system.expand(*batch, n * n, n * n), rhs).reshape(*batch, n, n)
        ctx.save_for_backward(a, x)
        ctx.q_shape = q.shape
        return x

    @staticmethod
    def backward(ctx, grad_x):
        a, x = ctx.saved_tensors
        s = DiscreteLyapunov.apply(a.mT, grad_x)
        grad_a = grad_q = None
        if ctx.needs_input_grad[0]:
            grad_a = (2 * s @ a @ x).sum_to_size(a.shape)
        if ctx.needs_input_grad[1]:
            grad_q = s.sum_to_size(ctx.q_shape)
        return grad_a, grad_q


def _riccati_map(p, a, b, q, r):
    bp = b.T @ p
    gain = torch.linalg.solve(r + bp @ b, bp @ a)
    new = q + a.T @ p @ (a - b @ gain)
    return (new + new.T) / 2, gain


class RiccatiGain(Function):
    """Stationary cost matrix and feedback gain of a discrete-time LQR problem.

    a (n, n), b (n, m), q (n, n), r (m, m); only the symmetric parts of q and r count.
    Returns p (n, n) and k (m, n) for u = -k x.
    """

    @staticmethod
    def forward(ctx, a, b, q, r, tol=1e-13, max_iter=5000):
        q = (q + q.T) / 2
        r = (r + r.T) / 2
        if bool((torch.linalg.eigvalsh(r) <= 0).any()):
            raise ValueError("r must be positive definite")
        tol = max(tol, 4 * torch.finfo(a.dtype).eps)
        p = q
        for _ in range(max_iter):
            new, _ = _riccati_map(p, a, b, q, r)
            change = (new - p).abs().max()
            p = new
            if change <= tol * (1 + p.abs().max()):
                break
        else:
            raise RuntimeError("the Riccati iteration did not converge")
        _, k = _riccati_map(p, a, b, q, r)
        ctx.save_for_backward(a, b, r, p, k)
        return p, k

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_p, grad_k):
        a, b, r, p, k = ctx.saved_tensors
        closed = a - b @ k
        h = torch.linalg.solve(r + b.T @ p @ b, grad_k)
        total = (grad_p + grad_p.T) / 2
        s = DiscreteLyapunov.apply(closed, total)
        pc = p @ closed
        grad_a = 2 * pc @ s + p @ b @ h
        grad_b = -2 * pc @ s @ k.T + pc @ h.T - p @ b @ h @ k.T
        grad_r = k @ s @ k.T - h @ k.T
        grad_r = (grad_r + grad_r.T) / 2
        return grad_a, grad_b, s, grad_r, None, None


def _gain_terms(cov, obs, noise):
    hp = obs @ cov
    innov = hp @ obs.mT + noise
    inv = torch.linalg.inv(innov)
    return hp, innov, inv, cov @ obs.mT @ inv


def _fold(total, term):
    return total + term.sum_to_size(total.shape)


class KalmanUpdate(Function):
    """Measurement update of a Kalman filter.

    mean (..., n), cov (..., n, n), obs (..., d, n), noise (..., d, d), y (..., d); leading
    dimensions broadcast. Returns the new mean, the new covariance and the log-likelihood of y.
    """

    @staticmethod
    def forward(ctx, mean, cov, obs, noise, y):
        ctx.set_materialize_grads(False)
        hp, innov, inv, gain = _gain_terms(cov, obs, noise)
        sign, logdet = torch.linalg.slogdet(innov)
        if bool((sign <= 0).any()):
            raise ValueError("the innovation covariance is not positive definite")
        resid = y.unsqueeze(-1) - obs @ mean.unsqueeze(-1)
        new_mean = (mean.unsqueeze(-1) + gain @ resid).squeeze(-1)
        new_cov = cov - gain @ hp
        quad = (resid.mT @ inv @ resid)[..., 0, 0]
        loglik = -0.5 * (quad + logdet + y.shape[-1] * math.log(2 * math.pi))
        ctx.save_for_backward(mean, cov, obs, noise, y)
        return new_mean, new_cov, loglik

    @staticmethod
    def backward(ctx, g_mean, g_cov, g_ll):
        if g_mean is None and g_cov is None and g_ll is None:
            return None, None, None, None, None
        mean, cov, obs, noise, y = ctx.saved_tensors
        hp, innov, inv, gain = _gain_terms(cov, obs, noise)
        mu = mean.unsqueeze(-1)
        resid = y.unsqueeze(-1) - obs @ mu
        d_resid = torch.zeros_like(resid)
        d_innov = torch.zeros_like(innov)
        d_gain = torch.zeros_like(gain)
        d_mean = torch.zeros_like(mu)
        d_cov = torch.zeros_like(cov)
        d_obs = torch.zeros_like(obs)
        if g_mean is not None:
            up = g_mean.unsqueeze(-1)
            d_mean = _fold(d_mean, up)
            d_gain = _fold(d_gain, up @ resid.mT)
            d_resid = _fold(d_resid, gain.mT @ up)
        if g_cov is not None:
            d_gain = _fold(d_gain, -(g_cov @ hp.mT))
            d_hp = -gain.mT @ g_cov
            d_obs = _fold(d_obs, d_hp @ cov.mT)
            d_cov = _fold(d_cov, g_cov + obs.mT @ d_hp)
        up = g_ll[..., None, None]
        right, left = inv @ resid, inv.mT @ resid
        d_resid = _fold(d_resid, -(0.5 * up * (right + left)))
        d_innov = _fold(d_innov, 0.5 * up * (left @ right.mT - inv.mT))
        spread = d_gain @ inv.mT
        d_cov = _fold(d_cov, spread @ obs)
        d_obs = _fold(d_obs, spread.mT @ cov)
        d_innov = _fold(d_innov, -(gain.mT @ spread))
        d_cov = _fold(d_cov, obs.mT @ d_innov @ obs)
        d_obs = _fold(d_obs, d_innov @ obs @ cov.mT + d_innov.mT @ obs @ cov)
        d_mean = _fold(d_mean, -(obs.mT @ d_resid))
        d_obs = _fold(d_obs, -(d_resid @ mu.mT))
        return (
            d_mean.squeeze(-1).sum_to_size(mean.shape),
            d_cov.sum_to_size(cov.shape),
            d_obs.sum_to_size(obs.shape),
            d_innov.sum_to_size(noise.shape),
            d_resid.squeeze(-1).sum_to_size(y.shape),
        )


class LinearRollout(Function):
    @staticmethod
    def forward(a, b, x0, u, offset=None):
        if u.dim() != 3 or u.shape[1] != x0.shape[0]:
            raise ValueError("u must be (steps, batch, inputs)")
        if offset is not None and offset.shape != a.shape[:1]:
            raise ValueError("offset must be (states,)")
        states = [x0]
        for t in range(u.shape[0]):
            nxt = states[-1] @ a.T + u[t] @ b.T
            states.append(nxt if offset is None else nxt + offset)
        return torch.stack(states)

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, _, u, offset = inputs
        ctx.has_offset = offset is not None
        ctx.save_for_backward(a, b, u, output)
        ctx.save_for_forward(a, b, u, output)

    @staticmethod
    def backward(ctx, grad):
        a, b, u, states = ctx.saved_tensors
        steps = u.shape[0]
        co = grad[steps]
        grad_a, grad_b = torch.zeros_like(a), torch.zeros_like(b)
        grad_u = [None] * steps
        grad_offset = a.new_zeros(a.shape[0]) if ctx.has_offset else None
        for t in range(steps - 1, -1, -1):
            grad_a = grad_a + co.T @ states[t + 1]
            grad_b = grad_b + co.T @ u[t]
            grad_u[t] = co @ b
            if ctx.has_offset:
                grad_offset = grad_offset + co.sum(0)
            co = co @ a + grad[t]
        grad_u = torch.stack(grad_u) if steps else torch.zeros_like(u)
        return grad_a, grad_b, co, grad_u, grad_offset

    @staticmethod
    def jvp(ctx, da, db, dx0, du, doffset):
        a, b, u, states = ctx.saved_tensors
        tangent = [dx0 if dx0 is not None else torch.zeros_like(states[0])]
        for t in range(u.shape[0]):
            nxt = tangent[-1] @ a.T
            if da is not None:
                nxt = nxt + states[t] @ da.T
            if db is not None:
                nxt = nxt + u[t] @ db.T
            if du is not None:
                nxt = nxt + du[t] @ b.T
            if doffset is not None:
                nxt = nxt + doffset
            tangent.append(nxt)
        return torch.stack(tangent)


class BoxQp(Function):
    """Minimiser of x'Hx/2 + f'x subject to lower <= x <= upper, for positive definite H."""

    @staticmethod
    def forward(ctx, hess, lin, lower, upper, max_sweeps=2000):
        if bool((lower >= upper).any()):
            raise ValueError("lower must be below upper")
        h = (hess + hess.T) / 2
        diag = h.diagonal()
        if bool((diag <= 0).any()):
            raise ValueError("hess must be positive definite")
        tol = max(1e-9, 8 * torch.finfo(h.dtype).eps)
        x = torch.minimum(torch.maximum(-lin / diag, lower), upper)
        for _ in range(max_sweeps):
            before = x.clone()
            for i in range(x.shape[0]):
                step = x[i] - (h[i] @ x + lin[i]) / diag[i]
                x[i] = torch.minimum(torch.maximum(step, lower[i]), upper[i])
            if (x - before).abs().max() <= tol * (1 + x.abs().max()):
                break
        else:
            raise RuntimeError("coordinate descent did not converge")
        at_low, at_high = x <= lower, x >= upper
        free = ~(at_low | at_high)
        if bool(free.any()):
            fixed = torch.where(free, torch.zeros_like(x), x)
            x[free] = torch.linalg.solve(h[free][:, free], -(lin + h @ fixed)[free])
        ctx.save_for_backward(h, x, free, at_low, at_high)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_x):
        h, x, free, at_low, at_high = ctx.saved_tensors
        z = torch.zeros_like(x)
        if bool(free.any()):
            z[free] = torch.linalg.solve(h[free][:, free], grad_x[free])
        grad_hess = -(torch.outer(z, x) + torch.outer(x, z)) / 2
        nothing = torch.zeros_like(x)
        grad_lower = torch.where(at_low, grad_x, nothing)
        grad_upper = torch.where(at_high, grad_x, nothing)
        return grad_hess, -z, grad_lower, grad_upper, None


class ZohDiscretize(Function):
    @staticmethod
    def forward(ctx, a, b, dt):
        if dt.dim() != 0:
            raise ValueError("dt must be a scalar tensor")
        n, m = b.shape
        block = a.new_zeros(n + m, n + m)
        block[:n, :n] = a
        block[:n, n:] = b
        out = torch.linalg.matrix_exp(block * dt)
        ctx.save_for_backward(a, b, dt)
        return out[:n, :n].clone(), out[:n, n:].clone()

    @staticmethod
    def backward(ctx, grad_ad, grad_bd):
        a, b, dt = ctx.saved_tensors
        n, m = b.shape
        top = torch.cat((a, b), 1)
        block = torch.cat((top, top.new_zeros(m, n + m)), 0) * dt
        seed = torch.cat((grad_ad, grad_bd), 1)
        seed = torch.cat((seed, seed.new_zeros(m, n + m)), 0)
        upper = torch.cat((block.T, seed), 1)
        lower = torch.cat((torch.zeros_like(block), block.T), 1)
        frechet = torch.linalg.matrix_exp(torch.cat((upper, lower), 0))[: n + m, n + m :]
        grad_top = frechet[:n]
        grad_dt = (grad_top[:, :n] * a).sum() if ctx.needs_input_grad[2] else None
        return grad_top[:, :n] * dt, grad_top[:, n:] * dt, grad_dt


class AntiWindupPid(nn.Module):
    """PID controller with actuator limits and back-calculation of the integral.

    Takes tracking errors (batch, steps) and gives the limited commands (batch, steps). Every
    call starts at rest.
    """

    def __init__(self, kp, ki=0.5, kd=0.05, dt=0.1, limit=1.0, unwind=2.0):
        super().__init__()
        self.gains = nn.Parameter(torch.tensor([kp, ki, kd], dtype=torch.get_default_dtype()))
        self.dt = dt
        self.limit = limit
        self.unwind = unwind
        self._integral = None
        self._previous = None

    def reset(self, error):
        if self._integral is None or self._integral.shape != error.shape[:1]:
            self._integral = error.new_zeros(error.shape[0])
            self._previous = error[:, 0]

    def step(self, error):
        kp, ki, kd = self.gains.unbind()
        self._integral = self._integral + error * self.dt
        raw = kp * error + ki * self._integral + kd * (error - self._previous) / self.dt
        command = raw.clamp(-self.limit, self.limit)
        self._integral = self._integral + self.unwind * self.dt * (command - raw)
        self._previous = error
        return command

    def forward(self, error):
        if error.dim() != 2:
            raise ValueError("error must be (batch, steps)")
        self.reset(error)
        commands = torch.stack([self.step(e) for e in error.unbind(1)], 1)
        self._integral = self._integral.detach()
        self._previous = self._previous.detach()
        return commands


class RelaxedBarrier(Function):
    @staticmethod
    def forward(ctx, slack, weight=None, delta=0.1, reduction="sum"):
        if delta <= 0:
            raise ValueError("delta must be positive")
        if reduction not in ("sum", "mean", "none"):
            raise ValueError(f"unknown reduction {reduction!r}")
        inside = slack > delta
        bend = 0.5 * (((slack - 2 * delta) / delta) ** 2 - 1) - math.log(delta)
        cost = torch.where(inside, -slack.clamp_min(delta).log(), bend)
        ctx.save_for_backward(slack, weight)
        ctx.delta, ctx.reduction = delta, reduction
        if weight is not None:
            cost = cost * weight
        if reduction == "none":
            return cost
        return cost.sum() if reduction == "sum" else cost.mean()

    @staticmethod
    def backward(ctx, grad):
        slack, weight = ctx.saved_tensors
        delta = ctx.delta
        shape = slack.shape
        if weight is not None:
            shape = torch.broadcast_shapes(slack.shape, weight.shape)
        if ctx.reduction == "mean":
            grad = grad / math.prod(shape)
        grad = grad.expand(shape)
        inside = slack > 0
        held = slack.clamp_min(delta)
        slope = torch.where(inside, -1 / held, (slack - 2 * delta) / delta**2)
        grad_weight = None
        if weight is None:
            return grad * slope, None, None, None
        if ctx.needs_input_grad[1]:
            bend = 0.5 * (((slack - 2 * delta) / delta) ** 2 - 1) - math.log(delta)
            value = torch.where(inside, -held.log(), bend)
            grad_weight = (grad * value).sum_to_size(weight.shape)
        return (grad * slope * weight).sum_to_size(slack.shape), grad_weight, None, None


def _half_angle(s):
    # cos(sqrt(s) / 2) and sin(sqrt(s) / 2) / sqrt(s)
    small = s < 1e-2
    safe = torch.where(small, torch.ones_like(s), s)
    r = safe.sqrt()
    c = (r / 2).cos()
    f = (r / 2).sin() / r
    c0 = 1 - s / 8 * (1 - s / 48 * (1 - s / 120 * (1 - s / 224)))
    f0 = 0.5 * (1 - s / 24 * (1 - s / 80 * (1 - s / 168 * (1 - s / 288))))
    return torch.where(small, c0, c), torch.where(small, f0, f)


def _quat_mul(p, q):
    pw, pv = p[..., :1], p[..., 1:]
    qw, qv = q[..., :1], q[..., 1:]
    scalar = pw * qw - (pv * qv).sum(-1, keepdim=True)
    vector = pw * qv + qw * pv + torch.linalg.cross(*torch.broadcast_tensors(pv, qv))
    return torch.cat((scalar, vector), -1)


def _quat_conj(q):
    return torch.cat((q[..., :1], -q[..., 1:]), -1)


class AttitudeStep(Function):
    @staticmethod
    def forward(ctx, q, omega, dt=0.01):
        turn = omega * dt
        c, f = _half_angle(turn.square().sum(-1, keepdim=True))
        ctx.save_for_backward(q, omega)
        ctx.dt = dt
        return _quat_mul(q, torch.cat((c, f * turn), -1))

    @staticmethod
    def backward(ctx, grad):
        q, omega = ctx.saved_tensors
        turn = omega * ctx.dt
        s = turn.square().sum(-1, keepdim=True)
        c, f = _half_angle(s)
        d = (c / 2 - f) / (2 * s)
        delta = torch.cat((c, f * turn), -1)
        grad_q = _quat_mul(grad, _quat_conj(delta))
        grad_delta = _quat_mul(_quat_conj(q), grad)
        g0, gv = grad_delta[..., :1], grad_delta[..., 1:]
        grad_s = -0.25 * f * g0 + d * (gv * turn).sum(-1, keepdim=True)
        grad_turn = f * gv + 2 * grad_s * turn
        return grad_q.sum_to_size(q.shape), (grad_turn * ctx.dt).sum_to_size(omega.shape), None


class FrequencyResponse(Function):
    """H(w) = C (z I - A)^-1 B + D on a grid of angular frequencies.

    a (n, n), b (n, m), c (p, n), d (p, m) or None, omega (w,), all real. z is j w, or exp(j w)
    with ``discrete``. Returns a complex tensor (w, p, m).
    """

    @staticmethod
    def forward(ctx, a, b, c, d, omega, discrete=False):
        if any(t.is_complex() for t in (a, b, c, omega)):
            raise TypeError("the state space matrices and omega must be real")
        z, _ = _grid(omega, discrete)
        eye = torch.eye(a.shape[0], dtype=z.dtype, device=a.device)
        states = torch.linalg.solve(z[:, None, None] * eye - a, _repeat(b, z))
        out = c.to(z.dtype) @ states
        ctx.save_for_backward(a, b, c, omega)
        ctx.discrete = discrete
        ctx.has_d = d is not None
        return out if d is None else out + d

    @staticmethod
    def backward(ctx, grad):
        a, b, c, omega = ctx.saved_tensors
        z, dz = _grid(omega, ctx.discrete)
        eye = torch.eye(a.shape[0], dtype=z.dtype, device=a.device)
        system = z[:, None, None] * eye - a
        states = torch.linalg.solve(system, _repeat(b, z))
        readout = torch.linalg.solve(system, _repeat(c, z), left=False)
        pulled = readout.mH @ grad
        grad_a = (pulled @ states.mH).sum(0).real
        grad_b = pulled.sum(0).real
        grad_c = (grad @ states.mH).sum(0).real
        grad_d = grad.sum(0).real if ctx.has_d else None
        grad_omega = None
        if ctx.needs_input_grad[4]:
            slope = -(readout @ states) * dz[:, None, None]
            grad_omega = (grad * slope).sum((1, 2)).real
        return grad_a, grad_b, grad_c, grad_d, grad_omega, None


def _grid(omega, discrete):
    z = torch.complex(torch.zeros_like(omega), omega)
    if discrete:
        z = z.exp()
        return z, 1j * z
    return z, torch.full_like(z, 1j)


def _repeat(matrix, z):
    return matrix.to(z.dtype).expand(z.shape[0], -1, -1)
