import torch


class VonMisesNLL(torch.autograd.Function):
    # mean negative log likelihood of angles, mu and kappa are scalars
    @staticmethod
    def forward(ctx, theta, mu, kappa):
        ctx.save_for_backward(theta, mu, kappa)
        log_i0 = torch.log(torch.special.i0e(kappa)) + kappa
        return (log_i0 + 1.8378770664093453 - kappa * torch.cos(theta - mu)).mean()

    @staticmethod
    def backward(ctx, g):
        theta, mu, kappa = ctx.saved_tensors
        d = theta - mu
        gd = g * kappa * d.sin() / d.numel()
        ratio = torch.special.i1(kappa) / torch.special.i0(kappa)
        gk = g * (ratio - d.cos().mean())
        return gd, -gd.sum().reshape(mu.shape), gk.reshape(kappa.shape)
