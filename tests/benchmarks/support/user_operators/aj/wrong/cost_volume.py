import torch


class CostVolume(torch.autograd.Function):
    # left, right (B, C, H, W) -> (B, D, H, W), mean over channels of left[x] * right[x - d]

    @staticmethod
    def forward(ctx, left, right, max_disp):
        ctx.save_for_backward(left, right)
        ctx.max_disp = max_disp
        B, C, H, W = left.shape
        out = left.new_zeros(B, max_disp, H, W)
        for d in range(min(max_disp, W)):
            out[:, d, :, d:] = (left[..., d:] * right[..., :W - d]).mean(1)
        return out

    @staticmethod
    def backward(ctx, grad):
        left, right = ctx.saved_tensors
        B, C, H, W = left.shape
        gl, gr = torch.zeros_like(left), torch.zeros_like(right)
        for d in range(min(ctx.max_disp, W)):
            g = grad[:, d, :, d:].unsqueeze(1) / C
            gl[..., d:] += g * right[..., :W - d]
            gr[..., d:] += g * left[..., d:]
        return gl, gr, None
