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
      const int64_t run = quotient(start, inner), within = start - run * inner;
      const bool whole = aligned && start + size <= count && within + size <= inner;
      whole ? pack(start, channel_of(run)) : elements(start);
    }
  }

 private:
  GRADLINT_BOTH auto channel_of(int64_t run) const {
    return op.of(run - quotient(run, op.channels) * op.channels);
  }

  // A pack of one channel.
  template <class Channel>
  GRADLINT_BOTH void pack(int64_t start, const Channel& channel) const {
    Pack<T> in[Op::In], out[Op::Out];
    GRADLINT_UNROLLED for (int k = 0; k < Op::In; ++k) {
      in[k] = read_pack(op.in[k] + start);
    }
    GRADLINT_UNROLLED for (int j = 0; j < size; ++j) {
      W from[Op::In], to[Op::Out];
      for (int k = 0; k < Op::In; ++k) from[k] = widened(in[k].at[j]);
      channel.apply(from, to);
      for (int k = 0; k < Op::Out; ++k) out[k].at[j] = narrowed<T>(to[k]);
    }
    GRADLINT_UNROLLED for (int k = 0; k < Op::Out; ++k) {
      write_pack(op.out[k] + start, out[k]);
    }
  }

  // As many elements from `start` on, of which the channel may change.
  GRADLINT_BOTH void elements(int64_t start) const {
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int64_t at = start; at < start + size && at < count; ++at) {
      W from[Op::In], to[Op::Out];
      for (int k = 0; k < Op::In; ++k) from[k] = widened(op.in[k][at]);
      channel_of(quotient(at, inner)).apply(from, to);
      for (int k = 0; k < Op::Out; ++k) op.out[k][at] = narrowed<T>(to[k]);
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
