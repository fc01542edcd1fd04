// soft_rank: y_i = 1 + Σ_{j≠i} σ((x_i − x_j) / t) = ½ + Σ_j σ((x_i − x_j) / t), for each row x,
// with σ the logistic function and t > 0: the rank of x_i from below, with the step "x_j < x_i"
// made smooth (Qin, Liu and Li 2010, "A general approximation framework for direct optimization of
// information retrieval measures", Information Retrieval 13, section 4).
//
// backward: x_i gets (1 / t)·Σ_j σ′((x_i − x_j) / t)·(g_i − g_j), as σ′ is even
//
// There is no double backward: the operator is once differentiable, and says so when asked.
// O(n²) for a row of n, in memory of O(n).
#include "common/dtypes.h"
#include "common/launch.h"
#include "common/temperature.h"
#include "common/total.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int rank_threads = 128;
constexpr int64_t rank_chunk = rank_threads;  // elements of a block
#else
constexpr int rank_threads = 1;
constexpr int64_t rank_chunk = 16;
#endif

// |x_i − x_j| / t, which is 0 for equal infinities as well.
template <class W>
GRADLINT_BOTH W distance(W a, W b, W temperature) {
  return a == b ? 0 : math::fabs(a - b) / temperature;
}

template <class T>
struct SoftRank {
  static constexpr int most_threads = rank_threads;
  using W = Wide<T>;
  int64_t count;
  int64_t length;
  const T* x;
  T* y;
  W temperature;

  GRADLINT_BOTH void operator()(const Block& block) const {
    for (int64_t k = block.thread; k < rank_chunk; k += block.threads) {
      const int64_t element = block.index * rank_chunk + k;
      if (element >= count) break;
      const T* const row = x + element / length * length;
      const W own = widened(x[element]);
      Total<W> rank;
      rank.add(W(0.5));
      for (int64_t j = 0; j < length; ++j) {
        const W other = widened(row[j]);
        const W far = distance(own, other, temperature);
        const auto share = math::logistic<W>(far);
        rank.add(own < other ? share.opposite : share.at);
      }
      y[element] = narrowed<T>(rank.value());
    }
  }
};

template <class T>
struct SoftRankBackward {
  static constexpr int most_threads = rank_threads;
  using W = Wide<T>;
  int64_t count;
  int64_t length;
  const T* grad_output;
  const T* x;
  T* grad_x;
  W temperature;

  GRADLINT_BOTH void operator()(const Block& block) const {
    for (int64_t k = block.thread; k < rank_chunk; k += block.threads) {
      const int64_t element = block.index * rank_chunk + k;
      if (element >= count) break;
      const int64_t first = element / length * length;
      const W own = widened(x[element]), g = widened(grad_output[element]);
      Total<W> sum;
      for (int64_t j = first; j < first + length; ++j) {
        const W small = math::exp(-distance(own, widened(x[j]), temperature));
        const W slope = small / ((1 + small) * (1 + small));
        sum.add(slope * (g - widened(grad_output[j])));
      }
      grad_x[element] = narrowed<T>(sum.value() / temperature);
    }
  }
};

void soft_rank(const Context& context, const TemperatureArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    const int64_t count = a.rows * a.length;
    launch(context, (count + rank_chunk - 1) / rank_chunk, rank_threads, 0,
           SoftRank<T>{count, a.length, static_cast<const T*>(a.in[0]), static_cast<T*>(a.out[0]),
                       usable_temperature<Wide<T>>(a)});
  });
}

void soft_rank_backward(const Context& context, const TemperatureArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    const int64_t count = a.rows * a.length;
    launch(context, (count + rank_chunk - 1) / rank_chunk, rank_threads, 0,
           SoftRankBackward<T>{count, a.length, static_cast<const T*>(a.in[0]),
                               static_cast<const T*>(a.in[1]), static_cast<T*>(a.out[0]),
                               usable_temperature<Wide<T>>(a)});
  });
}

}  // namespace gradlint::GRADLINT_SPACE
