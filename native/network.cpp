// The frozen network for Python: cells that read, and the adaptive softmax.
#include "network.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>

#include "arrays.h"
#include "threads.h"

namespace unbounded {

Linear::Linear(const float* weight, size_t out, size_t in, const float* bias)
    : in_(in), out_(out), packed_(panels() * in * PANEL), bias_(panels() * PANEL) {
  for (size_t o = 0; o < out; ++o) {
    float* to = packed_.data() + o / PANEL * in * PANEL + o % PANEL;
    for (size_t i = 0; i < in; ++i) to[i * PANEL] = weight[o * in + i];
    if (bias) bias_[o] = bias[o];
  }
}

namespace {

using Numpy = nb::ndarray<nb::numpy, float>;

// Rows at a time: their logits stay in the processor's cache beside a panel of weights.
constexpr size_t GROUP = 48;

// Memory that a thread keeps for the next call, not cleared.
float* scratch(int which, size_t size) {
  static thread_local Floats kept[2];
  if (kept[which].size() < size) kept[which].resize(size);
  return kept[which].data();
}

void multiply_all(const Linear& linear, const float* x, size_t rows, float* y) {
  const auto& kernels = network_kernels();
  in_parallel(rows, GROUP, [&](size_t start, size_t stop) {
    kernels.multiply(linear.weights(), 0, linear.panels(), x + start * linear.in(), linear.in(),
                     stop - start, y + start * linear.out(), linear.out());
  });
}

Linear linear_of(nb::handle weight, const char* name) {
  const Array<const float, 2> w(weight, name);
  require(w.size(0) && w.size(1), std::string(name) + " is empty");
  return Linear(w.data(), w.size(0), w.size(1));
}

Numpy linear_multiply(const Linear& linear, nb::handle rows) {
  const Array<const float, 2> x(rows, "rows");
  require(x.size(1) == linear.in(), "rows are " + std::to_string(x.size(1)) + " wide; the weights take " +
                                        std::to_string(linear.in()));
  auto y = new_array<float, 2>({x.size(0), linear.out()});
  nb::gil_scoped_release release;
  multiply_all(linear, x.data(), x.size(0), y.data());
  return y;
}

// A recurrent cell: one step of a stream after the other, several streams side by side.
class Cell {
 public:
  Cell(const std::string& kind, nb::handle input, nb::handle inner, nb::handle input_bias,
       nb::handle inner_bias) {
    const Array<const float, 2> outer(input, "input weights"), recurrent(inner, "recurrent weights");
    const Array<const float, 1> first(input_bias, "input bias"), second(inner_bias, "recurrent bias");
    require(kind == "lstm" || kind == "gru" || kind == "elman",
            "cell '" + kind + "' is unknown; use lstm, gru or elman");
    kind_ = kind == "lstm" ? Kind::lstm : kind == "gru" ? Kind::gru : Kind::elman;
    gates_ = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
    units_ = recurrent.size(1);
    const size_t rows = gates_ * units_;
    require(units_ && outer.size(1) && outer.size(0) == rows && recurrent.size(0) == rows &&
                first.size() == rows && second.size() == rows,
            "the weights are not those of one cell: " + std::to_string(rows) + " rows are needed in each");
    panels_ = (units_ + UNITS - 1) / UNITS;
    const size_t in = outer.size(1), wide = panels_ * gates_ * UNITS;
    Floats weight(wide * in), bias(wide);
    weights_.resize(wide * units_);
    bias_.resize(wide);
    // All gates of a unit in one panel, so that a step ends where its sums are.
    for (size_t g = 0; g < gates_; ++g)
      for (size_t u = 0; u < units_; ++u) {
        const size_t row = g * units_ + u, panel = u / UNITS;
        const size_t to = (panel * gates_ + g) * UNITS + u % UNITS;
        std::copy_n(outer.row(row), in, weight.data() + to * in);
        bias[to] = first[row];
        bias_[to] = second[row];
        for (size_t k = 0; k < units_; ++k)
          weights_[((panel * units_ + k) * gates_ + g) * UNITS + u % UNITS] = recurrent.row(row)[k];
      }
    input_ = Linear(weight.data(), wide, in, bias.data());
  }

  // Streams one after another: word t reads row place[t] of the vectors; `state` is (parts, streams,
  // units) and changes in place.
  Numpy advance(nb::handle vector_rows, nb::handle places, nb::handle stream_lengths, nb::handle states) const {
    const Array<const float, 2> vectors(vector_rows, "vectors");
    const Array<const int64_t, 1> place(places, "place"), lengths(stream_lengths, "lengths");
    const Array<float, 3> state(states, "state");
    require(vectors.size(1) == input_.in(), "vectors are " + std::to_string(vectors.size(1)) +
                                                " wide; the cell takes " + std::to_string(input_.in()));
    for (size_t i = 0; i < place.size(); ++i)
      require(place[i] >= 0 && size_t(place[i]) < vectors.size(0),
              "place " + std::to_string(place[i]) + " is none of " + std::to_string(vectors.size(0)) + " vectors");
    size_t words = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      require(lengths[i] >= 0 && size_t(lengths[i]) <= place.size() - words, "lengths are not those of the words");
      words += lengths[i];
    }
    require(words == place.size(), "lengths are not those of the words");
    require(state.size(0) == (kind_ == Kind::lstm ? 2u : 1u) && state.size(1) == lengths.size() &&
                state.size(2) == units_,
            "state is not one of this cell: parts, streams, units");
    auto hidden = new_array<float, 2>({words, units_});
    nb::gil_scoped_release release;
    // What a whole text at once would take is given back.
    const size_t size = vectors.size(0) * input_.out();
    Floats own(size > (1 << 22) ? size : 0);
    float* inputs = own.empty() ? scratch(0, size) : own.data();
    multiply_all(input_, vectors.data(), vectors.size(0), inputs);
    run(inputs, place.data(), lengths, state.data(), hidden.data());
    return hidden;
  }

 private:
  void run(const float* inputs, const int64_t* place, const Array<const int64_t, 1>& lengths,
           float* state, float* hidden) const {
    const auto& kernels = network_kernels();
    const size_t streams = lengths.size(), padded = panels_ * UNITS, wide = input_.out();
    std::vector<size_t> order(streams), begin(streams, 0);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t s = 1; s < streams; ++s) begin[s] = begin[s - 1] + lengths[s - 1];
    // The longest first, so that those that go on stay in front.
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
    const size_t steps = streams ? lengths[order[0]] : 0;
    Floats cells(kind_ == Kind::lstm ? streams * padded : 0);
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

  Kind kind_;
  size_t gates_, units_, panels_;
  Linear input_;
  Floats weights_, bias_;  // [panel][unit in][gate][UNITS], [panel][gate][UNITS]
};

// Frequent words and clusters under one softmax; each cluster's words under one of their own.
class AdaptiveSoftmax {
 public:
  AdaptiveSoftmax(nb::handle head, const std::vector<nb::object>& tails, const std::vector<int64_t>& cutoffs)
      : head_(linear_of(head, "head weights")), cutoffs_(cutoffs) {
    require(cutoffs.size() == tails.size() / 2 + 1 && tails.size() % 2 == 0 && cutoffs[0] >= 1 &&
                std::is_sorted(cutoffs.begin(), cutoffs.end()) &&
                head_.out() == size_t(cutoffs[0]) + cutoffs.size() - 1,
            "the weights are not those of an adaptive softmax with these cutoffs");
    for (size_t i = 0; i < tails.size(); i += 2) {
      tails_.push_back({linear_of(tails[i], "narrow weights"), linear_of(tails[i + 1], "wide weights")});
      const auto& [narrow, wide] = tails_.back();
      require(narrow.in() == head_.in() && wide.in() == narrow.out() &&
                  int64_t(wide.out()) == cutoffs[i / 2 + 1] - cutoffs[i / 2],
              "cluster " + std::to_string(i / 2) + " does not fit its cutoffs");
    }
  }

  // For each word: its probability, that of its column in the first softmax, that column (-1 for a
  // word beyond the vocabulary), and if asked all odds of the first softmax, the largest one.
  nb::tuple score(nb::handle states, nb::handle targets, bool with_odds) const {
    const Array<const float, 2> hidden = states_of(states);
    const Array<const int64_t, 1> words(targets, "words");
    require(words.size() == hidden.size(0), std::to_string(words.size()) + " words for " +
                                                std::to_string(hidden.size(0)) + " states; give one each");
    const size_t rows = words.size();
    auto prob = new_array<double, 1>({rows});
    auto share = new_array<double, 1>({rows});
    auto column = new_array<int64_t, 1>({rows});
    auto odds = new_array<float, 2>({with_odds ? rows : 0, head_.out()});
    {
      nb::gil_scoped_release release;
      run(hidden, words.data(), prob.data(), share.data(), column.data(), with_odds ? odds.data() : nullptr);
    }
    return nb::make_tuple(prob, share, column, odds);
  }

  nb::ndarray<nb::numpy, double> dense(nb::handle states) const {
    const Array<const float, 2> hidden = states_of(states);
    const size_t size = cutoffs_.back(), frequent = cutoffs_[0], rows = hidden.size(0);
    auto out = new_array<double, 2>({rows, size});
    nb::gil_scoped_release release;
    const auto& kernels = network_kernels();
    in_parallel(rows, 4, [&](size_t start, size_t stop) {
      const size_t many = stop - start;
      const float* x = hidden.row(start);
      auto normalized = [&](const Linear& linear, const float* from, float* logits, size_t r) {
        float top, sum;
        if (r == 0)
          kernels.multiply(linear.weights(), 0, linear.panels(), from, linear.in(), many, logits, linear.out());
        kernels.odds(logits + r * linear.out(), linear.out(), top, sum);
        return double(sum);
      };
      std::vector<double> shares(many * tails_.size());
      float* logits = scratch(0, many * head_.out());
      for (size_t r = 0; r < many; ++r) {
        const double sum = normalized(head_, x, logits, r);
        double* to = out.data() + (start + r) * size;
        for (size_t c = 0; c < frequent; ++c) to[c] = logits[r * head_.out() + c] / sum;
        for (size_t i = 0; i < tails_.size(); ++i)
          shares[r * tails_.size() + i] = logits[r * head_.out() + frequent + i] / sum;
      }
      for (size_t i = 0; i < tails_.size(); ++i) {
        const auto& [narrow, wide] = tails_[i];
        float* inner = scratch(1, many * narrow.out());
        kernels.multiply(narrow.weights(), 0, narrow.panels(), x, narrow.in(), many, inner, narrow.out());
        logits = scratch(0, many * wide.out());
        for (size_t r = 0; r < many; ++r) {
          const double scale = shares[r * tails_.size() + i] / normalized(wide, inner, logits, r);
          double* to = out.data() + (start + r) * size + cutoffs_[i];
          for (size_t c = 0; c < wide.out(); ++c) to[c] = logits[r * wide.out() + c] * scale;
        }
      }
    });
    return out;
  }

 private:
  struct Tail {
    Linear narrow, wide;
  };

  // Panels of a cluster at a time: its logits are never all there at once.
  static constexpr size_t CHUNK = 2048 / PANEL;

  Array<const float, 2> states_of(nb::handle states) const {
    const Array<const float, 2> hidden(states, "states");
    require(hidden.size(1) == head_.in(), "states are " + std::to_string(hidden.size(1)) +
                                              " wide; the output layer takes " + std::to_string(head_.in()));
    return hidden;
  }

  void run(const Array<const float, 2>& hidden, const int64_t* words, double* prob, double* share,
           int64_t* column, float* odds) const {
    const size_t rows = hidden.size(0), width = hidden.size(1);
    // Which rows each softmax is for; parts of at most GROUP of them are shared out.
    std::vector<std::vector<size_t>> members(tails_.size());
    struct Part {
      size_t softmax, first, last;
    };
    std::vector<Part> parts;
    for (size_t r = 0; r < rows; ++r) {
      const auto end = std::upper_bound(cutoffs_.begin(), cutoffs_.end(), words[r]);
      const size_t cluster = end - cutoffs_.begin();
      const bool known = words[r] >= 0 && end != cutoffs_.end();
      column[r] = !known ? -1 : cluster ? cutoffs_[0] + int64_t(cluster) - 1 : words[r];
      if (known && cluster) members[cluster - 1].push_back(r);
    }
    for (size_t s = 0; s <= tails_.size(); ++s)
      for (size_t first = 0, all = s ? members[s - 1].size() : rows; first < all; first += GROUP)
        parts.push_back({s, first, std::min(first + GROUP, all)});
    std::vector<double> inside(rows, 1.0);
    const auto& kernels = network_kernels();
    in_parallel(parts.size(), 1, [&](size_t which, size_t) {
      const auto [softmax, first, last] = parts[which];
      const size_t many = last - first;
      if (softmax == 0) {
        const size_t columns = head_.out(), stride = odds ? columns : head_.panels() * PANEL + PANEL / 2;
        float* logits = odds ? odds + first * columns : scratch(0, many * stride);
        kernels.multiply(head_.weights(), 0, head_.panels(), hidden.row(first), width, many, logits, stride);
        for (size_t r = 0; r < many; ++r) {
          float top, sum, *row = logits + r * stride;
          kernels.odds(row, columns, top, sum);
          const int64_t c = column[first + r];
          share[first + r] = c < 0 ? 0.0 : double(row[c]) / double(sum);
        }
        return;
      }
      const auto& [narrow, wide] = tails_[softmax - 1];
      const size_t* member = members[softmax - 1].data() + first;
      float* x = scratch(1, many * (width + narrow.out()));
      float* inner = x + many * width;
      for (size_t r = 0; r < many; ++r) std::copy_n(hidden.row(member[r]), width, x + r * width);
      kernels.multiply(narrow.weights(), 0, narrow.panels(), x, width, many, inner, narrow.out());
      const size_t stride = CHUNK * PANEL + PANEL / 2;
      float* logits = scratch(0, many * stride);
      double tops[GROUP], sums[GROUP], picked[GROUP];
      for (size_t panel = 0; panel < wide.panels(); panel += CHUNK) {
        const size_t until = std::min(panel + CHUNK, wide.panels()), begin = panel * PANEL;
        const size_t columns = std::min(until * PANEL, wide.out()) - begin;
        kernels.multiply(wide.weights(), panel, until, inner, wide.in(), many, logits, stride);
        for (size_t r = 0; r < many; ++r) {
          float top, sum, *row = logits + r * stride;
          const size_t target = words[member[r]] - cutoffs_[softmax - 1];
          if (target - begin < columns) picked[r] = row[target - begin];
          kernels.odds(row, columns, top, sum);
          const double most = panel ? std::max(tops[r], double(top)) : double(top);
          sums[r] = (panel ? sums[r] * std::exp(tops[r] - most) : 0.0) + sum * std::exp(top - most);
          tops[r] = most;
        }
      }
      for (size_t r = 0; r < many; ++r) inside[member[r]] = std::exp(picked[r] - tops[r]) / sums[r];
    });
    for (size_t r = 0; r < rows; ++r) prob[r] = share[r] * inside[r];
  }

  Linear head_;
  std::vector<Tail> tails_;
  std::vector<int64_t> cutoffs_;
};

}  // namespace

void bind_network(nb::module_& m) {
  nb::class_<Linear>(m, "Linear", "A matrix whose products do not depend on how many rows there are.")
      .def("__init__", [](Linear* self, nb::handle weight) { new (self) Linear(linear_of(weight, "weights")); },
           nb::arg("weight"))
      .def("multiply", &linear_multiply, nb::arg("rows"));
  nb::class_<Cell>(m, "Cell", "An LSTM, GRU or Elman cell, frozen.")
      .def(nb::init<const std::string&, nb::handle, nb::handle, nb::handle, nb::handle>(), nb::arg("kind"),
           nb::arg("input"), nb::arg("inner"), nb::arg("input_bias"), nb::arg("inner_bias"))
      .def("advance", &Cell::advance, nb::arg("vectors"), nb::arg("place"), nb::arg("lengths"), nb::arg("state"));
  nb::class_<AdaptiveSoftmax>(m, "AdaptiveSoftmax", "An adaptive softmax, frozen.")
      .def(nb::init<nb::handle, const std::vector<nb::object>&, const std::vector<int64_t>&>(), nb::arg("head"),
           nb::arg("tails"), nb::arg("cutoffs"))
      .def("score", &AdaptiveSoftmax::score, nb::arg("states"), nb::arg("words"), nb::arg("odds") = false)
      .def("dense", &AdaptiveSoftmax::dense, nb::arg("states"));
}

}  // namespace unbounded
