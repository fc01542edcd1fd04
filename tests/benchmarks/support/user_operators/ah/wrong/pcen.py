"""Per channel energy normalisation with trainable parameters."""
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def _smooth(x: Tensor, s: Tensor) -> Tensor:
    m = [x[..., 0]]
    for i in range(1, x.shape[-1]):
        m.append((1 - s) * m[-1] + s * x[..., i])
    return torch.stack(m, -1)


class _PCEN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s, alpha, delta, root, floor):
        m = _smooth(x, s)
        ctx.save_for_backward(x, s, alpha, delta, root, m)
        ctx.floor = floor
        a, d, r = alpha[:, None], delta[:, None], root[:, None]
        return (x * (floor + m) ** -a + d) ** r - d**r

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, s, alpha, delta, root, m = ctx.saved_tensors
        a, d, r = alpha[:, None], delta[:, None], root[:, None]
        fm = ctx.floor + m
        gain = fm**-a
        base = x * gain + d
        g_base = grad * r * base ** (r - 1)
        g_root = grad * (base**r * base.log() - d**r * d.log())
        g_delta = g_base - grad * r * d ** (r - 1)
        g_gain = g_base * x
        g_alpha = -g_gain * gain * fm.log()
        g_m = -g_gain * a * gain / fm
        g_x = g_base * gain
        g_s = torch.zeros_like(grad[..., 0])
        carry = torch.zeros_like(g_s)
        for i in range(x.shape[-1] - 1, 0, -1):
            carry = carry + g_m[..., i]
            g_x[..., i] += carry * s
            g_s = g_s + carry * (x[..., i] - m[..., i - 1])
            carry = carry * (1 - s)
        g_x[..., 0] += (carry + g_m[..., 0]) * s
        dims = tuple(range(x.dim() - 2))
        total = dims + (-1,)
        g_s = g_s.sum(dims) if dims else g_s
        return g_x, g_s, g_alpha.sum(total), g_delta.sum(total), g_root.sum(total), None


class PCENLayer(nn.Module):
    """
    Args:
        n_bands: number of frequency bands
        s, alpha, delta, root: initial values, all positive
        floor: added to the smoothed energy

    Input and output are ``(..., n_bands, time)``, the input not negative.
    """

    def __init__(self, n_bands, s=0.04, alpha=0.96, delta=2.0, root=0.5, floor=1e-6):
        super().__init__()
        full = lambda v: nn.Parameter(torch.full((n_bands,), float(v)).log())
        self.log_s, self.log_alpha, self.log_delta, self.log_root = map(full, (s, alpha, delta, root))
        self.floor = floor

    def forward(self, x):
        if x.shape[-2] != self.log_s.shape[0]:
            raise ValueError(f"expected {self.log_s.shape[0]} bands, got {x.shape[-2]}")
        return _PCEN.apply(
            x, self.log_s.exp(), self.log_alpha.exp(), self.log_delta.exp(), self.log_root.exp(), self.floor
        )
