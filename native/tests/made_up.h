// Streams that are the same on every machine, and what kernels make of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

struct Random {
  uint64_t state = 88172645463325252ull;
  uint32_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<uint32_t>(state >> 32);
  }
  // Whole numbers over a power of two: the same floats everywhere.
  float value() { return (static_cast<float>(next() >> 16) - 32768.0f) / 32768.0f; }
  std::vector<float> values(size_t n, float scale = 1.0f) {
    std::vector<float> found(n);
    for (float& each : found) each = scale * value();
    return found;
  }
  std::vector<int64_t> words(size_t n, uint32_t size) {
    std::vector<int64_t> found(n);
    for (int64_t& each : found) each = next() % size;
    return found;
  }
};

// Integers, which must be the same everywhere, and numbers, which must nearly be.
struct Result {
  uint64_t hash = 14695981039346656037ull;
  std::vector<double> numbers;

  template <class T>
  void integers(const std::vector<T>& values) {
    const auto* at = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(T); ++i) hash = (hash ^ at[i]) * 1099511628211ull;
  }
  template <class T>
  void floats(const std::vector<T>& values) {
    numbers.insert(numbers.end(), values.begin(), values.end());
  }
};

// A stream of `rows`, cut into pieces.
inline void in_pieces(size_t rows, size_t cut, const std::function<void(size_t start, size_t n)>& piece) {
  for (size_t start = 0; start < rows; start += cut) piece(start, std::min(cut, rows - start));
}
