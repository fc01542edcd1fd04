import torch


class RX(torch.autograd.Function):
    """exp(-i theta X / 2) on one qubit of a batch of states.

    state: (B, 2**n) complex amplitudes; theta: real, () or (B,); qubit 0 is the most significant.
    """

    @staticmethod
    def _split(state, qubit):
        batch, size = state.shape
        left = 2 ** qubit
        if size % (2 * left):
            raise ValueError("no such qubit")
        return state.reshape(batch, left, 2, size // (2 * left)).unbind(2)

    @staticmethod
    def forward(ctx, state, theta, qubit):
        if theta.is_complex():
            raise TypeError("RX: expected real floating point tensors")
        ctx.save_for_backward(state, theta)
        ctx.qubit = qubit
        a0, a1 = RX._split(state, qubit)
        half = theta.reshape(-1, 1, 1) / 2
        c, s = torch.cos(half), -1j * torch.sin(half)
        return torch.stack([c * a0 + s * a1, s * a0 + c * a1], 2).reshape(state.shape)

    @staticmethod
    def backward(ctx, grad):
        state, theta = ctx.saved_tensors
        a0, a1 = RX._split(state, ctx.qubit)
        g0, g1 = RX._split(grad, ctx.qubit)
        half = theta.reshape(-1, 1, 1) / 2
        c, s = torch.cos(half), -1j * torch.sin(half)
        sc = s.conj()
        grad_state = torch.stack([c * g0 + sc * g1, sc * g0 + c * g1], 2).reshape(state.shape)
        dc, ds = -torch.sin(half) / 2, -0.5j * torch.cos(half)
        d0, d1 = dc * a0 + ds * a1, ds * a0 + dc * a1
        grad_theta = (g0.conj() * d0 + g1.conj() * d1).real.sum((1, 2))
        grad_theta = grad_theta.sum() if theta.numel() == 1 else grad_theta
        return grad_state, grad_theta.reshape(theta.shape), None
