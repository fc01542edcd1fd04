import torch


class ABCDPropagate(torch.autograd.Function):
    """q' = (A q + B) / (C q + D) for complex beam parameters q, real 2x2 ray matrix."""

    @staticmethod
    def forward(q, abcd):
        (A, B), (C, D) = abcd
        return (A * q + B) / (C * q + D)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        q, abcd = ctx.saved_tensors
        (A, B), (C, D) = abcd
        den = C * q + D
        out = (A * q + B) / den
        gq = grad * ((A * D - B * C) / den ** 2).conj()
        def real(z):
            return (grad * z).real.sum()
        gA, gB = real(q / den), real(1 / den)
        gC, gD = real(-out * q / den), real(-out / den)
        return gq, torch.stack([gA, gB, gC, gD]).view(2, 2)
