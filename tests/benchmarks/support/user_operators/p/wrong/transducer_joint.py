import torch


class TransducerJoint(torch.autograd.Function):
    """RNN-T joint: every encoder frame with every predictor step.

    enc: (B, T, D), pred: (B, U, D), enc_lens: (B,) int64 or None.
    Frames at or past ``enc_lens`` come out as zeros.
    Returns (B, T, U, D).
    """

    @staticmethod
    def forward(ctx, enc, pred, enc_lens=None):
        if enc.is_complex() or pred.is_complex():
            raise TypeError("complex inputs are not supported")
        if enc.dim() != 3 or pred.dim() != 3 or enc.size(0) != pred.size(0) or enc.size(2) != pred.size(2):
            raise ValueError("expected enc (B, T, D) and pred (B, U, D)")
        out = torch.tanh(enc.unsqueeze(2) + pred.unsqueeze(1))
        frame_mask = None
        if enc_lens is not None:
            steps = torch.arange(enc.size(1), device=enc.device)
            frame_mask = (steps[None, :] < enc_lens[:, None])[:, :, None, None]
            out = out.masked_fill(~frame_mask, 0.0)
        ctx.save_for_backward(out, frame_mask)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        out, frame_mask = ctx.saved_tensors
        grad = grad_out * (1 - out * out)
        return grad.sum(2), grad.sum(1), None
