#include "network.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>

#include "threads.h"

namespace unbounded {
namespace {

// Rows at a time: their logits stay in the processor's cache beside a panel of weights.
constexpr size_t GROUP = 48;

constexpr size_t kChunkPanels = CHUNK / PANEL;

// What one thread takes at a time of an adapted head.
constexpr size_t ROWS = 4, COLUMNS = 512, ELEMENTS = 1 << 14;

}  // namespace

Linear::Linear(const float* weight, size_t out, size_t in, const float* bias)
    : in_(in), out_(out), packed_(panels() * in * PANEL), bias_(panels() * PANEL) {
  for (size_t o = 0; o < out; ++o) {
    float* to = packed_.data() + o / PANEL * in * PANEL + o % PANEL;
    for (size_t i = 0; i < in; ++i) to[i * PANEL] = weight[o * in + i];
    if (bias) bias_[o] = bias[o];
  }
}

void Linear::unpack(float* weight) const {
  for (size_t o = 0; o < out_; ++o) {
    const float* from = packed_.data() + o / PANEL * in_ * PANEL + o % PANEL;
    for (size_t i = 0; i < in_; ++i) weight[o * in_ + i] = from[i * PANEL];
  }
}

void Linear::multiply(const float* x, size_t rows, float* y) const {
  const auto& kernels = network_kernels();
  in_parallel(rows, GROUP, [&](size_t start, size_t stop) {
    kernels.multiply(weights(), 0, panels(), x + start * in_, in_, stop - start, y + start * out_, out_);
  });
}

Cell::Cell(Kind kind, size_t units, size_t in, const float* input, const float* inner, const float* input_bias,
           const float* inner_bias)
    : kind_(kind), gates_(gates_of(kind)), units_(units), panels_((units + UNITS - 1) / UNITS),
      weights_(panels_ * gates_ * UNITS * units), bias_(panels_ * gates_ * UNITS) {
  const size_t wide = bias_.size();
  std::vector<float> weight(wide * in), bias(wide);
  // All gates of a unit in one panel, so that a step ends where its sums are.
  for (size_t g = 0; g < gates_; ++g)
    for (size_t u = 0; u < units_; ++u) {
      const size_t row = g * units_ + u, panel = u / UNITS;
      const size_t to = (panel * gates_ + g) * UNITS + u % UNITS;
      std::copy_n(input + row * in, in, weight.data() + to * in);
      bias[to] = input_bias[row];
      bias_[to] = inner_bias[row];
      for (size_t k = 0; k < units_; ++k)
        weights_[((panel * units_ + k) * gates_ + g) * UNITS + u % UNITS] = inner[row * units_ + k];
    }
  input_ = Linear(weight.data(), wide, in, bias.data());
}

void Cell::advance(const float* vectors, size_t different, const int64_t* place, const int64_t* lengths,
                   size_t streams, float* state, float* hidden) const {
  // What a whole text at once would take is given back.
  const size_t size = different * input_.out();
  Aligned<float> own(size > (1 << 22) ? size : 0);
  float* inputs = own.empty() ? scratch<float>(size) : own.data();
  input_.multiply(vectors, different, inputs);
  const auto& kernels = network_kernels();
  const size_t padded = panels_ * UNITS, wide = input_.out();
  std::vector<size_t> order(streams), begin(streams, 0);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t s = 1; s < streams; ++s) begin[s] = begin[s - 1] + lengths[s - 1];
  // The longest first, so that those that go on stay in front.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  const size_t steps = streams ? lengths[order[0]] : 0;
  Aligned<float> cells(kind_ == Kind::lstm ? streams * padded : 0);
  float* kept = state + streams * units_;
  for (size_t s = 0; s < streams && !cells.empty(); ++s)
    std::copy_n(kept + s * units_, units_, cells.data() + s * padded);

  // Threads share one step panel by panel, each with those that lie in its own cache; who comes
  // late, or is kept from working, finds its panels done.
  std::unique_ptr<std::atomic<size_t>[]> claimed(new std::atomic<size_t>[panels_]());
  std::atomic<size_t> done{0};
  const size_t hands = steps < 8 ? 1 : std::min<size_t>(threads(), panels_);
  in_parallel(hands, 1, [&](size_t hand, size_t) {
    std::vector<Stream> now(streams);
    size_t active = streams;
    for (size_t t = 0; t < steps; ++t) {
      t = std::max(t, done.load(std::memory_order_acquire) / panels_);
      if (t >= steps) break;
      while (active && size_t(lengths[order[active - 1]]) <= t) --active;
      for (size_t i = 0; i < active; ++i) {
        const size_t s = order[i], at = begin[s] + t;
        now[i] = {inputs + place[at] * wide, t ? hidden + (at - 1) * units_ : state + s * units_,
                  cells.data() + s * padded, hidden + at * units_};
      }
      for (size_t i = 0; i < panels_; ++i) {
        const size_t panel = (hand * panels_ / hands + i) % panels_;
        size_t expected = t;
        if (!claimed[panel].compare_exchange_strong(expected, t + 1)) continue;
        kernels.step(kind_, weights_.data() + panel * units_ * gates_ * UNITS,
                     bias_.data() + panel * gates_ * UNITS, units_, panel, now.data(), active);
        done.fetch_add(1, std::memory_order_release);
      }
      for (size_t spins = 0; done.load(std::memory_order_acquire) < (t + 1) * panels_; ++spins)
        if (spins > 2000) std::this_thread::yield();
    }
  });
  for (size_t s = 0; s < streams; ++s) {
    if (lengths[s]) std::copy_n(hidden + (begin[s] + lengths[s] - 1) * units_, units_, state + s * units_);
    if (!cells.empty()) std::copy_n(cells.data() + s * padded, units_, kept + s * units_);
  }
}

double ClusterSoftmax::add(float* logits, size_t columns, size_t begin, size_t word) {
  float highest, odds;
  if (word - begin < columns) picked = logits[word - begin];
  network_kernels().odds(logits, columns, highest, odds);
  const double most = std::max(top, double(highest));
  sum = sum * std::exp(top - most) + odds * std::exp(highest - most);
  top = most;
  return highest;
}

std::vector<Linear*> AdaptiveSoftmax::layers() {
  std::vector<Linear*> all{&head_};
  for (auto& [narrow, wide] : clusters_) all.insert(all.end(), {&narrow, &wide});
  return all;
}

AdaptiveSoftmax::Place AdaptiveSoftmax::place(int64_t word) const {
  const size_t cluster = std::upper_bound(cutoffs_.begin(), cutoffs_.end(), word) - cutoffs_.begin();
  if (word < 0 || cluster == cutoffs_.size()) return {cluster, -1};
  return {cluster, cluster ? cutoffs_[0] + int64_t(cluster) - 1 : word};
}

void AdaptiveSoftmax::score(const float* hidden, size_t rows, const int64_t* words, double* prob, double* share,
                            int64_t* column, float* odds) const {
  const size_t width = head_.in();
  // Which rows each softmax is for; parts of at most GROUP of them are shared out.
  std::vector<std::vector<size_t>> members(clusters_.size());
  struct Part {
    size_t softmax, first, last;
  };
  std::vector<Part> parts;
  for (size_t r = 0; r < rows; ++r) {
    const Place at = place(words[r]);
    column[r] = at.column;
    if (at.column >= 0 && at.cluster) members[at.cluster - 1].push_back(r);
  }
  for (size_t s = 0; s <= clusters_.size(); ++s)
    for (size_t first = 0, all = s ? members[s - 1].size() : rows; first < all; first += GROUP)
      parts.push_back({s, first, std::min(first + GROUP, all)});
  std::vector<double> inside(rows, 1.0);
  const auto& kernels = network_kernels();
  in_parallel(parts.size(), 1, [&](size_t which, size_t) {
    const auto [softmax, first, last] = parts[which];
    const size_t many = last - first;
    if (softmax == 0) {
      const size_t columns = head_.out(), stride = odds ? columns : head_.panels() * PANEL + PANEL / 2;
      float* logits = odds ? odds + first * columns : scratch<float>(many * stride);
      kernels.multiply(head_.weights(), 0, head_.panels(), hidden + first * width, width, many, logits, stride);
      for (size_t r = 0; r < many; ++r) {
        float top, sum, *row = logits + r * stride;
        kernels.odds(row, columns, top, sum);
        const int64_t c = column[first + r];
        share[first + r] = c < 0 ? 0.0 : double(row[c]) / double(sum);
      }
      return;
    }
    const auto& [narrow, wide] = clusters_[softmax - 1];
    const size_t* member = members[softmax - 1].data() + first;
    float* x = scratch<float, 1>(many * (width + narrow.out()));
    float* inner = x + many * width;
    for (size_t r = 0; r < many; ++r) std::copy_n(hidden + member[r] * width, width, x + r * width);
    kernels.multiply(narrow.weights(), 0, narrow.panels(), x, width, many, inner, narrow.out());
    const size_t stride = kChunkPanels * PANEL + PANEL / 2;
    float* logits = scratch<float>(many * stride);
    ClusterSoftmax running[GROUP];
    for (size_t panel = 0; panel < wide.panels(); panel += kChunkPanels) {
      const size_t until = std::min(panel + kChunkPanels, wide.panels()), begin = panel * PANEL;
      const size_t columns = std::min(until * PANEL, wide.out()) - begin;
      kernels.multiply(wide.weights(), panel, until, inner, wide.in(), many, logits, stride);
      for (size_t r = 0; r < many; ++r)
        running[r].add(logits + r * stride, columns, begin, words[member[r]] - cutoffs_[softmax - 1]);
    }
    for (size_t r = 0; r < many; ++r) inside[member[r]] = running[r].prob();
  });
  for (size_t r = 0; r < rows; ++r) prob[r] = share[r] * inside[r];
}

void AdaptiveSoftmax::dense(const float* hidden, size_t rows, double* out) const {
  const auto& kernels = network_kernels();
  in_parallel(rows, 1, [&](size_t r, size_t) {
    const float* x = hidden + r * in();
    double* to = out + r * size();
    // Odds of one softmax as they would be if they summed to `mass`.
    auto spread = [&](const Linear& linear, const float* from, double mass) {
      float top, sum, *odds = scratch<float>(linear.out());
      kernels.multiply(linear.weights(), 0, linear.panels(), from, linear.in(), 1, odds, linear.out());
      kernels.odds(odds, linear.out(), top, sum);
      return std::pair(odds, mass / double(sum));
    };
    const auto [first, scale] = spread(head_, x, 1.0);
    for (int64_t c = 0; c < cutoffs_[0]; ++c) *to++ = first[c] * scale;
    std::vector<double> shares(first + cutoffs_[0], first + head_.out());
    for (size_t i = 0; i < clusters_.size(); ++i) {
      const auto& [narrow, wide] = clusters_[i];
      float* inner = scratch<float, 1>(narrow.out());
      kernels.multiply(narrow.weights(), 0, narrow.panels(), x, in(), 1, inner, narrow.out());
      const auto [odds, part] = spread(wide, inner, shares[i] * scale);
      for (size_t c = 0; c < wide.out(); ++c) *to++ = odds[c] * part;
    }
  });
}

size_t AdaptedHead::score(const float* odds, const int64_t* column, const float* signals, size_t rows, size_t waiting,
                          size_t every, float rate, float calm, double* shares) const {
  const auto& kernels = network_kernels();
  const size_t most = std::min<size_t>(every ? every : 64, std::max<size_t>(rows, 1));
  std::vector<float> moved(most * columns), scaled(most * directions);
  std::vector<size_t> known;
  for (size_t start = 0; start < rows;) {
    const size_t stop = std::min(start + (every ? every - waiting : most), rows);
    known.clear();
    for (size_t r = start; r < stop; ++r)
      if (column[r] >= 0) known.push_back(r);
    in_parallel(known.size(), ROWS, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        const size_t r = known[i];
        float* row = moved.data() + i * columns;
        const float total =
            kernels.move(odds + r * columns, &signals[r * directions], change, directions, columns, row);
        shares[r] = double(row[column[r]]) / double(total);
        // What came is certain: with the total taken off, a row over the total is its error.
        row[column[r]] -= total;
        for (size_t d = 0; d < directions; ++d) scaled[i * directions + d] = signals[r * directions + d] / total;
      }
    });
    if (every) {
      in_parallel(columns, COLUMNS, [&](size_t first, size_t last) {
        kernels.learn(moved.data(), scaled.data(), known.size(), directions, columns, first, last, slope);
      });
      waiting += stop - start;
      if (waiting == every) {
        in_parallel(directions * columns, ELEMENTS, [&](size_t first, size_t last) {
          kernels.adagrad(change, sums, slope, first, last, 1.0f / float(every), rate, calm);
        });
        waiting = 0;
      }
    }
    start = stop;
  }
  return waiting;
}

}  // namespace unbounded
