import torch


class HBondEnergy(torch.autograd.Function):
    """Kabsch & Sander electrostatic H-bond energy (kcal/mol), coordinates in Angstrom, each (n, 3).

    E = 0.084 * 332 * (1/r_ON + 1/r_CH - 1/r_OH - 1/r_CN)
    """

    q = 0.084 * 332

    @staticmethod
    def forward(ctx, O, C, N, H):
        ctx.save_for_backward(O, C, N, H)
        inv = lambda a, b: 1 / (a - b).norm(dim=-1)
        return HBondEnergy.q * (inv(O, N) + inv(C, H) - inv(O, H) - inv(C, N))

    @staticmethod
    def backward(ctx, gE):
        O, C, N, H = ctx.saved_tensors

        def pull(a, b):
            d = a - b
            return -d / d.norm(dim=-1, keepdim=True) ** 3

        s = HBondEnergy.q * gE[:, None]
        on, ch, oh, cn = pull(O, N), pull(C, H), pull(O, H), pull(C, N)
        return s * (on - oh), s * (ch - cn), s * (cn - on), s * (oh - ch)
