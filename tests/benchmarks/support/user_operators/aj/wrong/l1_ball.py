import torch


def _threshold(a, z):
    s = a.sort(-1, descending=True)[0]
    k = torch.arange(1, a.shape[-1] + 1, dtype=a.dtype, device=a.device)
    cs = s.cumsum(-1) - z
    rho = (s * k > cs).sum(-1, keepdim=True).clamp(min=1)
    return cs.gather(-1, rho - 1) / rho.to(a.dtype)


class ProjectL1(torch.autograd.Function):
    """Euclidean projection of the rows of x (B, D) onto the l1 ball of radius z."""

    @staticmethod
    def forward(ctx, x, z=1.0):
        a = x.abs()
        inside = a.sum(-1, keepdim=True) <= z
        y = torch.sign(x) * (a - _threshold(a, z)).clamp(min=0)
        y = torch.where(inside, x, y)
        ctx.save_for_backward(torch.sign(y), inside)
        return y

    @staticmethod
    def backward(ctx, g):
        s, inside = ctx.saved_tensors
        on = s.abs()
        tau = (g * s).sum(-1, keepdim=True) / on.sum(-1, keepdim=True).clamp(min=1)
        gx = on * g - s * tau
        return gx, None
