import torch


class TwoLinkInverseDynamics(torch.autograd.Function):
    """Joint torques of a planar arm of two uniform rods. q, qd, qdd: (B, 2), q = 0 is horizontal."""

    @staticmethod
    def consts(m, l, g):
        (m1, m2), (l1, l2) = m, l
        a = m1 * l1 ** 2 / 3 + m2 * l1 ** 2
        b = m2 * l2 ** 2 / 3
        c = m2 * l1 * l2 / 2
        return a, b, c, (m1 / 2 + m2) * l1 * g, m2 * l2 / 2 * g

    @staticmethod
    def forward(ctx, q, qd, qdd, m=(1.0, 1.0), l=(1.0, 1.0), g=9.81):
        ctx.save_for_backward(q, qd, qdd)
        ctx.consts = a, b, c, g1, g2 = TwoLinkInverseDynamics.consts(m, l, g)
        (q1, q2), (v1, v2), (a1, a2) = q.unbind(1), qd.unbind(1), qdd.unbind(1)
        c2, s2 = torch.cos(q2), torch.sin(q2)
        t1 = (a + b + 2 * c * c2) * a1 + (b + c * c2) * a2 - c * s2 * (2 * v1 * v2 + v2 ** 2)
        t2 = (b + c * c2) * a1 + b * a2 + c * s2 * v1 ** 2
        grav = g2 * torch.cos(q1 + q2)
        return torch.stack([t1 + g1 * torch.cos(q1) + grav, t2 + grav], 1)

    @staticmethod
    def backward(ctx, grad):
        q, qd, qdd = ctx.saved_tensors
        a, b, c, g1, g2 = ctx.consts
        (q1, q2), (v1, v2), (a1, a2) = q.unbind(1), qd.unbind(1), qdd.unbind(1)
        t1, t2 = grad.unbind(1)
        c2, s2 = torch.cos(q2), torch.sin(q2)
        d12 = -g2 * torch.sin(q1 + q2) * (t1 + t2)
        dq1 = d12 - g1 * torch.sin(q1) * t1
        dq2 = d12 - c * s2 * ((2 * a1 + a2) * t1 + a1 * t2)
        dq2 = dq2 + c * c2 * (v1 ** 2 * t2 - (2 * v1 * v2 + v2 ** 2) * t1)
        dv1 = 2 * c * s2 * (v1 * t2 - v2 * t1)
        dv2 = -2 * c * s2 * v1 * t1
        da1 = (a + b + 2 * c * c2) * t1 + (b + c * c2) * t2
        da2 = (b + c * c2) * t1 + b * t2
        st = lambda x, y: torch.stack([x, y], 1)
        return st(dq1, dq2), st(dv1, dv2), st(da1, da2), None, None, None
