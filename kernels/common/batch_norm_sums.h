// The sums over channels that batch_norm.cu is made of, and what they are joined to.
//
// Mean and variance: each part of a channel has its sums of x − s and (x − s)², s one of its own
// elements, which give the part's mean and Σ(x − mean)²; those are joined as in Chan, Golub and
// LeVeque 1983, "Algorithms for computing the sample variance", The American Statistician 37(3),
// equations 2.1 and 3.1. As s is one of m elements, (s − mean)² is at most m times their variance,
// and what sums lose is multiplied by as much where s is the one outlier among m, some thousands.
// Sums are therefore double: they lose m·2⁻⁵³, beside the memory's time at no cost. x − s is
// rounded to the wide type, which changes the variance by at most a relative 2√m·2⁻²⁴ in float.
//
// In float32 and 16 bits, Σ(x − mean)² over a part must not overflow float, as from |x − mean| of
// about 10¹⁸ on; PyTorch's own operator has a limit there too.
#pragma once

#include <type_traits>

#include "channels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T_>
struct Moments {
  using T = T_;
  using W = Wide<T>;
  using Sum = double;
  using Running = std::conditional_t<std::is_same_v<W, double>, Total<double>, PlainTotal<double>>;
  static constexpr int In = 1, K = 2;
  const T* in[In];

  struct Channel {
    W shift;
    GRADLINT_BOTH void terms(const W (&in)[In], Sum (&out)[K]) const {
      out[0] = in[0] - shift;
      out[1] = out[0] * out[0];
    }
  };

  GRADLINT_BOTH Channel of(int64_t, W shift) const { return {shift}; }

  // The part's mean and Σ(x − mean)².
  GRADLINT_BOTH void finish(W shift, int64_t count, const Sum (&sums)[K], W (&out)[K]) const {
    const Sum beyond = sums[0] / static_cast<Sum>(count);
    const Sum squares = sums[1] - sums[0] * beyond;
    out[0] = static_cast<W>(shift + beyond);
    out[1] = static_cast<W>(squares < 0 ? 0 : squares);
  }
};

// Σ g and Σ g·n
template <class T_>
struct GradientSums {
  using T = T_;
  using W = Wide<T>;
  using Sum = W;
  using Running = Total<W>;
  static constexpr int In = 2, K = 2;
  const T* in[In];  // x, g
  const W* mean;
  const W* rstd;

  struct Channel {
    W mean, rstd;
    GRADLINT_BOTH void terms(const W (&in)[In], W (&out)[K]) const {
      out[0] = in[1];
      out[1] = in[1] * ((in[0] - mean) * rstd);
    }
  };

  GRADLINT_BOTH Channel of(int64_t c, W) const { return {mean[c], rstd[c]}; }

  GRADLINT_BOTH void finish(W, int64_t, const W (&sums)[K], W (&out)[K]) const {
    for (int k = 0; k < K; ++k) out[k] = sums[k];
  }
};

// Σ g, Σ g·n, Σ u, Σ u·n, Σ u·g
template <class T_>
struct SecondSums {
  using T = T_;
  using W = Wide<T>;
  using Sum = W;
  using Running = Total<W>;
  static constexpr int In = 3, K = 5;
  const T* in[In];  // x, g, u
  const W* mean;
  const W* rstd;

  struct Channel {
    W mean, rstd;
    GRADLINT_BOTH void terms(const W (&in)[In], W (&out)[K]) const {
      const W n = (in[0] - mean) * rstd;
      out[0] = in[1];
      out[1] = in[1] * n;
      out[2] = in[2];
      out[3] = in[2] * n;
      out[4] = in[2] * in[1];
    }
  };

  GRADLINT_BOTH Channel of(int64_t c, W) const { return {mean[c], rstd[c]}; }

  GRADLINT_BOTH void finish(W, int64_t, const W (&sums)[K], W (&out)[K]) const {
    for (int k = 0; k < K; ++k) out[k] = sums[k];
  }
};

constexpr int channel_threads = 128;

// mean and rstd of each channel, from the means and squares of its parts.
template <class W>
struct JoinMoments {
  static constexpr int most_threads = channel_threads;
  ChannelPlan plan;
  const W* partials;
  W* mean;
  W* rstd;
  W eps;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t channel = block.index, parts = plan.parts();
    const W count = static_cast<W>(plan.batch * plan.inner), base = at(channel, 0, 0);
    Total<W> beyond;
    for (int64_t part = block.thread; part < parts; part += block.threads) {
      beyond.add(behind(part) * (at(channel, part, 0) - base));
    }
    const W middle = base + block.sum(beyond.value()) / count;
    Total<W> squares;
    for (int64_t part = block.thread; part < parts; part += block.threads) {
      const W away = at(channel, part, 0) - middle;
      squares.add(at(channel, part, 1) + behind(part) * away * away);
    }
    const W variance = block.sum(squares.value()) / count;
    if (block.thread > 0) return;
    mean[channel] = middle;
    rstd[channel] = 1 / math::sqrt(variance + eps);
  }

 private:
  GRADLINT_BOTH W at(int64_t channel, int64_t part, int k) const {
    return partials[plan.at(channel, 2, k, part)];
  }

  GRADLINT_BOTH W behind(int64_t part) const {
    return static_cast<W>(plan.behind(part / plan.b, part % plan.b));
  }
};

// means[channel][k] = Σ of the partial sums / count
template <class W>
struct ChannelMeans {
  static constexpr int most_threads = channel_threads;
  ChannelPlan plan;
  const W* partials;
  W* means;

  GRADLINT_BOTH void operator()(const Block& block) const {
    Total<W> total;
    for (int64_t part = block.thread; part < plan.parts(); part += block.threads) {
      total.add(partials[block.index * plan.parts() + part]);
    }
    const W sum = block.sum(total.value());
    if (block.thread == 0) means[block.index] = sum / static_cast<W>(plan.batch * plan.inner);
  }
};

}  // namespace gradlint::GRADLINT_SPACE
