// The k smallest of many distances, without sorting them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "codes.h"

namespace unbounded {

// The k-th smallest lies in [low, high), and `below` are less than low.
struct Range {
  uint32_t low, high;
  size_t below;
};

// A range of bits that holds the k-th smallest (1 <= k <= n) and at most `few` or equal values.
// Bits of floats that are not negative sort as the floats do.
inline Range kth(const CodeKernels& kernels, const uint32_t* bits, size_t n, size_t k, size_t few) {
  uint32_t low, high;
  kernels.range(bits, n, &low, &high);
  size_t below = 0, up_to = n;
  // [low, high] has the k-th; where it would be if values were spread evenly, then the middle.
  for (bool even = true; up_to - below > few && low < high; even = !even) {
    uint64_t width = static_cast<uint64_t>(high) - low;
    uint64_t part = even ? width * (k - below) / (up_to - below) : width / 2;
    uint32_t cut = low + static_cast<uint32_t>(std::min(part, width - 1)) + 1;
    size_t count = kernels.count_below(bits, n, cut);
    if (count < k)
      low = cut, below = count;
    else
      high = cut - 1, up_to = count;
  }
  return {low, high + 1, below};
}

// The k-th of n neighbours, of two as near the older: its distance as bits, and its position.
struct Last {
  uint32_t bits, position;
};

inline Last last_of(const CodeKernels& kernels, const uint32_t* bits, const uint32_t* positions,
                    size_t n, size_t k) {
  thread_local std::vector<uint32_t> room;
  Range range = kth(kernels, bits, n, k, 64);
  room.resize(std::max(room.size(), 2 * (n + 16)));
  uint32_t* some = room.data();
  uint32_t* where = some + n + 16;
  size_t count = kernels.keep(bits, positions, n, range.low, range.high, some, where);
  std::vector<uint64_t> packed(count);
  for (size_t i = 0; i < count; ++i) packed[i] = uint64_t{some[i]} << 32 | (where[i] & ~kHit);
  auto at = packed.begin() + static_cast<ptrdiff_t>(k - range.below - 1);
  std::nth_element(packed.begin(), at, packed.end());
  return {static_cast<uint32_t>(*at >> 32), static_cast<uint32_t>(*at)};
}

// Sorts neighbours that are packed as a distance's bits above a position: into as many bins as there
// are neighbours by distance, which nearly sorts them, and then each one into its place.
inline void sort_packed(std::vector<uint64_t>& packed, size_t n) {
  if (n < 2) return;
  auto [least, most] = std::minmax_element(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(n));
  uint64_t low = *least >> 32, width = (*most >> 32) - low + 1;
  auto bin_of = [&](uint64_t each) { return ((each >> 32) - low) * n / width; };
  std::vector<uint32_t> ends(n + 1, 0);
  for (size_t i = 0; i < n; ++i) ++ends[bin_of(packed[i]) + 1];
  // Equal distances would be one bin, and slow to sort by insertion.
  if (*std::max_element(ends.begin(), ends.end()) > 64) {
    std::sort(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(n));
    return;
  }
  for (size_t bin = 1; bin <= n; ++bin) ends[bin] += ends[bin - 1];
  std::vector<uint64_t> sorted(n);
  for (size_t i = 0; i < n; ++i) sorted[ends[bin_of(packed[i])]++] = packed[i];
  for (size_t i = 1; i < n; ++i) {
    uint64_t each = sorted[i];
    size_t at = i;
    for (; at && sorted[at - 1] > each; --at) sorted[at] = sorted[at - 1];
    sorted[at] = each;
  }
  std::copy(sorted.begin(), sorted.end(), packed.begin());
}

// Writes the k nearest of packed neighbours, nearest first and of two as near the older: squared
// distances and positions behind `first`, infinity and -1 where there are fewer.
inline void write_nearest(std::vector<uint64_t>& packed, size_t k, int64_t first, float* squared, int64_t* positions) {
  size_t found = std::min(k, packed.size());
  if (packed.size() > k) std::nth_element(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(k), packed.end());
  sort_packed(packed, found);
  for (size_t i = 0; i < k; ++i) {
    squared[i] = i < found ? as_float(static_cast<uint32_t>(packed[i] >> 32)) : std::numeric_limits<float>::infinity();
    positions[i] = i < found ? first + static_cast<int64_t>(packed[i] & 0xFFFFFFFF) : -1;
  }
}

}  // namespace unbounded
