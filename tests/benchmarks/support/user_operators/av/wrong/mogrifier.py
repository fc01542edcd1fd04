import torch
from torch import Tensor
from torch.autograd import Function


def _gate(src: Tensor, w: Tensor) -> Tensor:
    return 2 * torch.sigmoid(src @ w.T)


class _Mogrify(Function):
    @staticmethod
    def forward(ctx, x: Tensor, h: Tensor, *weights: Tensor):
        ctx.save_for_backward(x, h, *weights)
        for i, w in enumerate(weights):
            if i % 2 == 0:
                x = _gate(h, w) * x
            else:
                h = _gate(x, w) * h
        return x, h

    @staticmethod
    def backward(ctx, gx: Tensor, gh: Tensor):
        x, h, *weights = ctx.saved_tensors
        states = []
        for i, w in enumerate(weights):
            states.append((x, h))
            if i % 2 == 0:
                x = _gate(h, w) * x
            else:
                h = _gate(x, w) * h
        dws = []
        for i in reversed(range(len(weights))):
            (x, h), w = states[i], weights[i]
            src, dst, g = (h, x, gx) if i % 2 == 0 else (x, h, gh)
            gate = _gate(src, w)
            da = g * dst * gate * (1 - gate / 2)
            dws.append(da.T @ src)
            if i % 2 == 0:
                gx, gh = g * gate, gh + da @ w
            else:
                gh, gx = g * gate, gx + da @ w
        return (gx, gh, *dws)


def mogrifier(x: Tensor, h: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Mogrifier rounds before an LSTM cell; x (B, D), h (B, H), at least two weights, by turns (D, H) and (H, D)."""
    return _Mogrify.apply(x, h, *weights)
