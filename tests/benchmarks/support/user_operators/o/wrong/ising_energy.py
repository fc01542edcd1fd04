import torch
from torch.autograd import Function


class LatticeEnergy(Function):
    """Energy of soft spins on a periodic lattice.

    E = - sum_ij s_ij (J_ij s_i,j+1 + K_ij s_i+1,j) - sum_ij h_ij s_ij

    spins: (B, H, W); j_right, j_down, field: (H, W) -> (B,)
    """

    @staticmethod
    def forward(ctx, spins, j_right, j_down, field):
        if spins.is_complex():
            raise TypeError("spins must be real")
        for t in (j_right, j_down, field):
            if t.shape != spins.shape[1:]:
                raise ValueError("couplings and field must be (H, W)")
        ctx.save_for_backward(spins, j_right, j_down, field)
        local = j_right * spins.roll(-1, 2) + j_down * spins.roll(-1, 1) + field
        return -(spins * local).sum((1, 2))

    @staticmethod
    def backward(ctx, grad):
        s, j_right, j_down, field = ctx.saved_tensors
        g = -grad[:, None, None]
        local = j_right * s.roll(-1, 2) + j_down * s.roll(-1, 1) + field
        local = local + (j_right * s).roll(-1, 2) + (j_down * s).roll(-1, 1)
        g_right = (g * s * s.roll(-1, 2)).sum(0)
        g_down = (g * s * s.roll(-1, 1)).sum(0)
        return g * local, g_right, g_down, (g * s).sum(0)
