// The frozen network, its adapted output layer and vectors of OOV words for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.h"
#include "dynamic_head.h"
#include "network.h"
#include "oov.h"

namespace unbounded {
namespace {

using std::to_string;
using States = Arg<"states", const float, 2>;
using Features = Arg<"features", const int64_t, 1>;
using Ends = Arg<"ends", const int64_t, 1>;

Linear linear_of(const Array<const float, 2>& weight) {
  require(weight.size(0) && weight.size(1), "weights are empty");
  return Linear(weight.data(), weight.size(0), weight.size(1));
}

void require_width(size_t found, size_t needed, const std::string& name) {
  require(found == needed, name + " are " + to_string(found) + " wide; the weights take " + to_string(needed));
}

void require_lengths(const Array<const int64_t, 1>& lengths, size_t all, const char* otherwise) {
  for (size_t i = 0; i < lengths.size(); all -= lengths[i++])
    require(lengths[i] >= 0 && size_t(lengths[i]) <= all, otherwise);
  require(all == 0, otherwise);
}

Numpy<float> multiply(const Linear& linear, const Arg<"rows", const float, 2>& x) {
  require_width(x.size(1), linear.in(), "rows");
  auto y = new_array<float>({x.size(0), linear.out()});
  nb::gil_scoped_release release;
  linear.multiply(x.data(), x.size(0), y.data());
  return y;
}

void new_cell(Cell* self, const std::string& name, const Arg<"input", const float, 2>& input,
              const Arg<"inner", const float, 2>& inner, const Arg<"input_bias", const float, 1>& input_bias,
              const Arg<"inner_bias", const float, 1>& inner_bias) {
  require(name == "lstm" || name == "gru" || name == "elman", "cell '" + name + "' is unknown; use lstm, gru or elman");
  const Kind kind = name == "lstm" ? Kind::lstm : name == "gru" ? Kind::gru : Kind::elman;
  const size_t units = inner.size(1), rows = Cell::gates_of(kind) * units;
  require(units && input.size(1) && input.size(0) == rows && inner.size(0) == rows && input_bias.size() == rows &&
              inner_bias.size() == rows,
          "the weights are not those of one cell: " + to_string(rows) + " rows are needed in each");
  new (self) Cell(kind, units, input.size(1), input.data(), inner.data(), input_bias.data(), inner_bias.data());
}

Numpy<float> advance(const Cell& cell, const Arg<"vectors", const float, 2>& vectors,
                     const Arg<"place", const int64_t, 1>& place, const Arg<"lengths", const int64_t, 1>& lengths,
                     const Arg<"state", float, 3>& state) {
  require_width(vectors.size(1), cell.in(), "vectors");
  for (size_t i = 0; i < place.size(); ++i)
    if (place[i] < 0 || size_t(place[i]) >= vectors.size(0))
      require(false, "place " + to_string(place[i]) + " is none of " + to_string(vectors.size(0)) + " vectors");
  require_lengths(lengths, place.size(), "lengths are not those of the words");
  require(state.size(0) == cell.parts() && state.size(1) == lengths.size() && state.size(2) == cell.units(),
          "state is not one of this cell: parts, streams, units");
  auto hidden = new_array<float>({place.size(), cell.units()});
  nb::gil_scoped_release release;
  cell.advance(vectors.data(), vectors.size(0), place.data(), lengths.data(), lengths.size(), state.data(),
               hidden.data());
  return hidden;
}

AdaptiveSoftmax new_softmax(const Arg<"head", const float, 2>& head, const std::vector<nb::object>& tails,
                            const std::vector<int64_t>& cutoffs) {
  require(cutoffs.size() == tails.size() / 2 + 1 && tails.size() % 2 == 0 && cutoffs[0] >= 1 &&
              std::is_sorted(cutoffs.begin(), cutoffs.end()) &&
              head.size(0) == size_t(cutoffs[0]) + cutoffs.size() - 1,
          "the weights are not those of an adaptive softmax with these cutoffs");
  std::vector<AdaptiveSoftmax::Cluster> clusters;
  for (size_t i = 0; i < tails.size(); i += 2) {
    clusters.push_back({linear_of({tails[i], "tails"}), linear_of({tails[i + 1], "tails"})});
    const auto& [narrow, wide] = clusters.back();
    require(narrow.in() == head.size(1) && wide.in() == narrow.out() &&
                int64_t(wide.out()) == cutoffs[i / 2 + 1] - cutoffs[i / 2],
            "cluster " + to_string(i / 2) + " does not fit its cutoffs");
  }
  return AdaptiveSoftmax(linear_of(head), std::move(clusters), cutoffs);
}

void require_rows(size_t words, size_t states) {
  require(words == states, to_string(words) + " words for " + to_string(states) + " states; give one each");
}

nb::tuple score(const AdaptiveSoftmax& softmax, const States& hidden, const Arg<"words", const int64_t, 1>& words,
                bool with_odds) {
  require_width(hidden.size(1), softmax.in(), "states");
  const size_t rows = words.size();
  require_rows(rows, hidden.size(0));
  auto prob = new_array<double>({rows}), share = new_array<double>({rows});
  auto column = new_array<int64_t>({rows});
  auto odds = new_array<float>({with_odds ? rows : 0, softmax.columns()});
  {
    nb::gil_scoped_release release;
    softmax.score(hidden.data(), rows, words.data(), prob.data(), share.data(), column.data(),
                  with_odds ? odds.data() : nullptr);
  }
  return nb::make_tuple(prob, share, column, odds);
}

Numpy<double> dense(const AdaptiveSoftmax& softmax, const States& hidden) {
  require_width(hidden.size(1), softmax.in(), "states");
  auto out = new_array<double>({hidden.size(0), softmax.size()});
  nb::gil_scoped_release release;
  softmax.dense(hidden.data(), hidden.size(0), out.data());
  return out;
}

Numpy<float> adapt(const DynamicHead& head, const States& hidden) {
  require_width(hidden.size(1), head.softmax().in(), "states");
  auto x = new_array<float>({hidden.size(0), hidden.size(1)});
  nb::gil_scoped_release release;
  head.adapt(hidden.data(), hidden.size(0), x.data());
  return x;
}

Numpy<double> learn(DynamicHead& head, const States& hidden, const Arg<"words", const int64_t, 1>& words, size_t segment,
                    float rate, float adapter, float calm) {
  require_width(hidden.size(1), head.softmax().in(), "states");
  require_rows(words.size(), hidden.size(0));
  require(segment > 0 && words.size() > 0, "no words to learn from");
  auto prob = new_array<double>({words.size()});
  nb::gil_scoped_release release;
  for (size_t at = 0; at < words.size(); at += segment)
    head.learn(hidden.data() + at * hidden.size(1), std::min(segment, words.size() - at), words.data() + at,
               {rate, adapter, calm}, prob.data() + at);
  return prob;
}

// Weights and sums of each layer.
std::vector<std::pair<Numpy<float>, Numpy<float>>> layers(const DynamicHead& head) {
  std::vector<std::pair<Numpy<float>, Numpy<float>>> all;
  for (size_t i = 0; i < head.layers(); ++i) {
    const Linear& layer = head.layer(i);
    auto weight = new_array<float>({layer.out(), layer.in()}), sums = new_array<float>({layer.out()});
    layer.unpack(weight.data());
    std::copy_n(head.sums(i).data(), layer.out(), sums.data());
    all.emplace_back(weight, sums);
  }
  return all;
}

void load(DynamicHead& head, size_t i, const Arg<"weight", const float, 2>& weight,
          const Arg<"sums", const float, 1>& sums) {
  require(i < head.layers() && weight.size(0) == head.layer(i).out() && weight.size(1) == head.layer(i).in() &&
              sums.size() == weight.size(0),
          "the arrays are not those of layer " + to_string(i));
  head.load(i, weight.data(), sums.data());
}

std::pair<Numpy<double>, size_t> adapted_shares(
    const Arg<"odds", const float, 2>& odds, const Arg<"columns", const int64_t, 1>& column,
    const Arg<"signals", const float, 2>& signals, const Arg<"change", float, 2>& change,
    const Arg<"sums", float, 2>& sums, const Arg<"slope", float, 2>& slope, size_t waiting, size_t every, float rate,
    float calm) {
  const size_t rows = odds.size(0), columns = odds.size(1), directions = signals.size(1);
  require(signals.size(0) == rows && column.size() == rows && change.size(0) == directions &&
              change.size(1) == columns && sums.shape() == change.shape() && slope.shape() == change.shape(),
          "odds, signals and change do not fit together");
  require(every == 0 || waiting < every,
          to_string(waiting) + " rows wait for a step that comes every " + to_string(every));
  for (size_t r = 0; r < rows; ++r)
    if (column[r] < -1 || column[r] >= int64_t(columns))
      require(false, "column " + to_string(column[r]) + " is none of " + to_string(columns));
  auto shares = new_array<double>({rows});
  nb::gil_scoped_release release;
  const AdaptedHead head{directions, columns, change.data(), sums.data(), slope.data()};
  waiting = head.score(odds.data(), column.data(), signals.data(), rows, waiting, every, rate, calm, shares.data());
  return {std::move(shares), waiting};
}

Numpy<float> lstm_backward(const Arg<"gates", const float, 2>& gates, const Arg<"cell", const float, 1>& before,
                           const Arg<"slope", const float, 2>& slope, const Arg<"inner", const float, 2>& inner) {
  const size_t steps = slope.size(0), units = slope.size(1);
  require(gates.size(0) == steps && gates.size(1) == 4 * units && before.size() == units &&
              inner.size(0) == 4 * units && inner.size(1) == units,
          "the arrays are not those of one LSTM");
  auto slopes = new_array<float>({steps, 4 * units});
  nb::gil_scoped_release release;
  std::vector<float> cells((steps + 1) * units);
  std::copy_n(before.data(), units, cells.data());
  network_kernels().lstm_backward(gates.data(), cells.data(), slope.data(), inner.data(), steps, units, slopes.data());
  return slopes;
}

nb::tuple features(const Arg<"letters", const uint32_t, 1>& letters, const Arg<"lengths", const int64_t, 1>& lengths,
                   int64_t size) {
  require_lengths(lengths, letters.size(), "lengths that are not those of all letters");
  require(size > 0, "no features for the words to have");
  std::vector<int64_t> found, ends;
  {
    nb::gil_scoped_release release;
    const uint32_t* word = letters.data();
    for (size_t i = 0; i < lengths.size(); word += lengths[i++]) {
      oov_features(word, lengths[i], uint64_t(size), found);
      ends.push_back(int64_t(found.size()));
    }
  }
  return nb::make_tuple(copied(found), copied(ends));
}

// The features of words, each of `size`.
OovWords words_of(const Features& features, const Ends& ends, size_t size) {
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); begin = ends[i++]) require(ends[i] > begin, "a word without features");
  require(size_t(begin) == features.size(), "ends must end with the number of features");
  for (size_t i = 0; i < features.size(); ++i)
    if (features[i] < 0 || size_t(features[i]) >= size)
      require(false, "feature " + to_string(features[i]) + " of " + to_string(size));
  return {features.data(), ends.data(), ends.size()};
}

void add_up(const Features& features, const Ends& ends, const Arg<"weights", const double, 1>& weights,
            const Arg<"apart", const double, 2>& apart, const Arg<"squares", double, 2>& squares,
            const Arg<"products", double, 2>& products) {
  const OovWords words = words_of(features, ends, squares.size());
  require(squares.size(1) == squares.size() && products.size() == squares.size() &&
              products.size(1) == apart.size(1) && apart.size() == words.count && weights.size() == words.count,
          "words, weights, vectors and sums do not fit together");
  nb::gil_scoped_release release;
  words.add_up(weights.data(), apart.data(), squares.size(), apart.size(1), squares.data(), products.data());
}

void look_up(const Features& features, const Ends& ends, const Arg<"weights", const float, 2>& weights,
             const Arg<"out", float, 2>& out) {
  const OovWords words = words_of(features, ends, weights.size());
  require(out.size() == words.count && out.size(1) == weights.size(1),
          "rows of vectors that are not those of the words");
  nb::gil_scoped_release release;
  words.look_up(weights.data(), out.size(1), out.data());
}

}  // namespace

void bind_network(nb::module_& m) {
  nb::class_<Linear>(m, "Linear", "A matrix whose products do not depend on how many rows there are.")
      .def("__init__", [](Linear* self, const Arg<"weight", const float, 2>& w) { new (self) Linear(linear_of(w)); })
      .def("multiply", &multiply);
  nb::class_<Cell>(m, "Cell", "An LSTM, GRU or Elman cell, frozen.")
      .def("__init__", &new_cell)
      .def("advance", &advance);
  nb::class_<AdaptiveSoftmax>(m, "AdaptiveSoftmax", "An adaptive softmax, frozen.")
      .def("__init__", [](AdaptiveSoftmax* self, const Arg<"head", const float, 2>& head,
                          const std::vector<nb::object>& tails, const std::vector<int64_t>& cutoffs) {
        new (self) AdaptiveSoftmax(new_softmax(head, tails, cutoffs));
      })
      .def("score", &score, nb::arg("states"), nb::arg("words"), nb::arg("odds") = false)
      .def("dense", &dense);
  nb::class_<DynamicHead>(m, "DynamicHead", "An adaptive softmax that goes on training, over frozen states.")
      .def("__init__", [](DynamicHead* self, const Arg<"head", const float, 2>& head,
                          const std::vector<nb::object>& tails, const std::vector<int64_t>& cutoffs) {
        new (self) DynamicHead(new_softmax(head, tails, cutoffs));
      })
      .def("adapt", &adapt)
      .def_prop_ro("softmax", &DynamicHead::softmax, nb::rv_policy::reference_internal)
      .def("learn", &learn)
      .def("layers", &layers)
      .def("load", &load);
  m.def("adapted_shares", &adapted_shares);
  m.def("lstm_backward", &lstm_backward);
  m.def("oov_features", &features);
  m.def("oov_add_up", &add_up);
  m.def("oov_look_up", &look_up);
}

}  // namespace unbounded
