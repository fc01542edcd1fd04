import torch


def qmul(p, q):
    pw, px, py, pz = p.unbind(-1)
    qw, qx, qy, qz = q.unbind(-1)
    return torch.stack([
        pw * qw - px * qx - py * qy - pz * qz,
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw], -1)


def qconj(q):
    return torch.cat([q[..., :1], -q[..., 1:]], -1)


class DualQuatMul(torch.autograd.Function):
    """Product of dual quaternions, (..., 8) = real (w x y z), dual (w x y z). No broadcasting."""

    @staticmethod
    def forward(a, b):
        ar, ad = a.split(4, -1)
        br, bd = b.split(4, -1)
        return torch.cat([qmul(ar, br), qmul(ar, bd) + qmul(ad, br)], -1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        ar, ad = (qconj(v) for v in a.split(4, -1))
        br, bd = (qconj(v) for v in b.split(4, -1))
        gr, gd = g.split(4, -1)
        ga = gb = None
        if ctx.needs_input_grad[0]:
            ga = torch.cat([qmul(gr, br) + qmul(gd, bd), qmul(gd, br)], -1)
        if ctx.needs_input_grad[1]:
            gb = torch.cat([qmul(ar, gr) + qmul(ad, gd), qmul(ar, gd)], -1)
        return ga, gb
