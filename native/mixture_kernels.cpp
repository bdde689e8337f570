#include "mixture.h"

#include "lanes.h"

namespace unbounded::ISA {
namespace {

// How much of the trust in a rate, and of a weight, flows to the others at each step.
constexpr double kShare = 1e-5;

// The gate's step (Adagrad), the part of the plain weights in its own, how fast it forgets who was
// right, how many deviations a signal may be off, and which deviations are a float's rounding.
constexpr float kRate = 0.2f;
constexpr double kFloor = 1e-5;
constexpr int kFades = 3;
constexpr double kFade[kFades] = {1.0, 0.25, 0.02};
constexpr float kClip = 4.0f;
constexpr double kRounding = 1e-6;

// What to multiply a row by, so that nothing vanishes: a word of hundreds of letters is unlikely.
double scale_up(const double* row, int64_t experts) {
  double top = 0.0;
  for (int64_t i = 0; i < experts; ++i) top = row[i] > top ? row[i] : top;
  return top < 1e-200 ? 0x1p800 : 1.0;
}

constexpr int kParts = kRateLanes / kDoubles;

int64_t online(const double* table, int64_t rows, int64_t experts, double* by_rate, double* trusts,
               double* prob, double* weights, double* room) {
  const Doubles zero = {}, one = zero + 1.0;
  // Expert by expert with all rates beside each other; lanes without a rate learn nothing.
  Doubles rate[kParts] = {}, flow[kParts] = {}, trust[kParts] = {};
  for (int r = 0; r < kRates; ++r) {
    const int k = r / kDoubles, lane = r % kDoubles;
    rate[k][lane] = 1.0 / double(int64_t(4) << r), flow[k][lane] = kShare / kRates, trust[k][lane] = trusts[r];
  }
  for (int64_t i = 0; i < experts; ++i)
    for (int r = 0; r < kRateLanes; ++r)
      room[i * kRateLanes + r] = r < kRates ? by_rate[r * experts + i] : 1.0;
  int64_t t = 0;
  for (; t < rows; ++t) {
    const double* row = table + t * experts;
    const double up = scale_up(row, experts);
    Doubles mixed[kParts] = {};
    for (int64_t i = 0; i < experts; ++i) {
      Doubles weight = {};
      for (int k = 0; k < kParts; ++k) {
        const Doubles w = load<Doubles>(room + i * kRateLanes + k * kDoubles);
        mixed[k] = fma(w, zero + row[i] * up, mixed[k]);
        weight = fma(trust[k], w, weight);
      }
      weights[t * experts + i] = sum(weight);
    }
    Doubles all = {};
    for (int k = 0; k < kParts; ++k) all = fma(trust[k], mixed[k], all);
    const double total = sum(all);
    prob[t] = total / up;
    if (!(total > 0.0)) break;
    for (int k = 0; k < kParts; ++k) {
      const Doubles share = kShare * rate[k], even = share / double(experts);
      const Doubles kept = one - share, stay = one - rate[k], by = rate[k] / mixed[k];
      Doubles left = {};
      for (int64_t i = 0; i < experts; ++i) {
        double* at = room + i * kRateLanes + k * kDoubles;
        const Doubles ratio = fma(by, zero + row[i] * up, stay);
        const Doubles w = fma(kept * load<Doubles>(at), ratio, even);
        left += w;
        store(at, w);
      }
      left = one / left;
      for (int64_t i = 0; i < experts; ++i) {
        double* at = room + i * kRateLanes + k * kDoubles;
        store(at, load<Doubles>(at) * left);
      }
      trust[k] = fma((1.0 - kShare) * trust[k], mixed[k] / total, flow[k]);
    }
  }
  for (int64_t i = 0; i < experts; ++i)
    for (int r = 0; r < kRates; ++r) by_rate[r * experts + i] = room[i * kRateLanes + r];
  for (int r = 0; r < kRates; ++r) trusts[r] = trust[r / kDoubles][r % kDoubles];
  return t;
}

void swap(float*& a, float*& b) {
  float* const c = a;
  a = b, b = c;
}

// The gate at work: its arrays on whole registers, with zeros behind the last signal and expert.
struct Work {
  Work(const Gate& whose, const float* context, float* room)
      : gate(whose), width(padded(gate.signals)), seen(*gate.seen) {
    const auto take = [&](int64_t floats) { return (room += floats) - floats; };
    const auto take_doubles = [&](int64_t n) { return reinterpret_cast<double*>(take(2 * n)); };
    tilt = take(gate.experts * width), squares = take(gate.experts * width);
    mean = take_doubles(width), deviations = take_doubles(width);
    values = take(width), coming = take(width), signals = take(width), next = take(width);
    scale = take(width), by = take(width);
    dots = take_doubles(padded(gate.experts)), gated = take_doubles(padded(gate.experts));
    const auto pad = [&](auto* row, const auto* from, auto with) {
      for (int64_t j = 0; j < gate.signals; ++j) row[j] = from[j];
      for (int64_t j = gate.signals; j < width; ++j) row[j] = with;
    };
    pad(mean, gate.moments, 0.0), pad(deviations, gate.moments + gate.signals, 0.0);
    pad(scale, gate.scale, 0.0f);
    for (int64_t j = gate.signals; j < width; ++j) values[j] = coming[j] = 0.0f;
    for (int64_t i = 0; i < gate.experts; ++i) {
      pad(tilt + i * width, gate.tilt + i * gate.signals, 0.0f);
      pad(squares + i * width, gate.squares + i * gate.signals, 1.0f);
    }
    for (int64_t i = 0; i < padded(gate.experts); ++i) dots[i] = 0.0;
    take_in(context);
    standardize<false>();
    for (int64_t i = 0; i < gate.experts; ++i) {
      Floats dot = {};
      for (int64_t j = 0; j < width; j += kFloats)
        dot = fma(load<Floats>(tilt + i * width + j), load<Floats>(next + j), dot);
      dots[i] = sum(dot);
    }
  }

  void write_back() const {
    *gate.seen = seen;
    const auto copy = [&](auto* to, const auto* row) {
      for (int64_t j = 0; j < gate.signals; ++j) to[j] = row[j];
    };
    copy(gate.moments, mean), copy(gate.moments + gate.signals, deviations);
    for (int64_t i = 0; i < gate.experts; ++i) {
      copy(gate.tilt + i * gate.signals, tilt + i * width);
      copy(gate.squares + i * gate.signals, squares + i * width);
    }
  }

  // The coming row: the gate's own signals, and what it is told.
  void take_in(const float* context) {
    for (int64_t j = 0; j < gate.own; ++j) coming[j] = float(gate.owned[j]);
    __builtin_memcpy(coming + gate.own, context, sizeof(float) * (gate.signals - gate.own));
  }

  // Learn the moments of `values`: Welford's update of means and of sums of squared deviations, in
  // which an unknown value is the mean. Then the signals of what is coming: less their mean, over
  // their deviation, and zero where either or the signal is unknown.
  template <bool kLearn>
  void standardize() {
    const Doubles zero = {}, infinite = zero + __builtin_inf();
    const double part = 1.0 / double(seen);
    for (int64_t j = 0; j < width; j += kDoubles) {
      Doubles m = load<Doubles>(mean + j), d = load<Doubles>(deviations + j);
      if (kLearn) {
        Doubles off = __builtin_convertvector(load<HalfFloats>(values + j), Doubles) - m;
        off = max(off, -off) < infinite ? off : zero;
        m = fma(off, zero + part, m);
        d = fma(off * off, zero + (1.0 - part), d);
        store(mean + j, m), store(deviations + j, d);
      }
      const Doubles off = __builtin_convertvector(load<HalfFloats>(coming + j), Doubles) - m;
      const Doubles deviation = fma(max(m, -m), zero + kRounding, sqrt(d * part));
      store(next + j, __builtin_convertvector(off, HalfFloats));
      store(by + j, __builtin_convertvector(deviation, HalfFloats));
    }
    const Floats none = {};
    for (int64_t j = 0; j < width; j += kFloats) {
      const Floats far = load<Floats>(next + j) / load<Floats>(by + j);
      const Floats near = min(max(far, none - kClip), none + kClip) * load<Floats>(scale + j);
      store(next + j, max(far, -far) < none + __builtin_inff() ? near : none);
    }
  }

  // The gate's weights: plain ones times the exponential of what the signals say of each.
  void weigh(const double* plain, double* weights) {
    double top = dots[0], total = 0.0;
    for (int64_t i = 1; i < gate.experts; ++i) top = dots[i] > top ? dots[i] : top;
    for (int64_t i = 0; i < gate.experts; i += kDoubles)
      store(gated + i, exp(load<Doubles>(dots + i) - top));
    for (int64_t i = 0; i < gate.experts; ++i) total += gated[i] *= plain[i];
    const double part = (1.0 - kFloor) / total;
    for (int64_t i = 0; i < gate.experts; ++i) weights[i] = part * gated[i] + kFloor * plain[i];
  }

  // Adagrad: each tilt by its slope over the root of the sum of all its squared slopes; and what
  // the next signals will say, while the tilts are at hand.
  void step(int64_t expert, float slope) {
    const Floats zero = {}, each = zero + slope, rate = zero + kRate * slope, half = 0.5f * rate;
    Floats dot = zero;
    for (int64_t j = 0; j < width; j += kFloats) {
      const Floats signal = load<Floats>(signals + j), move = each * signal;
      float *const at = squares + expert * width + j, *const to = tilt + expert * width + j;
      const Floats square = fma(move, move, load<Floats>(at)), root = about_rsqrt(square);
      // One step of Newton: 1 / √s is about y (1 + e / 2), where e = 1 - s y².
      const Floats e = fma(-(square * root), root, zero + 1.0f);
      const Floats tilted = fma(signal * root, fma(e, half, rate), load<Floats>(to));
      store(at, square), store(to, tilted);
      dot = fma(tilted, load<Floats>(next + j), dot);
    }
    dots[expert] = sum(dot);
  }

  const Gate& gate;
  int64_t width, seen;
  float *tilt, *squares, *values, *coming, *signals, *next, *scale, *by;
  double *mean, *deviations, *dots, *gated;
};

void gate(const Gate& gate, const double* table, const float* context, const double* plain,
          int64_t rows, double* prob, double* weights, float* room) {
  if (!rows) return;
  const int64_t experts = gate.experts, told = gate.signals - gate.own;
  Work work(gate, context, room);
  for (int64_t t = 0; t < rows; ++t, table += experts, plain += experts, weights += experts) {
    swap(work.values, work.coming), swap(work.signals, work.next);
    work.weigh(plain, weights);
    const double up = scale_up(table, experts);
    double total = 0.0, usual = 0.0;
    for (int64_t i = 0; i < experts; ++i) {
      total += weights[i] * (table[i] * up);
      usual += plain[i] * (table[i] * up);
    }
    prob[t] = total / up;
    const double by_total = 1.0 / total, by_usual = 1.0 / usual;
    for (int64_t i = 0; i < experts; ++i) {
      const double right = plain[i] * (table[i] * up) * by_usual;
      for (int k = 0; k < kFades; ++k) {
        double& own = gate.owned[i * kFades + k];
        const double before = own - own == 0.0 ? own : 1.0 / double(experts);
        own = before + kFade[k] * (right - before);
      }
    }
    gate.owned[gate.own - 1] = __builtin_log(usual) - (up > 1.0 ? 800 * __builtin_log(2.0) : 0.0);
    if (t + 1 < rows) work.take_in(context + (t + 1) * told);
    ++work.seen;
    work.standardize<true>();
    for (int64_t i = 0; i < experts; ++i)
      work.step(i, float(weights[i] * (table[i] * up * by_total - 1.0)));
  }
  work.write_back();
}

void weigh(const Gate& gate, const float* context, const double* plain, double* weights, float* room) {
  Work(gate, context, room).weigh(plain, weights);
}

}  // namespace

const MixtureKernels mixture{online, gate, weigh};

}  // namespace unbounded::ISA
