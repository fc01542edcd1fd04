import torch


class ABCDBeam(torch.autograd.Function):
    """q' = (A q + B) / (C q + D).   q: (N,) complex beam parameter, m: (N, 2, 2) real ray matrix"""

    @staticmethod
    def forward(ctx, q, m):
        ctx.save_for_backward(q, m)
        return (m[:, 0, 0] * q + m[:, 0, 1]) / (m[:, 1, 0] * q + m[:, 1, 1])

    @staticmethod
    def backward(ctx, grad):
        q, m = ctx.saved_tensors
        den = m[:, 1, 0] * q + m[:, 1, 1]
        out = (m[:, 0, 0] * q + m[:, 0, 1]) / den
        gq = gm = None
        if ctx.needs_input_grad[0]:
            det = m[:, 0, 0] * m[:, 1, 1] - m[:, 0, 1] * m[:, 1, 0]
            gq = grad * (det / den ** 2).conj()
        if ctx.needs_input_grad[1]:
            w = grad.conj() / den
            gm = torch.stack([w * q, w, -w * out * q, -w * out], -1).real.unflatten(-1, (2, 2))
        return gq, gm
