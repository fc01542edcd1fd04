import torch


class FrameSignal(torch.autograd.Function):
    """Slice a batch of signals (B, T) into overlapping frames (B, F, frame_length).

    Trailing samples that do not fill a frame are dropped.
    """

    @staticmethod
    def forward(ctx, signal, frame_length: int, hop_length: int):
        t = signal.size(-1)
        if frame_length > t or hop_length < 1:
            raise ValueError("bad frame_length or hop_length")
        n_frames = 1 + (t - frame_length) // hop_length
        start = torch.arange(n_frames, device=signal.device) * hop_length
        index = start[:, None] + torch.arange(frame_length, device=signal.device)
        ctx.save_for_backward(index)
        ctx.shape = signal.shape
        return signal[:, index]

    @staticmethod
    def backward(ctx, grad_frames):
        (index,) = ctx.saved_tensors
        grad = grad_frames.new_zeros(ctx.shape)
        grad = grad.index_add(1, index.flatten(), grad_frames.flatten(1))
        count = torch.bincount(index.flatten(), minlength=ctx.shape[1]).clamp(min=1)
        return grad / count, None, None
