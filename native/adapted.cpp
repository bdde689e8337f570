// The first softmax of a frozen output layer plus a change that learns: a step of Adagrad every so
// many words.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "network.h"
#include "threads.h"

namespace unbounded {
namespace {

constexpr size_t ROWS = 4, COLUMNS = 512, ELEMENTS = 1 << 14;  // that one thread takes at a time

// What each row's column has once the odds are moved by the change, as a share of all; a row of
// column -1 is a word that the network does not know. With `every`, learns them too: the slope is
// added up row by row, and after every so many rows a step is taken. `waiting` is how many have
// come since the last one, and is handed back.
std::tuple<nb::ndarray<nb::numpy, double>, size_t> adapted_shares(
    nb::handle odd_rows, nb::handle columns_of, nb::handle signal_rows, nb::handle changes, nb::handle squares,
    nb::handle slopes, size_t waiting, size_t every, float rate, float calm) {
  const Array<const float, 2> odds(odd_rows, "odds"), signals(signal_rows, "signals");
  const Array<const int64_t, 1> column(columns_of, "columns");
  const Array<float, 2> change(changes, "change"), sums(squares, "sums"), slope(slopes, "slope");
  const size_t rows = odds.size(0), columns = odds.size(1), directions = signals.size(1);
  auto fits = [&](const Array<float, 2>& a) { return a.size(0) == directions && a.size(1) == columns; };
  require(signals.size(0) == rows && column.size() == rows && fits(change) && fits(sums) && fits(slope),
          "odds, signals and change do not fit together");
  require(every == 0 || waiting < every, std::to_string(waiting) + " rows wait for a step that comes every " +
                                             std::to_string(every));
  for (size_t r = 0; r < rows; ++r)
    require(column[r] >= -1 && column[r] < int64_t(columns),
            "column " + std::to_string(column[r]) + " is none of " + std::to_string(columns));
  auto shares = new_array<double, 1>({rows});
  nb::gil_scoped_release release;
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
            kernels.move(odds.row(r), signals.row(r), change.data(), directions, columns, row);
        shares.data()[r] = double(row[column[r]]) / double(total);
        // What came is certain: with the total taken off, a row over the total is its error.
        row[column[r]] -= total;
        for (size_t d = 0; d < directions; ++d) scaled[i * directions + d] = signals.row(r)[d] / total;
      }
    });
    if (every) {
      in_parallel(columns, COLUMNS, [&](size_t first, size_t last) {
        kernels.learn(moved.data(), scaled.data(), known.size(), directions, columns, first, last, slope.data());
      });
      waiting += stop - start;
      if (waiting == every) {
        in_parallel(directions * columns, ELEMENTS, [&](size_t first, size_t last) {
          kernels.adagrad(change.data(), sums.data(), slope.data(), first, last, 1.0f / float(every), rate, calm);
        });
        waiting = 0;
      }
    }
    start = stop;
  }
  return {shares, waiting};
}

}  // namespace

void bind_adapted(nb::module_& m) {
  m.def("adapted_shares", &adapted_shares, nb::arg("odds"), nb::arg("columns"), nb::arg("signals"),
        nb::arg("change"), nb::arg("sums"), nb::arg("slope"), nb::arg("waiting"), nb::arg("every"),
        nb::arg("rate"), nb::arg("calm"),
        "Each row's share under odds that a change has moved; with `every`, the change learns.");
}

}  // namespace unbounded
