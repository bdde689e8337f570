// unbounded._native: the only compiled code. Numpy arrays in and out, no Python object inside.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "isa.h"
#include "threads.h"

namespace nb = nanobind;

using namespace unbounded;

namespace unbounded {
void bind_datastore(nb::module_& m);
void bind_exact(nb::module_& m);
void bind_experts(nb::module_& m);
void bind_network(nb::module_& m);
}

NB_MODULE(_native, m) {
  // A model that lives as long as the interpreter is no leak.
  nb::set_leak_warnings(false);
  m.doc() = "The hot loops, in C++; every function has a plain definition it is tested against.";
  m.def("isa", [] { return std::string(isa_name(isa())); }, "The instruction set in use.");
  m.def(
      "isas",
      [] {
        std::vector<std::string> names;
        for (Isa each : supported_isas()) names.emplace_back(isa_name(each));
        return names;
      },
      "Every instruction set that can be used here, the best last.");
  m.def("set_isa", &set_isa, nb::arg("name"), "Use another instruction set, for tests.");
  m.def("set_threads", &set_threads, nb::arg("threads"), "How many threads one call may use.");
  m.def("stay_alone", &stay_alone, nb::arg("alone"), "Whether calls from this thread keep to it.");
  m.def("threads", &threads);
  bind_datastore(m);
  bind_exact(m);
  bind_experts(m);
  bind_network(m);
}
