#include <nanobind/stl/tuple.h>

#include <memory>

#include "arrays.h"
#include "mixture.h"

namespace unbounded {
namespace {

const MixtureKernels& kernels() { return FOR_ISA(mixture); }

// Room on a line of memory.
template <class T>
class Room {
 public:
  explicit Room(int64_t size) : data_(new (std::align_val_t(64)) T[size]) {}
  ~Room() { operator delete[](data_, std::align_val_t(64)); }
  Room(const Room&) = delete;
  T* data() const { return data_; }

 private:
  T* data_;
};

using Table = Array<const double, 2>;
using Context = Array<const float, 2>;

void require_probs(const Table& table) {
  for (size_t at = 0; at < table.size() * table.size(1); ++at)
    if (!(table[at] >= 0.0 && table[at] <= 1e300))
      require(false, "probability " + std::to_string(table[at]) + "; it must be a number and not negative");
}

// What Python keeps of a gate: scale, seen, moments, own, tilt, squares.
using Arrays = std::tuple<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>;

struct View {
  explicit View(const Arrays& arrays)
      : scale(std::get<0>(arrays), "scale"),
        seen(std::get<1>(arrays), "seen"),
        moments(std::get<2>(arrays), "moments"),
        own(std::get<3>(arrays), "own"),
        tilt(std::get<4>(arrays), "tilt"),
        squares(std::get<5>(arrays), "squares") {
    const size_t experts = tilt.size(0), signals = scale.size();
    require(experts > 0 && own.size() == 3 * experts + 1 && own.size() <= signals &&
                seen.size() == 1 && moments.size(0) == 2 && moments.size(1) == signals &&
                tilt.size(1) == signals && squares.size(0) == experts && squares.size(1) == signals,
            "a gate's arrays are not of as many experts and signals");
    gate = {int64_t(experts), int64_t(own.size()), int64_t(signals), scale.data(), seen.data(),
            moments.data(),   own.data(),          tilt.data(),      squares.data()};
  }

  // Refuses rows that are not of this gate's experts and signals.
  void require_rows(const Context& context, const Table& plain) const {
    require(context.size() == plain.size() && plain.size(1) == tilt.size(0) &&
                context.size(1) == scale.size() - own.size(),
            "rows of context and weights are not those of the gate");
  }

  Array<const double, 1> scale;
  Array<int64_t, 1> seen;
  Array<double, 2> moments;
  Array<double, 1> own;
  Array<float, 2> tilt, squares;
  Gate gate;
};

}  // namespace

void bind_mixture(nb::module_& m) {
  m.def("mixture_online", [](nb::handle table_, nb::handle by_rate_, nb::handle trust_) {
    Table table(table_, "table");
    Array<double, 2> by_rate(by_rate_, "by_rate");
    Array<double, 1> trust(trust_, "trust");
    require(by_rate.size() == kRates && trust.size() == kRates && by_rate.size(1) == table.size(1) &&
                table.size(1) > 0,
            "by_rate and trust must have 11 rows, and as many columns as the table, at least one");
    require_probs(table);
    auto prob = new_array<double, 1>({table.size()});
    auto weights = new_array<double, 2>({table.size(), table.size(1)});
    const auto experts = int64_t(table.size(1));
    int64_t learned;
    {
      nb::gil_scoped_release free;
      Room<double> room(experts * kRateLanes);
      learned = kernels().online(table.data(), int64_t(table.size()), experts, by_rate.data(),
                                 trust.data(), prob.data(), weights.data(), room.data());
    }
    return std::tuple(prob, weights, learned);
  });
  m.def("mixture_gate", [](nb::handle table_, nb::handle context_, nb::handle plain_,
                           const Arrays& arrays) {
    Table table(table_, "table"), plain(plain_, "plain");
    Context context(context_, "context");
    View view(arrays);
    view.require_rows(context, plain);
    require(table.size() == plain.size() && table.size(1) == plain.size(1),
            "a table and weights that are not of the same rows and experts");
    require_probs(table);
    auto prob = new_array<double, 1>({table.size()});
    auto weights = new_array<double, 2>({table.size(), table.size(1)});
    {
      nb::gil_scoped_release free;
      Room<float> room(gate_room(view.gate.experts, view.gate.signals));
      kernels().gate(view.gate, table.data(), context.data(), plain.data(), int64_t(table.size()),
                     prob.data(), weights.data(), room.data());
    }
    return std::tuple(prob, weights);
  });
  m.def("mixture_weigh", [](nb::handle context_, nb::handle plain_, const Arrays& arrays) {
    Table plain(plain_, "plain");
    Context context(context_, "context");
    View view(arrays);
    view.require_rows(context, plain);
    require(plain.size() == 1, "one row is weighed at a time");
    auto weights = new_array<double, 1>({plain.size(1)});
    Room<float> room(gate_room(view.gate.experts, view.gate.signals));
    kernels().weigh(view.gate, context.data(), plain.data(), weights.data(), room.data());
    return weights;
  });
}

}  // namespace unbounded
