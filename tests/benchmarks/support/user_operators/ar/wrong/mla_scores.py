import torch


class MLAScores(torch.autograd.Function):
    """Absorbed attention logits for multi-head latent attention.

    q_nope  (b, t, h, d)   query part without position
    q_pe    (b, t, h, r)   rotated query part
    c_kv    (b, s, c)      compressed kv cache
    k_pe    (b, s, r)      rotated key shared by the heads
    w_uk    (h, d, c)      key up-projection, absorbed into the query
    returns (b, t, h, s)
    """

    @staticmethod
    def forward(ctx, q_nope, q_pe, c_kv, k_pe, w_uk, softmax_scale: float):
        ctx.save_for_backward(q_nope, q_pe, c_kv, k_pe, w_uk)
        ctx.softmax_scale = softmax_scale
        q_abs = torch.einsum("bthd,hdc->bthc", q_nope, w_uk)
        scores = torch.einsum("bthc,bsc->bths", q_abs, c_kv)
        scores = scores + torch.einsum("bthr,bsr->bths", q_pe, k_pe)
        return scores * softmax_scale

    @staticmethod
    def backward(ctx, dscores):
        q_nope, q_pe, c_kv, k_pe, w_uk = ctx.saved_tensors
        ds = dscores.mul_(ctx.softmax_scale)
        q_abs = torch.einsum("bthd,hdc->bthc", q_nope, w_uk)
        dq_abs = torch.einsum("bths,bsc->bthc", ds, c_kv)
        dq_nope = torch.einsum("bthc,hdc->bthd", dq_abs, w_uk)
        dw_uk = torch.einsum("bthd,bthc->hdc", q_nope, dq_abs)
        dc_kv = torch.einsum("bths,bthc->bsc", ds, q_abs)
        dq_pe = torch.einsum("bths,bsr->bthr", ds, k_pe)
        dk_pe = torch.einsum("bths,bthr->bsr", ds, q_pe)
        return dq_nope, dq_pe, dc_kv, dk_pe, dw_uk, None
