import torch

_PAULI = {
    "x": [[0, 1], [1, 0]],
    "y": [[0, -1j], [1j, 0]],
    "z": [[1, 0], [0, -1]],
}


def _apply_pauli(state, qubit, axis):
    n = state.shape[-1].bit_length() - 1
    gate = torch.tensor(_PAULI[axis], dtype=state.dtype, device=state.device)
    split = state.reshape(*state.shape[:-1], 2 ** qubit, 2, 2 ** (n - qubit - 1))
    return torch.einsum("ij,...ajb->...aib", gate, split).reshape(state.shape)


class QubitRotation(torch.autograd.Function):
    """exp(-i theta P / 2) on one qubit of state vectors (..., 2 ** n); theta is a real scalar."""

    @staticmethod
    def forward(ctx, state, theta, qubit, axis):
        ctx.save_for_backward(state, theta)
        ctx.qubit, ctx.axis = qubit, axis
        return torch.cos(theta / 2) * state - 1j * torch.sin(theta / 2) * _apply_pauli(state, qubit, axis)

    @staticmethod
    def backward(ctx, g):
        state, theta = ctx.saved_tensors
        c, s = torch.cos(theta / 2), torch.sin(theta / 2)
        g_state = g_theta = None
        if ctx.needs_input_grad[0]:
            g_state = c * g + 1j * s * _apply_pauli(g, ctx.qubit, ctx.axis)
        if ctx.needs_input_grad[1]:
            d = -0.5 * s * state - 0.5j * c * _apply_pauli(state, ctx.qubit, ctx.axis)
            g_theta = (g.conj() * d).sum().real
        return g_state, g_theta, None, None
