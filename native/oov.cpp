#include "oov.h"

#include <algorithm>
#include <cmath>

#include "threads.h"

namespace unbounded {
namespace {

enum Feature : uint64_t { prefix = 1, suffix, run, shape, length, digits };
// Letters that count as prefixes and suffixes, and up to where letters and digits are counted.
constexpr int64_t kPrefixes = 4, kSuffixes = 5, kLongest = 12;
constexpr uint32_t kEdge = 0;

uint64_t mix(uint64_t key, uint64_t letter) {
  key = (key ^ letter) * 0xBF58476D1CE4E5B9;
  return key ^ key >> 29;
}

bool is_digit(uint32_t letter) { return letter >= '0' && letter <= '9'; }

// Digits alike, capitals alike, other letters alike; signs as they are.
uint32_t class_of(uint32_t letter) {
  if (is_digit(letter)) return '0';
  if (letter >= 'A' && letter <= 'Z') return 'A';
  return (letter >= 'a' && letter <= 'z') || letter > 127 ? 'a' : letter;
}

}  // namespace

void oov_features(const uint32_t* word, int64_t n, uint64_t size, std::vector<int64_t>& found) {
  const auto add = [&](uint64_t key) { found.push_back(int64_t(key % size)); };
  uint64_t key = mix(prefix, 0);
  for (int64_t i = 0; i < std::min(kPrefixes, n); ++i) add(key = mix(key, word[i]));
  key = mix(suffix, 0);
  for (int64_t i = 0; i < std::min(kSuffixes, n); ++i) add(key = mix(key, word[n - 1 - i]));
  for (int64_t many = 3; many < 5; ++many)
    for (int64_t first = -1; first < n + 2 - many; ++first) {
      key = mix(run, many);
      for (int64_t i = first; i < first + many; ++i) key = mix(key, i >= 0 && i < n ? word[i] : kEdge);
      add(key);
    }
  int64_t numbers = 0;
  key = mix(shape, 0);
  for (int64_t i = 0; i < n; ++i) {
    numbers += is_digit(word[i]);
    if (!i || class_of(word[i]) != class_of(word[i - 1])) key = mix(key, class_of(word[i]));
  }
  add(key);
  add(mix(mix(length, 0), std::min(n, kLongest)));
  add(mix(mix(digits, 0), std::min(numbers, kLongest)));
}

void OovWords::add_up(const double* weights, const double* vectors, size_t size, size_t width, double* squares,
                      double* products) const {
  // Each part has features of its own and goes through all words.
  in_parallel(size, (size + 15) / 16, [&](size_t start, size_t stop) {
    for (size_t i = 0; i < count; ++i) {
      const double many = double(end(i) - begin(i)), share = weights[i] / many, scale = weights[i] / std::sqrt(many);
      if (!(weights[i] > 0.0)) continue;
      for (const int64_t* a = begin(i); a < end(i); ++a) {
        if (size_t(*a) < start || size_t(*a) >= stop) continue;
        for (const int64_t* b = begin(i); b < end(i); ++b) squares[*a * size + *b] += share;
        for (size_t j = 0; j < width; ++j) products[*a * width + j] += scale * vectors[i * width + j];
      }
    }
  });
}

void OovWords::look_up(const float* weights, size_t width, float* out) const {
  // Word by word, so that its neighbours do not matter.
  for (size_t i = 0; i < count; ++i, out += width) {
    const auto scale = float(1.0 / std::sqrt(double(end(i) - begin(i))));
    for (const int64_t* at = begin(i); at < end(i); ++at)
      for (size_t j = 0; j < width; ++j) out[j] += scale * weights[*at * width + j];
  }
}

}  // namespace unbounded
