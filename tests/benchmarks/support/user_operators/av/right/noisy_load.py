import torch
from torch import Tensor
from torch.autograd import Function


class NoisyLoad(Function):
    """Smooth load of noisy top-k gating: sum_t Phi((clean - kth excluding self) / std).

    clean, std, noise (T, E), k < E -> (E,)
    """

    @staticmethod
    def forward(ctx, clean: Tensor, std: Tensor, noise: Tensor, k: int) -> Tensor:
        ctx.k = k
        noisy = clean + noise * std
        top, idx = noisy.topk(k + 1, -1)
        ctx.save_for_backward(clean, std, noise, idx)
        chosen = noisy > top[:, k:]
        thr = torch.where(chosen, top[:, k:], top[:, k - 1 : k])
        return torch.special.ndtr((clean - thr) / std).sum(0)

    @staticmethod
    def backward(ctx, g: Tensor):
        clean, std, noise, idx = ctx.saved_tensors
        pair = idx[:, ctx.k - 1 : ctx.k + 1]
        noisy = clean + noise * std
        t_out, t_in = noisy.gather(1, pair).split(1, -1)
        chosen = noisy > t_in
        z = (clean - torch.where(chosen, t_in, t_out)) / std
        d = g * torch.exp(-0.5 * z * z) / ((2 * torch.pi) ** 0.5 * std)
        d_out = -(d * ~chosen).sum(-1, keepdim=True)
        d_in = -(d * chosen).sum(-1, keepdim=True)
        d_noisy = torch.zeros_like(d).scatter_add(1, pair, torch.cat([d_out, d_in], -1))
        d_clean = d + d_noisy
        d_std = -d * z + d_noisy * noise
        d_noise = d_noisy * std
        return d_clean, d_std, d_noise, None
