// Vectors as wide as the instruction set has them, for kernels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#if defined(__AVX2__)
// GCC 12 takes what its own header leaves undefined on purpose for a mistake (its bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace unbounded::ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kFloats = kBytes / 4, kDoubles = kBytes / 8;

typedef float Floats __attribute__((vector_size(kBytes)));
typedef float HalfFloats __attribute__((vector_size(kBytes / 2)));
typedef double Doubles __attribute__((vector_size(kBytes)));
typedef int32_t Ints __attribute__((vector_size(kBytes)));
typedef int64_t Longs __attribute__((vector_size(kBytes)));

template <class V, class T>
inline V load(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class V, class T>
inline void store(T* to, V v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// a b + c, rounded once where the processor can.
template <class V>
inline V fma(V a, V b, V c) {
  return a * b + c;
}

inline Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(ISA_neon)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

inline Doubles fma(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

// An estimate of 1 / √a, good to 12 bits or more.
inline Floats about_rsqrt(Floats a) {
#if defined(__AVX512F__)
  return _mm512_rsqrt14_ps(a);
#elif defined(__AVX2__)
  return _mm256_rsqrt_ps(a);
#else
  for (int i = 0; i < kFloats; ++i) a[i] = 1.0f / __builtin_sqrtf(a[i]);
  return a;
#endif
}

inline Doubles sqrt(Doubles a) {
  for (int i = 0; i < kDoubles; ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
}

// Halves are added to each other until one number is left.
template <class V>
inline auto sum(V a) {
  typedef std::remove_cvref_t<decltype(a[0])> T;
  constexpr int n = sizeof(V) / sizeof(T);
  if constexpr (n == 2) {
    return a[0] + a[1];
  } else {
    typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
    return sum(load<Half>(reinterpret_cast<const T*>(&a)) + load<Half>(reinterpret_cast<const T*>(&a) + n / 2));
  }
}

template <class V>
inline V min(V a, V b) {
  return a < b ? a : b;
}

template <class V>
inline V max(V a, V b) {
  return a > b ? a : b;
}

// e to a number that is not above 0; below -700 as at -700.
inline Doubles exp(Doubles a) {
  const Doubles zero = {}, magic = zero + 0x1.8p52, one = zero + 1.0;
  a = max(a, zero - 700.0);
  const Doubles shifted = fma(a, zero + 0x1.71547652b82fep+0, magic), whole = shifted - magic;
  const Doubles r = fma(whole, zero - 0x1.abc9e3b39803fp-56, fma(whole, zero - 0x1.62e42fefa39efp-1, a));
  // Taylor: r is at most half of ln 2, so what is left out is below 1e-16.
  Doubles p = zero + 1.0;
  for (int n = 13; n > 0; --n) p = fma(p * r, zero + 1.0 / n, one);
  Longs exponent, bits;
  __builtin_memcpy(&exponent, &shifted, sizeof exponent);
  __builtin_memcpy(&bits, &p, sizeof bits);
  bits += exponent << 52;
  __builtin_memcpy(&p, &bits, sizeof p);
  return p;
}

inline Floats all(float x) { return x - Floats{}; }

// e to the x for floats of any width, to 2e-7 of it; x is held between -87 and 88, where they can say it.
template <class V>
inline V exp(V x) {
  typedef int32_t Whole __attribute__((vector_size(sizeof(V))));
  const V zero{}, magic = zero + 12582912.0f;  // adding it rounds to a whole number
  x = min(max(x, zero - 87.0f), zero + 88.0f);
  const V n = (x * 1.44269504f + magic) - magic;
  V r = fma(n, zero - 0.693359375f, x);
  r = fma(n, zero + 2.12194440e-4f, r);
  V p = zero + 1.9875691500e-4f;
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = fma(p, r, zero + c);
  p = fma(p, r * r, r + 1.0f);
  const Whole power = (__builtin_convertvector(n, Whole) + 127) << 23;
  return p * load<V>(&power);
}

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exp(-x)); }
inline Floats tanh(Floats x) { return 2.0f / (1.0f + exp(-2.0f * x)) - 1.0f; }

}  // namespace
}  // namespace unbounded::ISA
