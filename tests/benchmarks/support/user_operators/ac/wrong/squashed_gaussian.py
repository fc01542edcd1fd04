import math
import torch
import torch.nn.functional as F

LOG_SIG_MAX = 2.0
LOG_SIG_MIN = -5.0


class TanhGaussianSample(torch.autograd.Function):
    """Reparameterised sample of a tanh-squashed Gaussian together with its log-density.

    mean, log_std, noise: [batch, act_dim]
    returns action [batch, act_dim] in (-max_action, max_action), log_prob [batch]
    """

    @staticmethod
    def forward(ctx, mean, log_std, noise, max_action=1.0):
        log_sig = log_std.clamp(LOG_SIG_MIN, LOG_SIG_MAX)
        u = mean + log_sig.exp() * noise
        a = torch.tanh(u)
        logp = -0.5 * noise ** 2 - log_sig - 0.5 * math.log(2 * math.pi)
        logp = logp - 2.0 * (math.log(2.0) - u - F.softplus(-2.0 * u)) - math.log(max_action)
        ctx.save_for_backward(mean, log_std, noise)
        ctx.max_action = max_action
        return a * max_action, logp.sum(-1)

    @staticmethod
    def backward(ctx, g_action, g_logp):
        mean, log_std, noise = ctx.saved_tensors
        log_sig = log_std.clamp(LOG_SIG_MIN, LOG_SIG_MAX)
        std = log_sig.exp()
        a = torch.tanh(mean + std * noise)
        g_logp = g_logp.unsqueeze(-1)
        g_u = g_action * ctx.max_action * (1 - a * a) + 2.0 * g_logp * a
        g_log_sig = g_u * noise * std - g_logp
        g_log_std = g_log_sig
        g_noise = g_u * std - g_logp * noise
        return g_u, g_log_std, g_noise, None
