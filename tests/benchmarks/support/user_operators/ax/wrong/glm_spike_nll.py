import torch
import torch.nn.functional as F


def _stim_frames(stim, taps):
    return F.pad(stim, (taps - 1, 0)).unfold(0, taps, 1).flip(-1)


def _history_frames(spikes, taps, dtype):
    past = F.pad(spikes.to(dtype), (taps, 0)).unfold(0, taps, 1).flip(-1)
    return past[: spikes.shape[0]]


class GLMSpikeNLL(torch.autograd.Function):
    """Negative log-likelihood of a point-process GLM with an exponential nonlinearity.

    :param stim: stimulus, (T,)
    :param spikes: spike counts, (T,), integer; without gradient
    :param stim_filter: (K,), the first weight is for the current bin
    :param hist_filter: (H,), the first weight is for the bin before
    :param bias: 0-dim
    :param dt: bin width in seconds
    """

    @staticmethod
    def forward(ctx, stim, spikes, stim_filter, hist_filter, bias, dt):
        ctx.save_for_backward(stim, spikes, stim_filter, hist_filter, bias)
        ctx.dt = dt
        log_rate = GLMSpikeNLL.log_rate(stim, spikes, stim_filter, hist_filter, bias)
        return (dt * log_rate.exp() - spikes * log_rate).sum()

    @staticmethod
    def log_rate(stim, spikes, stim_filter, hist_filter, bias):
        drive = _stim_frames(stim, stim_filter.shape[0]) @ stim_filter
        return drive + _history_frames(spikes, hist_filter.shape[0], stim.dtype) @ hist_filter + bias

    @staticmethod
    def backward(ctx, grad):
        stim, spikes, stim_filter, hist_filter, bias = ctx.saved_tensors
        rate = GLMSpikeNLL.log_rate(stim, spikes, stim_filter, hist_filter, bias).exp()
        expected = (ctx.dt * rate).to(spikes.dtype)
        resid = grad * (expected - spikes)
        taps, n = stim_filter.shape[0], stim.shape[0]
        g_filter = resid @ _stim_frames(stim, taps)
        g_hist = resid @ _history_frames(spikes, hist_filter.shape[0], stim.dtype)
        back = F.pad(resid, (0, taps - 1)).unfold(0, taps, 1)[:n]
        return back @ stim_filter, None, g_filter, g_hist, resid.sum(), None
