import torch


class ProjectSimplex(torch.autograd.Function):
    @staticmethod
    def forward(v):
        u, _ = v.sort(-1, descending=True)
        cs = u.cumsum(-1) - 1
        k = torch.arange(1, v.shape[-1] + 1, device=v.device, dtype=v.dtype)
        rho = (u * k > cs).sum(-1, keepdim=True)
        tau = cs.gather(-1, rho - 1) / rho
        out = (v - tau).clamp(min=0)
        return out

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        on = (out > 0).to(grad.dtype)
        g = grad * on
        return g - on * g.mean(-1, keepdim=True)
