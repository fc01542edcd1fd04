import torch


class RollingBeta(torch.autograd.Function):

    @staticmethod
    def forward(ctx, asset, market, window):
        ctx.save_for_backward(asset, market)
        ctx.window = window
        y = asset.unfold(0, window, 1)
        x = market.unfold(0, window, 1)
        xc = x - x.mean(1, keepdim=True)
        return (xc * y).sum(1) / (xc * xc).sum(1)

    @staticmethod
    def backward(ctx, g):
        asset, market = ctx.saved_tensors
        w = ctx.window
        y, x = asset.unfold(0, w, 1), market.unfold(0, w, 1)
        xc = x - x.mean(1, keepdim=True)
        yc = y - y.mean(1, keepdim=True)
        sxx = (xc * xc).sum(1, keepdim=True)
        beta = (xc * yc).sum(1, keepdim=True) / sxx
        g = g[:, None] / sxx
        pos = torch.arange(y.shape[0], device=y.device)[:, None] + torch.arange(w, device=y.device)
        pos = pos.flatten()
        ga = torch.zeros_like(asset).index_add(0, pos, (g * xc).flatten())
        gm = torch.zeros_like(market).index_add(0, pos, (g * (yc - 2 * beta * xc)).flatten())
        return ga, gm, None
