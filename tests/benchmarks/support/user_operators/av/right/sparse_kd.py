import torch
from torch import Tensor
from torch.autograd import Function


def _log_tail(lp: Tensor) -> Tensor:
    return torch.log(-torch.expm1(lp.logsumexp(-1)))


class SparseKD(Function):
    """KL to a teacher known by its top-K log-probabilities, the rest as one bucket. Sum over rows.

    logits (T, V), idx (T, K) distinct ids, teacher_logp (T, K), K < V
    """

    @staticmethod
    def forward(ctx, logits: Tensor, idx: Tensor, teacher_logp: Tensor) -> Tensor:
        ctx.save_for_backward(logits, idx, teacher_logp)
        lq = logits.log_softmax(-1).gather(-1, idx)
        lp_tail, lq_tail = _log_tail(teacher_logp), _log_tail(lq)
        head = (teacher_logp.exp() * (teacher_logp - lq)).sum()
        return head + (lp_tail.exp() * (lp_tail - lq_tail)).sum()

    @staticmethod
    def backward(ctx, g: Tensor):
        logits, idx, teacher_logp = ctx.saved_tensors
        logq = logits.log_softmax(-1)
        lq, p = logq.gather(-1, idx), teacher_logp.exp()
        lp_tail, lq_tail = _log_tail(teacher_logp).unsqueeze(-1), _log_tail(lq).unsqueeze(-1)
        ratio = (lp_tail - lq_tail).exp()
        # d loss / d log q of the listed ids, then through log_softmax
        d = ratio * lq.exp() - p
        dlogits = torch.zeros_like(logits).scatter_add(-1, idx, d) - logq.exp() * d.sum(-1, keepdim=True)
        dteacher = p * (teacher_logp - lq - (lp_tail - lq_tail))
        return g * dlogits, None, g * dteacher
