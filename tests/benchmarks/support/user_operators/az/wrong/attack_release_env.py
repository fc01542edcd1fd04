import torch
from torch import Tensor, nn


class _Envelope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, attack, release):
        level = torch.zeros_like(x[..., 0])
        track = []
        for t in range(x.size(-1)):
            size = x[..., t].abs()
            rate = torch.where(size > level, attack, release)
            level = level + rate * (size - level)
            track.append(level)
        out = torch.stack(track, -1)
        ctx.save_for_backward(x, attack, release, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, attack, release, out = ctx.saved_tensors
        before = out.roll(1, -1)
        gap = x.abs() - before
        rising = gap > 0
        rate = torch.where(rising, attack, release)
        carried = torch.zeros_like(grad[..., 0])
        total = []
        for t in reversed(range(x.size(-1))):
            carried = carried + grad[..., t]
            total.append(carried)
            carried = carried * (1 - rate[..., t])
        g = torch.stack(total[::-1], -1)
        g_rate = g * gap
        return g * rate * x.sign(), (g_rate * rising).sum(), (g_rate * ~rising).sum()


class AttackRelease(nn.Module):
    def __init__(self, attack: float = 0.5, release: float = 0.05) -> None:
        super().__init__()
        if not (0 < attack < 1 and 0 < release < 1):
            raise ValueError("rates must lie in (0, 1)")
        self.attack_logit = nn.Parameter(torch.logit(torch.tensor(attack)))
        self.release_logit = nn.Parameter(torch.logit(torch.tensor(release)))

    def forward(self, x: Tensor) -> Tensor:
        return _Envelope.apply(x, self.attack_logit.sigmoid(), self.release_logit.sigmoid())
