// Element by element over a dense tensor (batch, channels, inner), with numbers of each channel.
#pragma once

#include "channels.h"

namespace gradlint::GRADLINT_SPACE {

// op.of(channel).apply(in, out) at each position.
template <class Op>
struct ByChannel {
  using T = typename Op::T;
  using W = Wide<T>;
  static constexpr int size = Pack<T>::size;
  static constexpr int64_t block_packs = row_threads * (row_threads > 1 ? 4 : 512);
  int64_t count, inner;
  bool aligned;
  Op op;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * block_packs * size;
    for (int64_t p = block.thread; p < block_packs; p += block.threads) {
      const int64_t start = first + p * size;
      if (start >= count) return;
      pack(start, aligned && start + size <= count);
    }
  }

 private:
  GRADLINT_BOTH void pack(int64_t start, bool whole) const {
    Pack<T> in[Op::In] = {}, out[Op::Out];
    for (int k = 0; k < Op::In; ++k) {
      if (whole) {
        in[k] = *reinterpret_cast<const Pack<T>*>(op.in[k] + start);
      } else {
        for (int j = 0; j < size && start + j < count; ++j) in[k].at[j] = op.in[k][start + j];
      }
    }
    int64_t run = start / inner, within = start % inner;
    auto channel = op.of(run % op.channels);
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int j = 0; j < size; ++j) {
      if (within == inner) {
        within = 0;
        ++run;
        channel = op.of(run % op.channels);
      }
      W from[Op::In], to[Op::Out];
      for (int k = 0; k < Op::In; ++k) from[k] = widened(in[k].at[j]);
      channel.apply(from, to);
      for (int k = 0; k < Op::Out; ++k) out[k].at[j] = narrowed<T>(to[k]);
      ++within;
    }
    for (int k = 0; k < Op::Out; ++k) {
      if (whole) {
        *reinterpret_cast<Pack<T>*>(op.out[k] + start) = out[k];
      } else {
        for (int j = 0; j < size && start + j < count; ++j) op.out[k][start + j] = out[k].at[j];
      }
    }
  }
};

template <class Op>
void map_channels(const Context& context, const ChannelPlan& plan, const Op& op) {
  using Body = ByChannel<Op>;
  bool aligned = true;
  for (const auto* operand : op.in) aligned = aligned && packable<typename Op::T>(0, {operand});
  for (const auto* output : op.out) aligned = aligned && packable<typename Op::T>(0, {output});
  const int64_t count = plan.batch * plan.channels * plan.inner;
  const int64_t each = Body::block_packs * Body::size;
  launch(context, (count + each - 1) / each, row_threads, 0, Body{count, plan.inner, aligned, op});
}

}  // namespace gradlint::GRADLINT_SPACE
