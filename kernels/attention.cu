// attention: y = P·V, P = masked_softmax(Q·Kᵀ) with the scale 1/√E, E being the width of Q and K
// backward: gV = Pᵀ·g, gP = g·Vᵀ, from it gX by the softmax, gQ = gX·K, gK = gXᵀ·Q
// double backward: that of the products, which are products again, and of the softmax.
// The probabilities are kept in memory from forward to backward: this is the plain form.
//
// masked_softmax: p_j = exp(s·(x_j − m)) / Σ_k exp(s·(x_k − m)), over the k that the mask allows,
// m being their maximum; p_j = 0 where the mask forbids j, and in a row that allows none
// backward: gx = s·p∘(g − ⟨g, p⟩)
// double backward, with c the gradient of gx: g gets s·p∘(c − ⟨c, p⟩),
// p gets s·(c∘(g − ⟨g, p⟩) − ⟨c, p⟩·g)
//
// Vaswani et al., Attention Is All You Need (2017), §3.2.1. The derivatives of the softmax follow
// from dp_j/dx_k = s·p_j·(δ_jk − p_k).
#include "common/launch.h"
#include "common/running_sum.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

constexpr int64_t softmax_threads = 1024;  // most of a block

template <class W>
struct MaskedSoftmax {
  static constexpr int most_threads = softmax_threads;
  Scores scores;
  const W* x;
  W* p;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t batch = block.index / scores.rows, row = block.index - batch * scores.rows;
    const bool* mask = scores.mask;
    if (mask) mask += batch * scores.mask_strides[0] + row * scores.mask_strides[1];
    const int64_t stride = scores.mask_strides[2], start = block.index * scores.columns;
    const W scale = static_cast<W>(scores.scale), lowest = -std::numeric_limits<W>::infinity();

    W largest = lowest;
    for (int64_t j = block.thread; j < scores.columns; j += block.threads) {
      if (!mask || mask[j * stride]) largest = math::larger(largest, x[start + j]);
    }
    largest = block.max(largest);
    if (largest == lowest) {
      for (int64_t j = block.thread; j < scores.columns; j += block.threads) p[start + j] = 0;
      return;
    }
    const W total = block.sum(
        sum_in_runs<W>(block.thread, scores.columns, block.threads, [&](int64_t j) {
          const bool seen = !mask || mask[j * stride];
          return p[start + j] = seen ? math::exp(scale * (x[start + j] - largest)) : W(0);
        }));
    for (int64_t j = block.thread; j < scores.columns; j += block.threads) p[start + j] /= total;
  }
};

// ⟨a, b⟩ of one row, the same in all threads of its block.
template <class W>
GRADLINT_BOTH W row_dot(const Block& block, const W* a, const W* b, int64_t columns) {
  return block.sum(sum_in_runs<W>(block.thread, columns, block.threads,
                                  [&](int64_t j) { return a[j] * b[j]; }));
}

template <class W>
struct MaskedSoftmaxBackward {
  static constexpr int most_threads = softmax_threads;
  Scores scores;
  const W* g;
  const W* p;
  W* gx;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * scores.columns;
    const W scale = static_cast<W>(scores.scale);
    const W g_p = row_dot(block, g + start, p + start, scores.columns);
    for (int64_t j = start + block.thread; j < start + scores.columns; j += block.threads) {
      gx[j] = scale * p[j] * (g[j] - g_p);
    }
  }
};

template <class W>
struct MaskedSoftmaxBackwardBackward {
  static constexpr int most_threads = softmax_threads;
  Scores scores;
  const W* c;
  const W* g;
  const W* p;
  W* grad_g;
  W* grad_p;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * scores.columns;
    const W scale = static_cast<W>(scores.scale);
    const W g_p = row_dot(block, g + start, p + start, scores.columns);
    const W c_p = row_dot(block, c + start, p + start, scores.columns);
    for (int64_t j = start + block.thread; j < start + scores.columns; j += block.threads) {
      grad_g[j] = scale * p[j] * (c[j] - c_p);
      grad_p[j] = scale * (c[j] * (g[j] - g_p) - c_p * g[j]);
    }
  }
};

// Runs a body that make(W{}) gives, a block for each row.
template <class Make>
void over_rows(const Context& context, const Scores& scores, const Make& make) {
  constexpr int64_t own = 4;  // elements of a thread (heuristic)
  const int64_t warps = (scores.columns + own * warp_size - 1) / (own * warp_size);
  const int64_t threads = warps < 1 ? warp_size : warps * warp_size;
  const int block = static_cast<int>(threads < softmax_threads ? threads : softmax_threads);
  const int64_t blocks = scores.batch * scores.rows;
  if (scores.dtype == Dtype::float64) {
    launch(context, blocks, block, 0, make(double{}));
  } else {
    launch(context, blocks, block, 0, make(float{}));
  }
}

void masked_softmax(const Context& context, const Scores& scores, const void* x, void* p) {
  over_rows(context, scores, [&](auto wide) {
    using W = decltype(wide);
    return MaskedSoftmax<W>{scores, static_cast<const W*>(x), static_cast<W*>(p)};
  });
}

void masked_softmax_backward(const Context& context, const Scores& scores, const void* g,
                             const void* p, void* gx) {
  over_rows(context, scores, [&](auto wide) {
    using W = decltype(wide);
    return MaskedSoftmaxBackward<W>{scores, static_cast<const W*>(g), static_cast<const W*>(p),
                                    static_cast<W*>(gx)};
  });
}

void masked_softmax_backward_backward(const Context& context, const Scores& scores, const void* c,
                                      const void* g, const void* p, void* grad_g, void* grad_p) {
  over_rows(context, scores, [&](auto wide) {
    using W = decltype(wide);
    return MaskedSoftmaxBackwardBackward<W>{
        scores, static_cast<const W*>(c), static_cast<const W*>(g), static_cast<const W*>(p),
        static_cast<W*>(grad_g), static_cast<W*>(grad_p)};
  });
}

}  // namespace gradlint::GRADLINT_SPACE
