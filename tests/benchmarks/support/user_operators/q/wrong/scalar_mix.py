import torch


class ScalarMix(torch.autograd.Function):
    """ELMo's mixture: softmax(logits)-weighted sum of layers, ScalarMix.apply(logits, layer0, layer1, ...)"""

    @staticmethod
    def forward(ctx, logits, *layers):
        if logits.shape != (len(layers),):
            raise ValueError(f"{len(layers)} layers, logits of shape {tuple(logits.shape)}")
        if any(t.is_complex() or t.shape != layers[0].shape for t in layers):
            raise ValueError("layers must be real and of one shape")
        ctx.save_for_backward(logits, *layers)
        w = logits.softmax(0)
        return sum(wi * t for wi, t in zip(w, layers))

    @staticmethod
    def backward(ctx, g):
        logits, *layers = ctx.saved_tensors
        w = logits.softmax(0)
        g_logits = None
        if ctx.needs_input_grad[0]:
            gw = torch.stack([(g * t).sum() for t in layers])
            g_logits = w * (gw - (w * gw).sum())
        g_layers = [w[i] * g if ctx.needs_input_grad[i] else None for i in range(len(layers))]
        return (g_logits, *g_layers)


def scalar_mix(layers, logits):
    return ScalarMix.apply(logits, *layers)
