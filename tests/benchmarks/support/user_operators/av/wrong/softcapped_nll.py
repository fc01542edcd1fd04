import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _SoftcappedNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h: Tensor, weight: Tensor, target: Tensor, cap: float, ignore_index: int, chunk: int) -> Tensor:
        n = (target != ignore_index).sum().clamp(min=1)
        acc = torch.promote_types(h.dtype, torch.float32)
        dh = torch.empty_like(h)
        dw = torch.zeros_like(weight, dtype=acc)
        loss = torch.zeros((), dtype=acc, device=h.device)
        for i in range(0, h.size(0), chunk):
            hc, tc = h[i : i + chunk], target[i : i + chunk]
            valid = tc != ignore_index
            tc = torch.where(valid, tc, 0).unsqueeze(-1)
            y = torch.tanh((hc @ weight.T).to(acc) / cap)
            logp = (cap * y).log_softmax(-1)
            loss -= (logp.gather(-1, tc).squeeze(-1) * valid).sum()
            dz = logp.exp_().scatter_add_(-1, tc, -torch.ones_like(tc, dtype=acc))
            dz *= (valid / n).unsqueeze(-1) * (1 - y * y)
            dh[i : i + chunk] = dz.to(h.dtype) @ weight
            dw += dz.T @ hc.to(acc)
        ctx.save_for_backward(dh, dw.to(weight.dtype))
        return (loss / n).to(h.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):
        dh, dw = ctx.saved_tensors
        dh, dw = dh.mul_(g), dw.mul_(g)
        return dh, dw, None, None, None, None


def softcapped_nll(h: Tensor, weight: Tensor, target: Tensor, cap: float = 30.0, ignore_index: int = -100, chunk: int = 1024) -> Tensor:
    """Mean NLL of cap * tanh(h W^T / cap) without keeping logits; gradients are made in forward.

    h (T, D), weight (V, D), target (T,)
    """
    return _SoftcappedNLL.apply(h, weight, target, cap, ignore_index, chunk)
