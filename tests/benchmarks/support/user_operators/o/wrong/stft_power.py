import torch


class STFTPower(torch.autograd.Function):
    """Power spectrogram without centring: (B, T) -> (B, frames, n_fft // 2 + 1), n_fft = window length.

    Samples after the last full frame are dropped.
    """

    @staticmethod
    def forward(x, window, hop):
        if x.dim() != 2 or window.dim() != 1 or hop < 1:
            raise ValueError("expected x (B, T), window (n_fft,), hop >= 1")
        frames = x.unfold(-1, window.numel(), hop)
        spec = torch.fft.rfft(frames * window)
        return spec.real.square() + spec.imag.square()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, window, hop = inputs
        ctx.save_for_backward(x, window)
        ctx.hop = hop

    @staticmethod
    def backward(ctx, grad):
        x, window = ctx.saved_tensors
        n = window.numel()
        frames = x.unfold(-1, n, ctx.hop)
        spec = torch.fft.rfft(frames * window)
        g_frames = torch.fft.ifft(2 * grad * spec, n=n).real * n
        start = torch.arange(frames.size(1), device=x.device) * ctx.hop
        where = (start[:, None] + torch.arange(n, device=x.device)).flatten()
        windowed = g_frames.flatten(1)
        g_x = torch.zeros_like(x).index_add(1, where, windowed)
        return g_x, (g_frames * frames).sum((0, 1)), None
