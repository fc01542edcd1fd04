import torch
import torch.nn.functional as F


class Correlation1D(torch.autograd.Function):
    """Stereo correlation: cost[b, d, h, w] = mean_c left[b,c,h,w] * right[b,c,h,w-d], d = 0..D-1"""

    @staticmethod
    def forward(ctx, left, right, max_disp: int):
        ctx.save_for_backward(left, right)
        ctx.max_disp = max_disp
        W = left.shape[-1]
        rows = []
        for d in range(max_disp):
            prod = (left[..., d:] * right[..., : max(W - d, 0)]).mean(1)
            rows.append(F.pad(prod, (min(d, W), 0)))
        return torch.stack(rows, 1)

    @staticmethod
    def backward(ctx, grad):
        left, right = ctx.saved_tensors
        C, W = left.shape[1], left.shape[-1]
        gl, gr = torch.zeros_like(left), torch.zeros_like(right)
        for d in range(min(ctx.max_disp, W)):
            g = grad[:, d, None, :, d:] / C
            gl = gl + F.pad(g * right[..., : W - d], (d, 0))
            gr = gr + F.pad(g * left[..., d:], (0, d))
        return gl, gr, None
