import torch


class IVIM(torch.autograd.Function):
    # S(b) = s0 (f exp(-b D*) + (1 - f) exp(-b D));  b (K,), maps (V,) -> (V, K)
    @staticmethod
    def forward(ctx, b, s0, f, D, Dstar):
        ctx.save_for_backward(b, s0, f, D, Dstar)
        s0, f, D, Dstar = (v[:, None] for v in (s0, f, D, Dstar))
        return s0 * (f * torch.exp(-b * Dstar) + (1 - f) * torch.exp(-b * D))

    @staticmethod
    def backward(ctx, g):
        b, s0, f, D, Dstar = ctx.saved_tensors
        s0, f, D, Dstar = (v[:, None] for v in (s0, f, D, Dstar))
        fast, slow = torch.exp(-b * Dstar), torch.exp(-b * D)
        gs = g * s0
        g_f = (gs * (fast - slow)).sum(1)
        g_s0 = (g * (f * fast + (1 - f) * slow)).sum(1)
        g_D = -(gs * (1 - f) * b * slow).sum(1)
        g_Dstar = -(gs * f * b * fast).sum(1)
        g_b = -(gs * (f * Dstar * fast + (1 - f) * D * slow)).sum(0)
        return g_b, g_s0, g_f, g_Dstar, g_D
