import torch


class MetaSGDStep(torch.autograd.Function):
    # tensors = params + grads + lrs, three lists of the same length.
    # lr is 0-dim or has the parameter's shape.

    @staticmethod
    def forward(ctx, weight_decay, *tensors):
        n = len(tensors) // 3
        params, grads, lrs = tensors[:n], tensors[n:2 * n], tensors[2 * n:]
        ctx.weight_decay = weight_decay
        ctx.n = n
        ctx.save_for_backward(*tensors)
        return tuple(p - lr * (g + weight_decay * p) for p, g, lr in zip(params, grads, lrs))

    @staticmethod
    def backward(ctx, *grad_new):
        n, wd = ctx.n, ctx.weight_decay
        saved = ctx.saved_tensors
        params, grads, lrs = saved[:n], saved[n:2 * n], saved[2 * n:]
        d_params, d_grads, d_lrs = [], [], []
        for p, g, lr, d in zip(params, grads, lrs, grad_new):
            d_params.append(d)
            d_grads.append(-lr * d)
            d_lr = -d * (g + wd * p)
            d_lrs.append(d_lr.sum() if lr.dim() == 0 else d_lr)
        return (None, *d_params, *d_grads, *d_lrs)
