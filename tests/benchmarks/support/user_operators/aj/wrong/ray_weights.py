import torch


class RayWeights(torch.autograd.Function):
    # sigma, delta (R, S) -> weights (R, S), transmittance behind the last sample (R,)

    @staticmethod
    def forward(ctx, sigma, delta):
        ctx.save_for_backward(sigma, delta)
        tau = sigma * delta
        acc = torch.cumsum(tau, -1)
        w = torch.exp(-(acc - tau)) - torch.exp(-acc)
        return w, torch.exp(-acc[:, -1])

    @staticmethod
    def backward(ctx, gw, gT):
        sigma, delta = ctx.saved_tensors
        tau = sigma * delta
        acc = torch.cumsum(tau, -1)
        w = torch.exp(-(acc - tau)) - torch.exp(-acc)
        wg = w * gw
        behind = wg.flip(-1).cumsum(-1).flip(-1)
        gtau = torch.exp(-acc) * gw - behind - (torch.exp(-acc[:, -1]) * gT)[:, None]
        return gtau * delta, gtau * sigma
