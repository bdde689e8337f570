// Exact search: the nearest of all keys a query may see, and what they vote for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "votes.h"

namespace unbounded {

struct ExactKernels {
  // out[x * stride + y] = a[x] . b[y], for n and m rows of `width`.
  void (*dots)(const float* a, size_t n, const float* b, size_t m, size_t width, float* out, size_t stride);
  // out[x] = a[x] . a[x].
  void (*norms)(const float* a, size_t n, size_t width, float* out);
  float (*squared_distance)(const float* a, const float* b, size_t width);
  // Makes products with n rows squared distances from one of that norm; whether one is less than that
  // share of both norms.
  bool (*expand)(float norm, const float* lengths, size_t n, float least, float* row);
};

KERNELS(ExactKernels, exact_kernels)

inline const ExactKernels& exact_kernels() { return FOR_ISA(exact_kernels); }

// What was found of earlier keys elsewhere, in parts: of each query so many in no order, and infinitely
// far where there are fewer. Entry e of part p is at position parts * e + p; `keys` are those behind.
struct Elsewhere {
  struct Part {
    const float* squared;
    const uint32_t* entries;
    size_t columns, number;
  };
  std::vector<Part> found;
  int64_t parts;
  int64_t keys;
};

// Queries, and keys of which query t sees those from low[t] to high[t] - 1.
struct Exact {
  const float* queries;
  size_t n;
  const float* keys;
  size_t width;
  const int64_t* low;
  const int64_t* high;

  // The k nearest of each, nearest first and of two as near the older: squared distances and
  // numbers of keys, infinity and -1 where there are fewer.
  void neighbours(size_t k, float* squared, int64_t* numbers) const;

  // Each kernel's probability of each query's word; `words` are those of the keys.
  void score(size_t k, const Votes& votes, const int32_t* words, const int64_t* targets, double* shares) const;

  // The same of the nearest here and elsewhere; `words` are those at all positions. `furthest` is told
  // the distance of the last that votes, infinity where there are fewer than k.
  void score(size_t k, const Votes& votes, const int32_t* words, const int64_t* targets, const Elsewhere& elsewhere,
             double* shares, float* furthest) const;

 private:
  template <class Found>
  void each(Found found) const;
};

}  // namespace unbounded
