// Dot products of rows, for exact distances; compiled once for each instruction set, and fused.
#include <cstring>

#include "exact.h"
#include "lanes.h"

namespace unbounded::ISA {
namespace {

// As many sums as there are registers for, beside a row of each side.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kRows = 4, kColumns = 4;
#else
constexpr int kRows = 4, kColumns = 3;
#endif

#if defined(ISA_avx512)
// The totals of sixteen sums, each in the order of `sum`, by halving them pair by pair.
inline Floats totals(const Floats* sums) {
  typedef int Lanes __attribute__((vector_size(64)));
  auto halve = [](Floats a, Floats b, Lanes low, int step) {
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + step);
  };
  Floats eight[8], four[4], two[2];
  for (int i = 0; i < 8; ++i)
    eight[i] = halve(sums[2 * i], sums[2 * i + 1],
                     Lanes{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}, 8);
  for (int i = 0; i < 4; ++i)
    four[i] = halve(eight[2 * i], eight[2 * i + 1],
                    Lanes{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27}, 4);
  for (int i = 0; i < 2; ++i)
    two[i] = halve(four[2 * i], four[2 * i + 1],
                   Lanes{0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29}, 2);
  return halve(two[0], two[1], Lanes{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, 1);
}
#endif

// A sum is taken lane by lane and then over the lanes, and the rest one by one: it depends on the
// two rows alone, never on those beside them.
template <int kA, int kB>
inline void tile(const float* a, const float* b, size_t width, float* out, size_t stride) {
  Floats sums[kA][kB] = {};
  size_t i = 0;
  for (; i + kFloats <= width; i += kFloats) {
    Floats right[kB];
    for (int y = 0; y < kB; ++y) right[y] = load<Floats>(b + y * width + i);
    for (int x = 0; x < kA; ++x) {
      Floats left = load<Floats>(a + x * width + i);
      for (int y = 0; y < kB; ++y) sums[x][y] += left * right[y];
    }
  }
#if defined(ISA_avx512)
  if constexpr (kA * kB == 16)
    if (i == width) {
      Floats all = totals(&sums[0][0]);
      for (int x = 0; x < kA; ++x)
        std::memcpy(out + x * stride, reinterpret_cast<float*>(&all) + x * kB, kB * sizeof(float));
      return;
    }
#endif
  for (int x = 0; x < kA; ++x)
    for (int y = 0; y < kB; ++y) {
      float all = sum(sums[x][y]);
      for (size_t j = i; j < width; ++j) all += a[x * width + j] * b[y * width + j];
      out[x * stride + y] = all;
    }
}

template <int kA>
void rows(const float* a, const float* b, size_t m, size_t width, float* out, size_t stride) {
  size_t y = 0;
  for (; y + kColumns <= m; y += kColumns) tile<kA, kColumns>(a, b + y * width, width, out + y, stride);
  for (; y < m; ++y) tile<kA, 1>(a, b + y * width, width, out + y, stride);
}

void dots(const float* a, size_t n, const float* b, size_t m, size_t width, float* out, size_t stride) {
  // So many rows of b at a time stay near while all rows of a go by.
  constexpr size_t kBlock = 24;
  for (size_t y = 0; y < m; y += kBlock) {
    size_t here = m - y < kBlock ? m - y : kBlock, x = 0;
    const float* some = b + y * width;
    for (; x + kRows <= n; x += kRows) rows<kRows>(a + x * width, some, here, width, out + x * stride + y, stride);
    for (; x < n; ++x) rows<1>(a + x * width, some, here, width, out + x * stride + y, stride);
  }
}

// The product of each of some rows with itself: side by side none waits for its own last sum.
template <int kMany>
inline void own_products(const float* rows, size_t width, float* out) {
  Floats sums[kMany] = {};
  size_t i = 0;
  for (; i + kFloats <= width; i += kFloats)
    for (int x = 0; x < kMany; ++x) {
      Floats each = load<Floats>(rows + x * width + i);
      sums[x] += each * each;
    }
  for (int x = 0; x < kMany; ++x) {
    float all = sum(sums[x]);
    for (size_t j = i; j < width; ++j) all += rows[x * width + j] * rows[x * width + j];
    out[x] = all;
  }
}

void norms(const float* rows, size_t n, size_t width, float* out) {
  size_t x = 0;
  for (; x + 8 <= n; x += 8) own_products<8>(rows + x * width, width, out + x);
  for (; x < n; ++x) own_products<1>(rows + x * width, width, out + x);
}

float squared_distance(const float* a, const float* b, size_t width) {
  Floats sums = {};
  size_t i = 0;
  for (; i + kFloats <= width; i += kFloats) {
    Floats apart = load<Floats>(a + i) - load<Floats>(b + i);
    sums += apart * apart;
  }
  float all = sum(sums);
  for (; i < width; ++i) all += (a[i] - b[i]) * (a[i] - b[i]);
  return all;
}

bool expand(float norm, const float* lengths, size_t n, float least, float* row) {
  int some = 0;
  for (size_t i = 0; i < n; ++i) {
    const float both = norm + lengths[i], found = both - 2.0f * row[i];
    row[i] = found < 0.0f ? 0.0f : found;
    some |= !(row[i] >= least * both);
  }
  return some;
}

}  // namespace

const ExactKernels exact_kernels{dots, norms, squared_distance, expand};

}  // namespace unbounded::ISA
