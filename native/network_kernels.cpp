// Compiled once for each instruction set.
#include "network.h"

#include <cstring>

#include "lanes.h"

namespace unbounded::ISA {
namespace {

typedef Floats V;
constexpr size_t LANES = kFloats;

inline V load(const float* from) { return load<V>(from); }

#if defined(ISA_avx512)
constexpr int ROWS = 12, WIDE = 2, APART = 4, STREAMS = 4;
#elif defined(ISA_neon)
constexpr int ROWS = 6, WIDE = 4, APART = 4, STREAMS = 4;
#else
constexpr int ROWS = 6, WIDE = 2, APART = 2, STREAMS = 2;
#endif

constexpr std::integral_constant<size_t, LANES> WHOLE;

// All or the first of a vector, with what does no harm behind them.
inline V some(const float* from, size_t many, float otherwise) {
  if (many >= LANES) return load(from);
  V v = all(otherwise);
  std::memcpy(&v, from, many * sizeof(float));
  return v;
}

inline void put(float* to, V v, size_t many) {
  if (many >= LANES) return store(to, v);
  std::memcpy(to, &v, many * sizeof(float));
}

inline size_t at_most_a_vector(size_t many) { return many < LANES ? many : LANES; }

// Adds a(row, k) * b(k) for all k to the sums of R rows by C vectors, which stay in registers.
template <int R, int C>
inline void add_products(V (&sums)[R][C], size_t many, const float* a, size_t row, size_t k_of_a, auto b) {
  for (size_t k = 0; k < many; ++k) {
    V right[C];
    for (int c = 0; c < C; ++c) right[c] = b(k, c);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const V left = all(a[r * row + k * k_of_a]);
      for (int c = 0; c < C; ++c) sums[r][c] = fma(left, right[c], sums[r][c]);
    }
  }
}

// R rows by WIDE vectors of one panel.
template <int R>
void tile(const float* w, const float* bias, size_t in, const float* x, size_t x_stride, float* y,
          size_t y_stride) {
  V sums[R][WIDE];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < WIDE; ++c) sums[r][c] = load(bias + c * LANES);
  add_products(sums, in, x, x_stride, 1, [&](size_t k, int c) { return load(w + k * PANEL + c * LANES); });
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < WIDE; ++c) store(y + r * y_stride + c * LANES, sums[r][c]);
}

template <int R>
void some_rows(size_t rows, const float* w, const float* bias, size_t in, const float* x,
               size_t x_stride, float* y, size_t y_stride) {
  if (rows == R)
    tile<R>(w, bias, in, x, x_stride, y, y_stride);
  else if constexpr (R > 1)
    some_rows<R - 1>(rows, w, bias, in, x, x_stride, y, y_stride);
}

void multiply(const Weights& weights, size_t first, size_t last, const float* x, size_t x_stride,
              size_t rows, float* y, size_t y_stride) {
  float end[ROWS * PANEL];
  for (size_t panel = first; panel < last; ++panel) {
    const float* w = weights.packed + panel * weights.in * PANEL;
    const float* bias = weights.bias + panel * PANEL;
    const size_t left = weights.out - panel * PANEL, full = left < PANEL ? left : PANEL;
    for (size_t r = 0; r < rows; r += ROWS) {
      const size_t many = rows - r < ROWS ? rows - r : ROWS;
      float* place = y + r * y_stride + (panel - first) * PANEL;
      float* to = full == PANEL ? place : end;
      const size_t stride = full == PANEL ? y_stride : PANEL;
      for (size_t part = 0; part < PANEL; part += WIDE * LANES)
        some_rows<ROWS>(many, w + part, bias + part, weights.in, x + r * x_stride, x_stride,
                        to + part, stride);
      if (to == end)
        for (size_t i = 0; i < many; ++i)
          std::memcpy(place + i * y_stride, end + i * PANEL, full * sizeof(float));
    }
  }
}

// Goes on with the sums of R rows by K inputs, lanes across the outputs of some panels.
template <int R, int K>
void back_tile(const float* w, size_t in, size_t panels, const float* errors, size_t stride, V (*kept)[K]) {
  V sums[R][K];
  std::memcpy(sums, kept, sizeof sums);
  for (size_t panel = 0; panel < panels; ++panel, w += in * PANEL, errors += PANEL)
    for (size_t c = 0; c < PANEL; c += LANES) {
      V b[K];
      for (int k = 0; k < K; ++k) b[k] = load(w + k * PANEL + c);
      for (int r = 0; r < R; ++r) {
        const V a = load(errors + r * stride + c);
        for (int k = 0; k < K; ++k) sums[r][k] = fma(a, b[k], sums[r][k]);
      }
    }
  std::memcpy(kept, sums, sizeof sums);
}

void multiply_back(const Weights& weights, size_t first, size_t last, const float* errors,
                   size_t stride, size_t rows, float* y, size_t y_stride) {
  // Panels of many inputs lie at the same places of the nearest cache: few of them at a time for all rows.
  constexpr size_t R = ROWS / 3, K = 4, TOGETHER = 32, NEAR = 8;
  const size_t panels = (weights.out + PANEL - 1) / PANEL, in = weights.in;
  auto some_inputs = [&]<int MANY>(size_t k, size_t start, size_t many) {
    V sums[TOGETHER][MANY] = {};
    for (size_t panel = 0; panel < panels; panel += NEAR) {
      const float* w = weights.packed + panel * in * PANEL + k * PANEL;
      const float* here = errors + start * stride + panel * PANEL;
      const size_t near = panels - panel < NEAR ? panels - panel : NEAR;
      size_t r = 0;
      for (; r + R <= many; r += R) back_tile<R, MANY>(w, in, near, here + r * stride, stride, sums + r);
      for (; r < many; ++r) back_tile<1, MANY>(w, in, near, here + r * stride, stride, sums + r);
    }
    for (size_t r = 0; r < many; ++r)
      for (int i = 0; i < MANY; ++i) y[(start + r) * y_stride + k + i] = sum(sums[r][i]);
  };
  for (size_t start = 0; start < rows; start += TOGETHER) {
    const size_t many = rows - start < TOGETHER ? rows - start : TOGETHER;
    size_t k = first;
    for (; k + K <= last; k += K) some_inputs.template operator()<K>(k, start, many);
    for (; k < last; ++k) some_inputs.template operator()<1>(k, start, many);
  }
}

// The slope of K inputs by WIDE vectors of outputs; adds up its squares.
template <int K>
void slope_tile(const float* errors, size_t stride, const float* x, size_t x_stride, size_t rows,
                float* slope, V* squares) {
  V sums[K][WIDE] = {};
  add_products(sums, rows, x, 1, x_stride, [&](size_t r, int c) { return load(errors + r * stride + c * LANES); });
  for (int k = 0; k < K; ++k)
    for (int c = 0; c < WIDE; ++c) {
      store(slope + k * PANEL + c * LANES, sums[k][c]);
      squares[c] = fma(sums[k][c], sums[k][c], squares[c]);
    }
}

void train(float* packed, size_t in, const float* errors, size_t stride, const float* x,
           size_t x_stride, size_t rows, float* sums, float rate, float calm, float* slope) {
  for (size_t part = 0; part < PANEL; part += WIDE * LANES) {
    V squares[WIDE] = {};
    size_t k = 0;
    for (; k + ROWS <= in; k += ROWS)
      slope_tile<ROWS>(errors + part, stride, x + k, x_stride, rows, slope + k * PANEL + part, squares);
    for (; k < in; ++k)
      slope_tile<1>(errors + part, stride, x + k, x_stride, rows, slope + k * PANEL + part, squares);
    for (int c = 0; c < WIDE; ++c) {
      const size_t at = part + c * LANES;
      const V sum = load(sums + at) + squares[c] / all(float(in));
      store(sums + at, sum);
      V pace;
      for (size_t i = 0; i < LANES; ++i) pace[i] = rate / (__builtin_sqrtf(sum[i]) + calm);
      for (k = 0; k < in; ++k) {
        float* w = packed + k * PANEL + at;
        store(w, load(w) - pace * load(slope + k * PANEL + at));
      }
    }
  }
}

template <Kind kind>
constexpr int GATES = kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;

// R streams by U vectors of units, all gates of them in registers.
template <Kind kind, int R, int U>
void units_step(const float* weights, const float* bias, size_t units, size_t panel, size_t from,
                const Stream* streams) {
  constexpr int G = GATES<kind>;
  V sums[R][G][U];
  for (int r = 0; r < R; ++r)
    for (int g = 0; g < G; ++g)
      for (int u = 0; u < U; ++u) sums[r][g][u] = load(bias + g * UNITS + from + u * LANES);
  for (size_t k = 0; k < units; ++k) {
    const float* w = weights + k * G * UNITS + from;
    V h[R];
    for (int r = 0; r < R; ++r) h[r] = all(streams[r].before[k]);
    for (int g = 0; g < G; ++g)
      for (int u = 0; u < U; ++u) {
        const V b = load(w + g * UNITS + u * LANES);
        for (int r = 0; r < R; ++r) sums[r][g][u] = fma(h[r], b, sums[r][g][u]);
      }
  }
  const size_t place = panel * UNITS + from;
  for (int r = 0; r < R; ++r) {
    const float* input = streams[r].input + panel * G * UNITS + from;
    for (int u = 0; u < U; ++u) {
      const size_t at = place + u * LANES;
      if (at >= units) break;
      const size_t many = at_most_a_vector(units - at);
      auto in = [&](int g) { return load(input + g * UNITS + u * LANES); };
      V out;
      if constexpr (kind == Kind::lstm) {
        const V enter = sigmoid(in(0) + sums[r][0][u]), keep = sigmoid(in(1) + sums[r][1][u]);
        const V cell = fma(keep, load(streams[r].cell + at), enter * tanh(in(2) + sums[r][2][u]));
        store(streams[r].cell + at, cell);
        out = sigmoid(in(3) + sums[r][3][u]) * tanh(cell);
      } else if constexpr (kind == Kind::gru) {
        const V before = some(streams[r].before + at, many, 0.0f);
        const V reset = sigmoid(in(0) + sums[r][0][u]), keep = sigmoid(in(1) + sums[r][1][u]);
        const V fresh = tanh(fma(reset, sums[r][2][u], in(2)));
        out = fma(keep, before - fresh, fresh);
      } else {
        out = tanh(in(0) + sums[r][0][u]);
      }
      put(streams[r].after + at, out, many);
    }
  }
}

template <Kind kind>
void cell_step(const float* weights, const float* bias, size_t units, size_t panel,
               const Stream* streams, size_t count) {
  size_t done = 0;
  for (; count - done >= STREAMS; done += STREAMS)
    for (size_t from = 0; from < UNITS; from += LANES)
      units_step<kind, STREAMS, 1>(weights, bias, units, panel, from, streams + done);
  for (; done < count; ++done)
    for (size_t from = 0; from < UNITS; from += APART * LANES)
      units_step<kind, 1, APART>(weights, bias, units, panel, from, streams + done);
}

void step(Kind kind, const float* weights, const float* bias, size_t units, size_t panel,
          const Stream* streams, size_t count) {
  switch (kind) {
    case Kind::lstm: return cell_step<Kind::lstm>(weights, bias, units, panel, streams, count);
    case Kind::gru: return cell_step<Kind::gru>(weights, bias, units, panel, streams, count);
    case Kind::elman: return cell_step<Kind::elman>(weights, bias, units, panel, streams, count);
  }
}

void odds(float* logits, size_t columns, float& top, float& sum) {
  const size_t even = columns / LANES * LANES, rest = columns - even;
  V most = some(logits + even, rest, -3e38f);
  for (size_t c = 0; c < even; c += LANES) most = max(most, load(logits + c));
  top = most[0];
  for (size_t i = 1; i < LANES; ++i) top = most[i] > top ? most[i] : top;
  V totals{};
  for (size_t c = 0; c < even; c += LANES) {
    const V e = exp(load(logits + c) - top);
    store(logits + c, e);
    totals += e;
  }
  float ends = 0.0f;
  const V e = exp(some(logits + even, rest, top) - top);
  for (size_t i = 0; i < rest; ++i) ends += logits[even + i] = e[i];
  sum = ISA::sum(totals) + ends;
}

constexpr float LIMIT = 30.0f;  // no logit is moved further, so that no exponential overflows

float move(const float* odds, const float* signals, const float* change, size_t directions,
           size_t columns, float* moved) {
  V totals{};
  float ends = 0.0f;
  auto part = [&]<int MANY>(size_t c, auto many) {
    V sums[1][MANY] = {};
    add_products(sums, directions, signals, 0, 1,
                 [&](size_t d, int i) { return some(change + d * columns + c + i * LANES, many, 0.0f); });
    for (int i = 0; i < MANY; ++i) {
      const V limited = max(min(sums[0][i], all(LIMIT)), all(-LIMIT));
      const V e = exp(limited) * some(odds + c + i * LANES, many, 0.0f);
      put(moved + c + i * LANES, e, many);
      if (MANY > 1) totals += e;
      for (size_t lane = 0; MANY == 1 && lane < many; ++lane) ends += e[lane];
    }
  };
  constexpr int MANY = 8;
  size_t c = 0;
  for (; c + MANY * LANES <= columns; c += MANY * LANES) part.template operator()<MANY>(c, WHOLE);
  for (; c < columns; c += LANES) part.template operator()<1>(c, at_most_a_vector(columns - c));
  return sum(totals) + ends;
}

// D directions of a vector of columns, or of fewer.
template <int D>
inline void learn_some(const float* errors, const float* signals, size_t rows, size_t directions,
                       size_t columns, auto many, float* slope) {
  V sums[D][1];
  for (int d = 0; d < D; ++d) sums[d][0] = some(slope + d * columns, many, 0.0f);
  add_products(sums, rows, signals, 1, directions,
               [&](size_t r, int) { return some(errors + r * columns, many, 0.0f); });
  for (int d = 0; d < D; ++d) put(slope + d * columns, sums[d][0], many);
}

void learn(const float* errors, const float* signals, size_t rows, size_t directions,
           size_t columns, size_t first, size_t last, float* slope) {
  constexpr int MANY = 11;
  auto part = [&](size_t c, auto many) {
    size_t d = 0;
    for (; d + MANY <= directions; d += MANY)
      learn_some<MANY>(errors + c, signals + d, rows, directions, columns, many, slope + d * columns + c);
    for (; d < directions; ++d)
      learn_some<1>(errors + c, signals + d, rows, directions, columns, many, slope + d * columns + c);
  };
  size_t c = first;
  for (; c + LANES <= last; c += LANES) part(c, WHOLE);
  if (c < last) part(c, last - c);
}

void adagrad(float* change, float* sums, float* slope, size_t first, size_t last, float share,
             float rate, float calm) {
  for (size_t i = first; i < last; ++i) {
    const float g = slope[i] * share;
    sums[i] += g * g;
    change[i] -= rate * g / (__builtin_sqrtf(sums[i]) + calm);
    slope[i] = 0.0f;
  }
}

void lstm_backward(const float* gates, float* cells, const float* slope, const float* inner,
                   size_t steps, size_t units, float* slopes) {
  float* later = new float[2 * units]();
  float* later_cell = later + units;
  for (size_t t = 0; t < steps; ++t) {
    const float* gate = gates + t * 4 * units;
    const float* now = cells + t * units;
    for (size_t j = 0; j < units; ++j)
      cells[(t + 1) * units + j] = gate[units + j] * now[j] + gate[j] * gate[2 * units + j];
  }
  for (size_t t = steps; t-- > 0;) {
    const float* gate = gates + t * 4 * units;
    float* out = slopes + t * 4 * units;
    for (size_t j = 0; j < units; j += LANES) {
      const size_t many = at_most_a_vector(units - j);
      auto at = [&](const float* from) { return some(from + j, many, 0.0f); };
      auto put = [&](float* to, V v) { ISA::put(to + j, v, many); };
      const V enter = at(gate), keep = at(gate + units), fresh = at(gate + 2 * units);
      const V show = at(gate + 3 * units), before = at(cells + t * units);
      const V shown = tanh(at(cells + (t + 1) * units));
      const V here = at(slope + t * units) + at(later);
      const V cell = at(later_cell) + here * show * (1.0f - shown * shown);
      put(out, cell * fresh * enter * (1.0f - enter));
      put(out + units, cell * before * keep * (1.0f - keep));
      put(out + 2 * units, cell * enter * (1.0f - fresh * fresh));
      put(out + 3 * units, here * shown * show * (1.0f - show));
      put(later_cell, cell * keep);
    }
    for (size_t j = 0; j < units; ++j) later[j] = 0.0f;
    // Four rows at a time: a fourth of the loads and stores of the sum.
    for (size_t k = 0; k < 4 * units; k += 4) {
      const float a = out[k], b = out[k + 1], c = out[k + 2], d = out[k + 3];
      const float* w = inner + k * units;
      for (size_t j = 0; j < units; ++j)
        later[j] += (a * w[j] + b * w[units + j]) + (c * w[2 * units + j] + d * w[3 * units + j]);
    }
  }
  delete[] later;
}

}  // namespace

const NetworkKernels network{multiply, step,          odds,  move,         learn,
                             adagrad,  multiply_back, train, lstm_backward};

}  // namespace unbounded::ISA
