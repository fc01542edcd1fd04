import torch


class Expectation(torch.autograd.Function):
    """Re <psi|H|psi> for a state psi (n,) and an operator H (n, n), complex."""

    @staticmethod
    def forward(psi, H):
        return torch.vdot(psi, H @ psi).real

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        psi, H = ctx.saved_tensors
        gpsi = grad * (H @ psi + H.mH @ psi)
        gH = grad * torch.outer(psi.conj(), psi)
        return gpsi, gH
