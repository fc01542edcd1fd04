import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus


class _ESMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ctr_logit, cvr_logit, click, conversion, w_ctr, w_ctcvr):
        log_joint = logsigmoid(ctr_logit) + logsigmoid(cvr_logit)
        ctr = softplus(ctr_logit) - click * ctr_logit
        ctcvr = -(conversion * log_joint + (1 - conversion) * torch.log(-torch.expm1(log_joint)))
        ctx.save_for_backward(ctr_logit, cvr_logit, click, conversion)
        ctx.weights = w_ctr, w_ctcvr
        return (w_ctr * ctr + w_ctcvr * ctcvr).mean()

    @staticmethod
    def backward(ctx, grad):
        ctr_logit, cvr_logit, click, conversion = ctx.saved_tensors
        w_ctr, w_ctcvr = ctx.weights
        p, q = torch.sigmoid(ctr_logit), torch.sigmoid(cvr_logit)
        d_log_joint = -conversion + (1 - conversion) * p * q / (1 - p * q)
        scale = grad / ctr_logit.numel()
        d_ctr = scale * (w_ctr * (p - click) + w_ctcvr * d_log_joint * (1 - p))
        d_cvr = scale * w_ctcvr * d_log_joint * (1 - q)
        return d_ctr, d_cvr, None, None, None, None


class ESMMLoss(nn.Module):
    """Entire-space multi-task loss: BCE of the click plus BCE of click-and-conversion,
    where p(click and conversion) = sigmoid(ctr_logit) * sigmoid(cvr_logit). Click and conversion are labels.

    Args:
        w_ctr: weight of the click task.
        w_ctcvr: weight of the joint task.
    """

    def __init__(self, w_ctr: float = 1.0, w_ctcvr: float = 1.0) -> None:
        super().__init__()
        if w_ctr < 0 or w_ctcvr < 0:
            raise ValueError("task weights must not be negative")
        self.w_ctr = w_ctr
        self.w_ctcvr = w_ctcvr

    def forward(self, ctr_logit: Tensor, cvr_logit: Tensor, click: Tensor, conversion: Tensor) -> Tensor:
        if ctr_logit.shape != cvr_logit.shape:
            raise ValueError(f"logits differ in shape: {tuple(ctr_logit.shape)} and {tuple(cvr_logit.shape)}")
        click, conversion = click.to(ctr_logit.dtype), conversion.to(ctr_logit.dtype)
        return _ESMM.apply(ctr_logit, cvr_logit, click, conversion, self.w_ctr, self.w_ctcvr)
