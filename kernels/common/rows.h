// Row by row: each row of a dense matrix is the work of a team of threads.
//
// A team has one lane for a few 16-byte packs of the row, up to 512 lanes; a block holds several
// teams where rows are short. A row of packs that fits into the registers of its team is read from
// memory once ("held"), any other again for each pass, mostly from the caches.
#pragma once

#include <initializer_list>

#include "map.h"
#include "team.h"
#include "total.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef __CUDACC__
constexpr int most_lanes = 512;   // of 65536 registers, each thread may have 128 (it takes ≤ 96)
constexpr int long_lanes = 256;   // each thread may have 255, for rows that are read twice
constexpr int row_threads = 128;  // of a block of small teams (heuristic: four warps)
#else
constexpr int most_lanes = 1;
constexpr int long_lanes = 1;
constexpr int row_threads = 1;
#endif

// Elements of each operand that a lane holds: 32 bytes of registers once widened.
template <class T>
constexpr int row_slots = sizeof(T) == 8 ? 4 : 8;

// How the rows are spread over blocks and threads.
struct RowPlan {
  int64_t rows;
  int64_t length;
  int64_t steps;  // rows that a team does one after the other
  int lanes;
  int threads;
  bool held;    // packed, and few enough of them
  bool packed;  // rows are whole packs, and aligned

  GRADLINT_BOTH int teams() const { return threads / lanes; }

  int64_t blocks() const {
    const int64_t each = steps * teams();
    return (rows + each - 1) / each;
  }

  // Calls body(team, row, length) for each row of this thread's team. The last teams of the last
  // block may have none; they take part in reductions with rows of length 0.
  template <class Body>
  GRADLINT_BOTH void each_row(const Block& block, const Body& body) const {
    const Team team{block.thread / lanes, block.thread % lanes, lanes, block.thread};
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t row = (block.index * steps + step) * teams() + team.index;
      body(team, row, row < rows ? length : 0);
    }
  }
};

template <class T>
bool packable(int64_t length, std::initializer_list<const void*> operands) {
  bool result = length % Pack<T>::size == 0;
  for (const void* operand : operands) {
    result = result && reinterpret_cast<uintptr_t>(operand) % alignof(Pack<T>) == 0;
  }
  return result;
}

// The plan for `rows` rows of `length` elements, in `operands`: rows, or what all rows share.
// Bodies that hold nothing take at most long_lanes lanes.
template <class T>
RowPlan plan_rows(int64_t rows, int64_t length, std::initializer_list<const void*> operands,
                  int lanes_at_most = most_lanes) {
  // Two packs in flight for a lane while a row takes less than a warp (heuristic), then as many
  // as it holds.
  int lanes = 1;
  while (lanes < lanes_at_most && lanes < warp_size && 2 * lanes * Pack<T>::size < length) lanes *= 2;
  while (lanes < lanes_at_most && lanes * row_slots<T> < length) lanes *= 2;
  const bool packed = packable<T>(length, operands);
  const bool held = packed && length <= lanes * row_slots<T>;
  if (!held && lanes > long_lanes) lanes = long_lanes;
  RowPlan plan{};
  plan.rows = rows;
  plan.length = length;
  plan.lanes = lanes;
  plan.threads = lanes > row_threads ? lanes : row_threads;
  plan.held = held;
  plan.packed = packed;
#ifdef __CUDACC__
  plan.steps = 1;
#else
  constexpr int64_t worthwhile = 8192;  // elements of a block, more than it costs to hand it out
  plan.steps = length < worthwhile ? worthwhile / (length + 1) + 1 : 1;
#endif
  return plan;
}

// One row of In operands, as its team sees it. An operand that is absent (null) has the value
// `absent` everywhere.
template <class T, bool Held, int In>
class RowWalk {
 public:
  using W = Wide<T>;

  GRADLINT_BOTH RowWalk(const Team& team, int64_t length, bool packed, const T* const (&rows)[In],
                        const W (&absent)[In])
      : team_(team), length_(length), packed_(packed) {
    for (int k = 0; k < In; ++k) {
      rows_[k] = rows[k];
      absent_[k] = absent[k];
    }
    if (Held) load(0, static_cast<int>(length), held_);
  }

  // totals[k] = Σ over the row of terms[k], where body(position, in, terms) gives the terms.
  template <int K, class Body>
  GRADLINT_BOTH void sums(W (&totals)[K], const Body& body) const {
    Total<W> long_totals[K];
    each_chunk([&](int64_t base, int left, const Chunk& chunk) {
      W chunk_sums[K] = {};
      each_pack(left, [&](int pack) {
        W parts[K][size];
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int j = 0; j < size; ++j) {
          W terms[K] = {};
          if (inside(pack, j, left)) {
            W in[In];
            for (int k = 0; k < In; ++k) in[k] = chunk.at[k][pack * size + j];
            body(base + offset_of(pack, j), in, terms);
          }
          for (int k = 0; k < K; ++k) parts[k][j] = terms[k];
        }
        for (int k = 0; k < K; ++k) {
          for (int half = size / 2; half > 0; half /= 2) {
            for (int j = 0; j < half; ++j) parts[k][j] += parts[k][j + half];
          }
          chunk_sums[k] += parts[k][0];
        }
      });
      for (int k = 0; k < K; ++k) {
        if (Held) {
          totals[k] = chunk_sums[k];
        } else {
          long_totals[k].add(chunk_sums[k]);
        }
      }
    });
    if (!Held) {
      for (int k = 0; k < K; ++k) totals[k] = long_totals[k].value();
    }
    team_.sum(totals);
  }

  // The maximum over the row of body(position, in); −∞ of an empty one.
  template <class Body>
  GRADLINT_BOTH W max(const Body& body) const {
    W largest = -static_cast<W>(INFINITY);
    each([&](int64_t position, const W(&in)[In]) {
      largest = math::larger(body(position, in), largest);
    });
    return team_.max(largest);
  }

  // Calls body(position, in) at each position of the row.
  template <class Body>
  GRADLINT_BOTH void each(const Body& body) const {
    each_chunk([&](int64_t base, int left, const Chunk& chunk) {
      each_pack(left, [&](int pack) {
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int j = 0; j < size; ++j) {
          if (!inside(pack, j, left)) continue;
          W in[In];
          for (int k = 0; k < In; ++k) in[k] = chunk.at[k][pack * size + j];
          body(base + offset_of(pack, j), in);
        }
      });
    });
  }

  // Writes body(position, in, out) to the rows `outputs`; null ones are left out.
  template <int Out, class Body>
  GRADLINT_BOTH void map(T* const (&outputs)[Out], const Body& body) const {
    each_chunk([&](int64_t base, int left, const Chunk& chunk) {
      each_pack(left, [&](int pack) {
        Pack<T> packs[Out] = {};
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int j = 0; j < size; ++j) {
          if (!inside(pack, j, left)) continue;
          W in[In], out[Out];
          for (int k = 0; k < In; ++k) in[k] = chunk.at[k][pack * size + j];
          body(base + offset_of(pack, j), in, out);
          for (int k = 0; k < Out; ++k) packs[k].at[j] = narrowed<T>(out[k]);
        }
        for (int k = 0; k < Out; ++k) {
          if (outputs[k] != nullptr) store(outputs[k] + base, left, pack, packs[k]);
        }
      });
    });
  }

 private:
  static constexpr int size = Pack<T>::size;
  static constexpr int slots = row_slots<T>;

  struct Chunk {
    W at[In][slots];
  };

  // Calls body(base, left, chunk): the first position, and how many there are from there on.
  template <class Body>
  GRADLINT_BOTH void each_chunk(const Body& body) const {
    if (Held) {
      body(0, static_cast<int>(length_), held_);
    } else {
      const int whole = team_.lanes * slots;
#ifdef __CUDACC__
#pragma unroll 1
#endif
      for (int64_t base = 0; base < length_; base += whole) {
        const int left = static_cast<int>(length_ - base < whole ? length_ - base : whole);
        Chunk chunk;
        load(base, left, chunk);
        body(base, left, chunk);
      }
    }
  }

  template <class Body>
  GRADLINT_BOTH void each_pack(int left, const Body& body) const {
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int pack = 0; pack < slots / size; ++pack) {
      if (pack * team_.lanes * size < left) body(pack);
    }
  }

  // Neighbouring lanes read neighbouring packs, or elements where the row is not of packs.
  GRADLINT_BOTH int offset_of(int pack, int j) const {
    return pack * team_.lanes * size +
           (packed() ? team_.lane * size + j : j * team_.lanes + team_.lane);
  }

  // Rows that are held are packed: a pack is inside as a whole, and registers are saved.
  GRADLINT_BOTH bool packed() const { return Held || packed_; }

  GRADLINT_BOTH bool inside(int pack, int j, int left) const {
    return offset_of(pack, Held ? 0 : j) < left;
  }

  GRADLINT_BOTH void load(int64_t base, int left, Chunk& chunk) const {
    each_pack(left, [&](int pack) {
      for (int k = 0; k < In; ++k) {
        W* const at = chunk.at[k] + pack * size;
        const T* const from = rows_[k] + base;
        if (rows_[k] == nullptr) {
          for (int j = 0; j < size; ++j) at[j] = absent_[k];
        } else if (packed()) {
          const int first = offset_of(pack, 0);
          if (first >= left) continue;
          const Pack<T> read = *reinterpret_cast<const Pack<T>*>(from + first);
          for (int j = 0; j < size; ++j) at[j] = widened(read.at[j]);
        } else {
          for (int j = 0; j < size; ++j) {
            const int offset = offset_of(pack, j);
            if (offset < left) at[j] = widened(from[offset]);
          }
        }
      }
    });
  }

  GRADLINT_BOTH void store(T* to, int left, int pack, const Pack<T>& values) const {
    if (packed()) {
      const int first = offset_of(pack, 0);
      if (first < left) *reinterpret_cast<Pack<T>*>(to + first) = values;
      return;
    }
    for (int j = 0; j < size; ++j) {
      const int offset = offset_of(pack, j);
      if (offset < left) to[offset] = values.at[j];
    }
  }

  const Team& team_;
  int64_t length_;
  bool packed_;
  const T* rows_[In];
  W absent_[In];
  Chunk held_;
};

// Launches Body<T, held>{plan, fields…}.
template <template <class, bool> class Body, class T, class... Fields>
void launch_rows(const Context& context, const RowPlan& plan, const Fields&... fields) {
  if (plan.held) {
    launch(context, plan.blocks(), plan.threads, 0, Body<T, true>{plan, fields...});
  } else {
    launch(context, plan.blocks(), plan.threads, 0, Body<T, false>{plan, fields...});
  }
}

}  // namespace gradlint::GRADLINT_SPACE
