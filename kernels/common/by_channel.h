// Element by element over a dense tensor (batch, channels, inner), with numbers of each channel.
#pragma once

#include "channels.h"
#include "division.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int channel_packs = 4;  // 16-byte accesses of a thread for each operand (heuristic: what
                                  // finds the first one's channel is shared by so many)
constexpr int packs_at_once = 4;
#else
constexpr int channel_packs = 512;
constexpr int packs_at_once = 1;
#endif

// Where an element is: its channel, and how far from the channel's first element in its sample.
struct ChannelPosition {
  int64_t channel, within;
};

// op.of(channel).apply(in, out) at each position. Where Cut, a pack may have elements of two
// channels.
template <class Op, bool Cut>
struct ByChannel {
  using T = typename Op::T;
  using W = Wide<T>;
  static constexpr int size = Pack<T>::size;
  static constexpr int most_threads = row_threads;
  static constexpr int64_t block_packs = row_threads * channel_packs;
  int64_t count, inner;
  bool packs;
  Op op;
  ChannelPosition stride;  // from a pack of a thread to its next

  ByChannel(const ChannelPlan& plan, bool aligned, const Op& of)
      : count(plan.batch * plan.channels * plan.inner),
        inner(plan.inner),
        packs(aligned && inner >= size),
        op(of) {
    const int64_t elements = row_threads * size;
    if (inner > 0) stride = {elements / inner % plan.channels, elements % inner};
  }

  int64_t blocks() const { return (count + block_packs * size - 1) / (block_packs * size); }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = (block.index * block_packs + block.thread) * size;
    if (first >= count) return;
    const int64_t run = quotient(first, inner);
    ChannelPosition at = {run - quotient(run, op.channels) * op.channels, first - run * inner};
    const int64_t step = int64_t{block.threads} * size;
    for (int p = 0; p < channel_packs; p += packs_at_once) {
      const int64_t start = first + p * step;
      const bool whole = start + (packs_at_once - 1) * step + size <= count;
      if (whole && packs) {
        some_packs<packs_at_once>(start, step, at);
      } else {
        for (int q = 0; q < packs_at_once; ++q) elements(start + q * step);
      }
    }
  }

 private:
  // Moves to the thread's next pack, without a division.
  GRADLINT_BOTH void advance(ChannelPosition& at) const {
    const int64_t within = at.within + stride.within;
    const bool over = within >= inner;
    const int64_t channel = at.channel + stride.channel + (over ? 1 : 0);
    at.within = over ? within - inner : within;
    at.channel = channel >= op.channels ? channel - op.channels : channel;
  }

  template <int Count>
  GRADLINT_BOTH void some_packs(int64_t start, int64_t step, ChannelPosition& at) const {
    Words in[Count][Op::In];
    typename Op::Channel channels[Count], above[Count];
    int left[Count];  // elements of the first channel
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      GRADLINT_UNROLLED for (int k = 0; k < Op::In; ++k) {
        in[p][k] = read_words(op.in[k] + start + p * step);
      }
      channels[p] = above[p] = op.of(at.channel);
      left[p] = size;
      if (Cut && inner - at.within < size) {
        left[p] = static_cast<int>(inner - at.within);
        above[p] = op.of(at.channel + 1 < op.channels ? at.channel + 1 : 0);
      }
      advance(at);
    }
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      one_pack(start + p * step, in[p], channels[p], above[p], left[p]);
    }
  }

  GRADLINT_BOTH void one_pack(int64_t start, const Words (&in)[Op::In],
                              const typename Op::Channel& channel,
                              const typename Op::Channel& next, int left) const {
    W from[Op::In][size], to[Op::Out][size];
    GRADLINT_UNROLLED for (int k = 0; k < Op::In; ++k) widen_pack<T>(in[k], from[k]);
    GRADLINT_UNROLLED for (int j = 0; j < size; ++j) {
      W one[Op::In], results[Op::Out];
      GRADLINT_UNROLLED for (int k = 0; k < Op::In; ++k) one[k] = from[k][j];
      (Cut && j >= left ? next : channel).apply(one, results);
      GRADLINT_UNROLLED for (int k = 0; k < Op::Out; ++k) to[k][j] = results[k];
    }
    GRADLINT_UNROLLED for (int k = 0; k < Op::Out; ++k) {
      write_words(op.out[k] + start, narrow_pack<T>(to[k]));
    }
  }

  // As many elements as a pack has from `start` on, of which the channel may change.
  GRADLINT_BOTH void elements(int64_t start) const {
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int64_t at = start; at < start + size && at < count; ++at) {
      W from[Op::In], to[Op::Out];
      for (int k = 0; k < Op::In; ++k) from[k] = widened(op.in[k][at]);
      const int64_t run = quotient(at, inner);
      op.of(run - quotient(run, op.channels) * op.channels).apply(from, to);
      for (int k = 0; k < Op::Out; ++k) op.out[k][at] = narrowed<T>(to[k]);
    }
  }
};

template <class Op>
void map_channels(const Context& context, const ChannelPlan& plan, const Op& op) {
  bool aligned = true;
  for (const auto* operand : op.in) aligned = aligned && packable<typename Op::T>(0, {operand});
  for (const auto* output : op.out) aligned = aligned && packable<typename Op::T>(0, {output});
  if (plan.inner % Pack<typename Op::T>::size == 0) {
    const ByChannel<Op, false> body(plan, aligned, op);
    launch(context, body.blocks(), row_threads, 0, body);
  } else {
    const ByChannel<Op, true> body(plan, aligned, op);
    launch(context, body.blocks(), row_threads, 0, body);
  }
}

}  // namespace gradlint::GRADLINT_SPACE
