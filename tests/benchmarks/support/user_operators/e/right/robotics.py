"""Kinematics, estimation and control blocks with hand-derived gradients."""

import torch
import torch.nn as nn
from torch.autograd import Function


def _hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).reshape(
        *w.shape[:-1], 3, 3
    )


class So3Exp(Function):
    """Exponential map of so(3): rotation vectors (N, 3) to matrices (N, 3, 3)."""

    @staticmethod
    def coeffs(w):
        th2 = w.pow(2).sum(-1)[:, None, None]
        small = th2 < 1e-8
        th = torch.where(small, torch.ones_like(th2), th2).sqrt()
        a = torch.where(small, 1 - th2 / 6, th.sin() / th)
        b = torch.where(small, 0.5 - th2 / 24, (1 - th.cos()) / th**2)
        da = torch.where(small, th2 / 30 - 1 / 3, (th.cos() - a) / th**2)
        db = torch.where(small, th2 / 180 - 1 / 12, (a - 2 * b) / th**2)
        return a, b, da, db

    @staticmethod
    def forward(ctx, w):
        a, b, _, _ = So3Exp.coeffs(w)
        K = _hat(w)
        ctx.save_for_backward(w)
        return torch.eye(3, dtype=w.dtype, device=w.device) + a * K + b * (K @ K)

    @staticmethod
    def backward(ctx, G):
        (w,) = ctx.saved_tensors
        a, b, da, db = So3Exp.coeffs(w)
        K = _hat(w)
        M = a * G + b * (G @ K.mT + K.mT @ G)
        cols = [
            M[:, 2, 1] - M[:, 1, 2],
            M[:, 0, 2] - M[:, 2, 0],
            M[:, 1, 0] - M[:, 0, 1],
        ]
        radial = (G * (da * K + db * (K @ K))).sum((-1, -2))
        return torch.stack(cols, dim=-1) + radial.unsqueeze(-1) * w


class LyapunovSolve(Function):
    """X with A X + X A^T + Q = 0 for square A and Q (Q need not be symmetric)."""

    @staticmethod
    def _solve(A, Q):
        eye = torch.eye(A.shape[0], dtype=A.dtype, device=A.device)
        op = torch.kron(A.contiguous(), eye) + torch.kron(eye, A.contiguous())
        return torch.linalg.solve(op, -Q.reshape(-1)).reshape(Q.shape)

    @staticmethod
    def forward(ctx, A, Q):
        X = LyapunovSolve._solve(A, Q)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, grad_X):
        A, X = ctx.saved_tensors
        S = LyapunovSolve._solve(A.t(), grad_X)
        grad_A = S @ X.t() + S.t() @ X
        return grad_A, S


class DareSolve(Function):
    """Discrete algebraic Riccati equation by fixed-point iteration.

    P = A'PA - A'PB (R + B'PB)^-1 B'PA + Q, gradients from the implicit function.
    Q and R are positive definite; only their symmetric parts are used.
    """

    @staticmethod
    def forward(ctx, A, B, Q, R, iters: int = 300):
        Qs, Rs = (Q + Q.t()) / 2, (R + R.t()) / 2
        if min(torch.linalg.eigvalsh(Qs)[0], torch.linalg.eigvalsh(Rs)[0]) <= 0:
            raise ValueError("Q and R must be positive definite")
        P = Qs
        for _ in range(iters):
            K = torch.linalg.solve(Rs + B.t() @ P @ B, B.t() @ P @ A)
            P = A.t() @ P @ (A - B @ K) + Qs
            P = (P + P.t()) / 2
        ctx.save_for_backward(A, B, R, P)
        return P

    @staticmethod
    def backward(ctx, grad_P):
        A, B, R, P = ctx.saved_tensors
        n = A.shape[0]
        K = torch.linalg.solve((R + R.t()) / 2 + B.t() @ P @ B, B.t() @ P @ A)
        Acl = A - B @ K
        G = (grad_P + grad_P.t()) / 2
        op = torch.eye(n * n, dtype=A.dtype, device=A.device) - torch.kron(Acl, Acl)
        S = torch.linalg.solve(op, G.reshape(-1)).reshape(n, n)
        S = (S + S.t()) / 2
        grad_A = 2 * P @ Acl @ S
        grad_B = -2 * P @ Acl @ S @ K.t()
        return grad_A, grad_B, S, K @ S @ K.t(), None


class PidRollout(Function):
    """Closed loop of a PID controller and a leaky integrator.

    gains (3,) = kp, ki, kd; target (B, T); x0 (B,). Returns the states (B, T).
    """

    @staticmethod
    def forward(ctx, gains, target, x0, dt=0.1, leak=0.5):
        kp, ki, kd = gains
        x, integ, e_prev = x0, torch.zeros_like(x0), None
        out = []
        for t in range(target.shape[1]):
            e = target[:, t] - x
            integ = integ + dt * e
            slope = (e - e_prev) / dt if e_prev is not None else torch.zeros_like(e)
            x = x + dt * (kp * e + ki * integ + kd * slope - leak * x)
            e_prev = e
            out.append(x)
        xs = torch.stack(out, dim=1)
        ctx.save_for_backward(gains, target, x0, xs)
        ctx.dt, ctx.leak = dt, leak
        return xs

    @staticmethod
    def backward(ctx, grad_xs):
        gains, target, x0, xs = ctx.saved_tensors
        dt, leak = ctx.dt, ctx.leak
        kp, ki, kd = gains
        e = target - torch.cat([x0.unsqueeze(1), xs[:, :-1]], dim=1)
        integ = dt * e.cumsum(1)
        slope = torch.cat([torch.zeros_like(e[:, :1]), e.diff(dim=1) / dt], dim=1)
        lam = torch.zeros_like(x0)
        g_int = torch.zeros_like(x0)
        gu_next = torch.zeros_like(x0)
        g_u, g_e = [], []
        for t in reversed(range(target.shape[1])):
            lam = lam + grad_xs[:, t]
            gu = dt * lam
            g_int = g_int + ki * gu
            first = float(t > 0)
            ge = kp * gu + dt * g_int + kd / dt * (first * gu - gu_next)
            lam = lam * (1 - dt * leak) - ge
            gu_next = gu
            g_u.append(gu)
            g_e.append(ge)
        g_u = torch.stack(g_u[::-1], dim=1)
        g_gains = torch.stack(
            [(g_u * e).sum(), (g_u * integ).sum(), (g_u * slope).sum()]
        )
        return g_gains, torch.stack(g_e[::-1], dim=1), lam, None, None


class PlanarArmFK(Function):
    """Joint positions (B, J, 2) of a planar arm from angles (B, J) and lengths (J,)."""

    @staticmethod
    def forward(ctx, angles, lengths):
        phi = angles.cumsum(dim=1)
        seg = torch.stack([lengths * phi.cos(), lengths * phi.sin()], dim=-1)
        ctx.save_for_backward(angles, lengths)
        return seg.cumsum(dim=1)

    @staticmethod
    def backward(ctx, g):
        angles, lengths = ctx.saved_tensors
        phi = angles.cumsum(dim=1)
        c, s = phi.cos(), phi.sin()
        gx, gy = g.flip(1).cumsum(1).flip(1).unbind(-1)
        g_phi = lengths * (c * gy - s * gx)
        return g_phi.flip(1).cumsum(1).flip(1), (c * gx + s * gy).sum(0)


class QuatRotate(Function):
    """Rotate vectors (N, 3) by quaternions (N, 4), wxyz, normalised inside."""

    @staticmethod
    def forward(ctx, quat, vec):
        u = quat / quat.norm(dim=-1, keepdim=True)
        w, r = u[..., :1], u[..., 1:]
        t = 2 * torch.linalg.cross(r, vec)
        ctx.save_for_backward(quat, vec)
        return vec + w * t + torch.linalg.cross(r, t)

    @staticmethod
    def backward(ctx, g):
        quat, vec = ctx.saved_tensors
        n = quat.norm(dim=-1, keepdim=True)
        u = quat / n
        w, r = u[..., :1], u[..., 1:]
        back = 2 * torch.linalg.cross(g, r)
        g_vec = g + w * back + torch.linalg.cross(back, r)
        g_w = 2 * (g * torch.linalg.cross(r, vec)).sum(-1, keepdim=True)
        rv, rg, gv = [
            (p * q).sum(-1, keepdim=True) for p, q in ((r, vec), (r, g), (g, vec))
        ]
        g_r = 2 * w * torch.linalg.cross(vec, g) + 2 * (g * rv + vec * rg - 2 * r * gv)
        g_u = torch.cat([g_w, g_r], dim=-1)
        g_quat = (g_u - u * (u * g_u).sum(-1, keepdim=True)) / n
        return g_quat, g_vec


class UnicycleRollout(Function):
    """Integrate a unicycle. pose (B, 3) = x, y, heading; ctrl (B, T, 2) = speed, turn rate."""

    @staticmethod
    def forward(ctx, pose, ctrl, dt: float = 0.1):
        v, w = ctrl.unbind(-1)
        turned = dt * w.cumsum(1)
        th = pose[:, 2:] + turned - dt * w
        ctx.save_for_backward(pose, ctrl)
        ctx.dt = dt
        x = pose[:, 0:1] + dt * (v * th.cos()).cumsum(1)
        y = pose[:, 1:2] + dt * (v * th.sin()).cumsum(1)
        return torch.stack([x, y, pose[:, 2:] + turned], dim=-1)

    @staticmethod
    def backward(ctx, grad_traj):
        pose, ctrl = ctx.saved_tensors
        dt = ctx.dt
        v, w = ctrl.unbind(-1)
        th = pose[:, 2:] + dt * (w.cumsum(1) - w)
        gx, gy, gh = grad_traj.flip(1).cumsum(1).flip(1).unbind(-1)
        g_v = dt * (th.cos() * gx + th.sin() * gy)
        g_th = dt * v * (th.cos() * gy - th.sin() * gx)
        later = g_th.flip(1).cumsum(1).flip(1) - g_th
        g_w = dt * (later + gh)
        g_pose = torch.stack([gx[:, 0], gy[:, 0], gh[:, 0] + g_th.sum(1)], dim=-1)
        return g_pose, torch.stack([g_v, g_w], dim=-1), None


class DeadbandSlope(Function):
    """Zero inside a dead band of the given width, linear outside of it."""

    @staticmethod
    def forward(
        x: torch.Tensor, width: float = 0.2, slope: float = 1.0
    ) -> torch.Tensor:
        return slope * x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.width, ctx.slope = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        active = x.abs() > ctx.width
        return grad_output * active * ctx.slope, None, None


def deadband(x, width=0.2, slope=1.0):
    return DeadbandSlope.apply(x, width, slope)


class DampedLeastSquares(Function):
    """Joint step J^T (J J^T + damping^2 I)^-1 err for jac (B, m, n), err (B, m), m <= n."""

    @staticmethod
    def forward(ctx, jac, err, damping=0.0):
        if jac.dim() != 3 or err.shape != jac.shape[:2]:
            raise ValueError("jac must be (B, m, n) and err (B, m)")
        if damping == 0 and jac.shape[1] > jac.shape[2]:
            raise ValueError("an overdetermined step needs damping > 0")
        eye = torch.eye(jac.shape[1], dtype=jac.dtype, device=jac.device)
        y = torch.linalg.solve(jac @ jac.mT + damping**2 * eye, err)
        ctx.save_for_backward(jac, err)
        ctx.damping = damping
        return (jac.mT @ y.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        jac, err = ctx.saved_tensors
        eye = torch.eye(jac.shape[1], dtype=jac.dtype, device=jac.device)
        gram = jac @ jac.mT + ctx.damping**2 * eye
        y = torch.linalg.solve(gram, err).unsqueeze(-1)
        s = torch.linalg.solve(gram, jac @ g.unsqueeze(-1))
        g_jac = y @ g.unsqueeze(1) - s @ (jac.mT @ y).mT - y @ (jac.mT @ s).mT
        return g_jac, s.squeeze(-1), None


class _BlendFn(Function):
    @staticmethod
    def forward(ctx, gyro, accel, a, dt):
        y, out = accel[:, 0], []
        for t in range(gyro.shape[1]):
            y = a * (y + dt * gyro[:, t]) + (1 - a) * accel[:, t]
            out.append(y)
        y = torch.stack(out, dim=1)
        ctx.save_for_backward(gyro, accel, a, y)
        ctx.dt = dt
        return y

    @staticmethod
    def backward(ctx, grad_y):
        gyro, accel, a, y = ctx.saved_tensors
        run, lam = torch.zeros_like(grad_y[:, 0]), []
        for t in reversed(range(grad_y.shape[1])):
            run = grad_y[:, t] + a * run
            lam.append(run)
        lam = torch.stack(lam[::-1], dim=1)
        prev = torch.cat([accel[:, :1], y[:, :-1]], dim=1)
        g_accel = (1 - a) * lam
        g_accel = torch.cat([g_accel[:, :1] + a * lam[:, :1], g_accel[:, 1:]], dim=1)
        g_a = (lam * (prev + ctx.dt * gyro - accel)).sum()
        return a * ctx.dt * lam, g_accel, g_a, None


class ComplementaryFilter(nn.Module):
    """Blend integrated rates and absolute tilt readings, both (B, T)."""

    def __init__(self, dt=0.02, init_logit=2.0):
        super().__init__()
        self.dt = dt
        self.logit = nn.Parameter(torch.tensor(float(init_logit)))

    def forward(self, gyro, accel):
        assert gyro.shape == accel.shape
        return _BlendFn.apply(gyro, accel, torch.sigmoid(self.logit), self.dt)
