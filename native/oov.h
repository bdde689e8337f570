// Vectors of out-of-vocabulary words: what the network would read, guessed from the spelling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace unbounded {

// Hashes what is to be seen of a word of n letters into one of `size` features each.
void oov_features(const uint32_t* word, int64_t n, uint64_t size, std::vector<int64_t>& found);

// The features of each word, one word after another, and where each word's end.
struct OovWords {
  const int64_t *features, *ends;
  size_t count;

  const int64_t* begin(size_t i) const { return features + (i ? ends[i - 1] : 0); }
  const int64_t* end(size_t i) const { return features + ends[i]; }

  // Adds up the two sums of a weighted least squares: features by features (size, size), features by
  // vectors (size, width).
  void add_up(const double* weights, const double* vectors, size_t size, size_t width, double* squares,
              double* products) const;

  // Adds to each word's row what its features say: rows of `width`.
  void look_up(const float* weights, size_t width, float* out) const;
};

}  // namespace unbounded
