import torch


class FastSigmoidSpike(torch.autograd.Function):
    """Heaviside spike with the derivative of a fast sigmoid (SuperSpike).

    forward:  1 if v >= threshold else 0
    backward: derivative of x / (1 + slope |x|), x = v - threshold

    v: (B, N), threshold: (N,) trainable or (1,)
    """

    @staticmethod
    def forward(ctx, v, threshold, slope: float = 25.0):
        ctx.save_for_backward(v, threshold)
        ctx.slope = slope
        return (v >= threshold).to(v.dtype)

    @staticmethod
    def backward(ctx, grad):
        v, threshold = ctx.saved_tensors
        x = v - threshold
        gv = grad / (1 + ctx.slope * x.abs()) ** 2
        gt = None
        if ctx.needs_input_grad[1]:
            gt = -gv.mean(0).sum_to_size(threshold.shape)
        return gv, gt, None
