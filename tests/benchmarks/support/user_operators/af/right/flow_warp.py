import torch
from torch.autograd.function import once_differentiable


class FlowWarp(torch.autograd.Function):
    # backward warping with border padding; flow[0] is along x, flow[1] along y (pixels)

    @staticmethod
    def forward(ctx, img, flow):
        C, H, W = img.shape
        gy, gx = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
        px, py = gx + flow[0], gy + flow[1]
        cx, cy = px.clamp(0, W - 1), py.clamp(0, H - 1)
        x0 = cx.floor().clamp(max=max(W - 2, 0))
        y0 = cy.floor().clamp(max=max(H - 2, 0))
        fx, fy = cx - x0, cy - y0
        x0, y0 = x0.long(), y0.long()
        x1, y1 = (x0 + 1).clamp(max=W - 1), (y0 + 1).clamp(max=H - 1)
        free_x = (px > 0) & (px < W - 1)
        free_y = (py > 0) & (py < H - 1)
        ctx.save_for_backward(img, fx, fy, x0, y0, x1, y1, free_x, free_y)
        top = img[:, y0, x0] * (1 - fx) + img[:, y0, x1] * fx
        bottom = img[:, y1, x0] * (1 - fx) + img[:, y1, x1] * fx
        return top * (1 - fy) + bottom * fy

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        img, fx, fy, x0, y0, x1, y1, free_x, free_y = ctx.saved_tensors
        C, H, W = img.shape
        a, b, c, d = img[:, y0, x0], img[:, y0, x1], img[:, y1, x0], img[:, y1, x1]
        g_img = grad.new_zeros(C, H * W)
        for yy, xx, w in ((y0, x0, (1 - fy) * (1 - fx)), (y0, x1, (1 - fy) * fx),
                          (y1, x0, fy * (1 - fx)), (y1, x1, fy * fx)):
            g_img.index_add_(1, (yy * W + xx).reshape(-1), (grad * w).reshape(C, -1))
        g_fx = (grad * ((b - a) * (1 - fy) + (d - c) * fy)).sum(0)
        g_fy = (grad * ((c - a) * (1 - fx) + (d - b) * fx)).sum(0)
        g_flow = torch.stack([g_fx * free_x, g_fy * free_y])
        return g_img.view(C, H, W), g_flow


def flow_warp(img, flow, scale=1.0):
    """img (C, H, W), flow (2, H, W)"""
    return FlowWarp.apply(img, flow * scale)
