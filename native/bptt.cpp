// Backpropagation through an LSTM over one stream: the chain from state to state.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "network.h"

namespace unbounded {
namespace {

using Numpy = nb::ndarray<nb::numpy, float>;

Numpy lstm_backward(nb::handle gate_rows, nb::handle cell_before, nb::handle slope_rows, nb::handle recurrent) {
  const Array<const float, 2> gates(gate_rows, "gates"), slope(slope_rows, "slope"), inner(recurrent, "weights");
  const Array<const float, 1> before(cell_before, "cell");
  const size_t steps = slope.size(0), units = slope.size(1);
  require(gates.size(0) == steps && gates.size(1) == 4 * units && before.size() == units &&
              inner.size(0) == 4 * units && inner.size(1) == units,
          "the arrays are not those of one LSTM");
  auto slopes = new_array<float, 2>({steps, 4 * units});
  nb::gil_scoped_release release;
  std::vector<float> cells((steps + 1) * units);
  std::copy_n(before.data(), units, cells.data());
  network_kernels().lstm_backward(gates.data(), cells.data(), slope.data(), inner.data(), steps, units,
                                  slopes.data());
  return slopes;
}

}  // namespace

void bind_bptt(nb::module_& m) {
  m.def("lstm_backward", &lstm_backward, nb::arg("gates"), nb::arg("cell"), nb::arg("slope"), nb::arg("inner"),
        "The slope of every gate before its squashing.");
}

}  // namespace unbounded
