// Row by row: each row of a dense matrix is the work of a team of threads.
//
// A team has one lane for a few 16-byte packs of the row, up to 512 lanes; a block holds several
// teams where rows are short. A row of packs that fits into the registers of its team is held
// there (held_rows.h). Any other is read again for each pass, mostly from the caches.
#pragma once

#include "row_plan.h"
#include "row_reductions.h"
#include "total.h"

namespace gradlint::GRADLINT_SPACE {

// Elements that a row takes of the memory that a block shares: whole packs.
template <class T>
GRADLINT_BOTH int64_t kept_length(int64_t length) {
  return (length + Pack<T>::size - 1) / Pack<T>::size * Pack<T>::size;
}

// One row of In operands, as its team sees it, read for each pass. An operand that is absent
// (null) has the value `absent` everywhere. Where `kept` is given, memory that the block shares,
// the first pass leaves there what it reads of the first Kept operands, and the others read that:
// each lane its own elements, so that no lane waits for another.
template <class T, int In, int Kept>
class RowWalk {
 public:
  using W = Wide<T>;

  GRADLINT_BOTH RowWalk(const Team& team, int64_t length, bool packed, const T* const (&rows)[In],
                        const W (&absent)[In], T* kept)
      : team_(team), length_(length), packed_(packed), kept_(kept) {
    for (int k = 0; k < In; ++k) {
      rows_[k] = rows[k];
      absent_[k] = absent[k];
    }
  }

  // totals[k] = Σ over the row of terms[k], where body(position, in, terms) gives the terms,
  // of a type that may be wider than the row's.
  template <int K, class Sum, class Body>
  GRADLINT_BOTH void sums(Sum (&totals)[K], const Body& body) const {
    Total<Sum> of_chunks[K];
    each_chunk([&](int64_t base, int left, const Chunk& chunk) {
      Sum chunk_sums[K] = {};
      each_pack(left, [&](int pack) {
        Sum parts[K][size];
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int j = 0; j < size; ++j) {
          Sum terms[K] = {};
          if (inside(pack, j, left)) {
            W in[In];
            for (int k = 0; k < In; ++k) in[k] = chunk.at[k][pack * size + j];
            body(base + offset_of(pack, j), in, terms);
          }
          for (int k = 0; k < K; ++k) parts[k][j] = terms[k];
        }
        for (int k = 0; k < K; ++k) chunk_sums[k] += sum_of_pack(parts[k]);
      });
      for (int k = 0; k < K; ++k) of_chunks[k].add(chunk_sums[k]);
    });
    for (int k = 0; k < K; ++k) totals[k] = of_chunks[k].value();
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

  // The first position where body(in) holds, the same in each lane; where it does nowhere, the
  // length of the row.
  template <class Body>
  GRADLINT_BOTH int64_t first_where(const Body& body) const {
    int64_t found = length_;
    each([&](int64_t position, const W(&in)[In]) {
      if (position < found && body(in)) found = position;
    });
    return -team_.max(-found);
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

  // Writes body(position, in, out) to `outputs` from `start` on; null ones are left out.
  template <int Out, class Body>
  GRADLINT_BOTH void map(T* const (&outputs)[Out], int64_t start, const Body& body) const {
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
          if (outputs[k] != nullptr) store(outputs[k] + start + base, left, pack, packs[k]);
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
    if (kept_ == nullptr) return;
    for (int k = 0; k < Kept; ++k) {
      if (rows_[k] != nullptr) rows_[k] = kept_ + k * kept_length<T>(length_);
    }
    read_ = true;
  }

  // Calls body(pack) for each of the lane's packs whose first element is inside.
  template <class Body>
  GRADLINT_BOTH void each_pack(int left, const Body& body) const {
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int pack = 0; pack < slots / size; ++pack) {
      if (offset_of(pack, 0) < left) body(pack);
    }
  }

  // Neighbouring lanes read neighbouring packs, or elements where the row is not of packs.
  GRADLINT_BOTH int offset_of(int pack, int j) const {
    return pack * team_.lanes * size +
           (packed_ ? team_.lane * size + j : j * team_.lanes + team_.lane);
  }

  GRADLINT_BOTH bool inside(int pack, int j, int left) const {
    return offset_of(pack, j) < left;
  }

  GRADLINT_BOTH void load(int64_t base, int left, Chunk& chunk) const {
    each_pack(left, [&](int pack) {
      for (int k = 0; k < In; ++k) {
        W* const at = chunk.at[k] + pack * size;
        const T* const from = rows_[k] + base;
        if (rows_[k] == nullptr) {
          for (int j = 0; j < size; ++j) at[j] = absent_[k];
        } else if (packed_) {
          const int offset = offset_of(pack, 0);
          const Words words = read_words(from + offset);
          if (keeps(k)) *reinterpret_cast<Words*>(keeping(k) + base + offset) = words;
          W wide[size];
          widen_pack<T>(words, wide);
          for (int j = 0; j < size; ++j) at[j] = wide[j];
        } else {
          for (int j = 0; j < size; ++j) {
            const int offset = offset_of(pack, j);
            if (offset >= left) continue;
            const T value = from[offset];
            if (keeps(k)) keeping(k)[base + offset] = value;
            at[j] = widened(value);
          }
        }
      }
    });
  }

  GRADLINT_BOTH void store(T* to, int left, int pack, const Pack<T>& values) const {
    if (packed_) {
      write_words(to + offset_of(pack, 0), words_of(values));
      return;
    }
    for (int j = 0; j < size; ++j) {
      const int offset = offset_of(pack, j);
      if (offset < left) to[offset] = values.at[j];
    }
  }

  GRADLINT_BOTH bool keeps(int k) const { return k < Kept && kept_ != nullptr && !read_; }

  GRADLINT_BOTH T* keeping(int k) const { return kept_ + k * kept_length<T>(length_); }

  const Team& team_;
  int64_t length_;
  bool packed_;
  T* kept_;
  mutable bool read_ = false;  // whether the first pass is over
  mutable const T* rows_[In];
  W absent_[In];
};

}  // namespace gradlint::GRADLINT_SPACE
