import torch

_PAULI = {
    "x": [[0, 1], [1, 0]],
    "y": [[0, -1j], [1j, 0]],
    "z": [[1, 0], [0, -1]],
}
_cache = {}


def _pauli(axis, like):
    key = axis, like.dtype, like.device
    if key not in _cache:
        _cache[key] = torch.tensor(_PAULI[axis], dtype=like.dtype, device=like.device)
    return _cache[key]


def _on_qubit(m, psi, q):
    # psi (B, 2, 2, ..., 2)
    return torch.tensordot(m, psi, ([1], [q + 1])).movedim(0, q + 1)


class PauliRotation(torch.autograd.Function):
    """exp(-i theta/2 P) on one qubit of a batch of states (B, 2**n), theta (B,) or () real"""

    @staticmethod
    def forward(ctx, psi, theta, axis, qubit):
        n = psi.shape[1].bit_length() - 1
        if psi.shape[1] != 2 ** n or not 0 <= qubit < n:
            raise ValueError("no such qubit")
        ctx.save_for_backward(psi, theta)
        ctx.axis, ctx.qubit, ctx.n = axis, qubit, n
        p = _on_qubit(_pauli(axis, psi), psi.reshape(-1, *[2] * n), qubit).reshape(psi.shape)
        half = (theta / 2).reshape(-1, 1)
        return half.cos() * psi - 1j * half.sin() * p

    @staticmethod
    def backward(ctx, g):
        psi, theta = ctx.saved_tensors
        half = (theta / 2).reshape(-1, 1)
        P = _pauli(ctx.axis, psi)
        shape = [2] * ctx.n
        gp = _on_qubit(P, g.reshape(-1, *shape), ctx.qubit).reshape(g.shape)
        gpsi = half.cos() * g + 1j * half.sin() * gp
        p = _on_qubit(P, psi.reshape(-1, *shape), ctx.qubit).reshape(psi.shape)
        d = -0.5 * (half.sin() * psi + 1j * half.cos() * p)
        gtheta = (g.conj() * d).real.sum(1)
        return gpsi, gtheta.sum() if theta.dim() == 0 else gtheta, None, None
