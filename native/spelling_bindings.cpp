#include <nanobind/stl/tuple.h>

#include <bit>
#include <cstring>

#include "arrays.h"
#include "spelling.h"

namespace unbounded {
namespace {

// What Python keeps of a character model: slots, counters, weights.
using Tables = std::tuple<nb::handle, nb::handle, nb::handle>;

struct View {
  View(const Tables& tables, int bits)
      : slots(std::get<0>(tables), "slots"),
        counters(std::get<1>(tables), "counters"),
        weights(std::get<2>(tables), "weights"),
        speller{slots.data(), slots.size(), counters.data(),
                reinterpret_cast<float(*)[kSpellingContexts][kSpellingClasses]>(weights.data()), bits} {
    require(bits >= 1 && bits <= 8, std::to_string(bits) + " bits a symbol; from 1 to 8");
    require(counters.size() == 2 && weights.size(0) == size_t(kSpellingOrders + 2 + bits) &&
                weights.size(1) == kSpellingContexts && weights.size(2) == kSpellingClasses,
            "counters must be 2, and weights for each context and bit");
    // A search ends at an empty slot.
    require(std::has_single_bit(slots.size()) && counters[0] >= 0 && size_t(counters[0]) < slots.size(),
            "slots must be a power of two, more than are counted as used");
  }

  Array<uint64_t, 1> slots;
  Array<int64_t, 1> counters;
  Array<float, 3> weights;
  Speller speller;
};

// Bytes of all words, where each begins and ends, and before which bytes a word cannot end.
struct Words {
  Words(nb::handle symbols_, nb::handle starts_, nb::handle shut_, int bits)
      : symbols(symbols_, "symbols"), starts(starts_, "starts"), shut(shut_, "shut") {
    require(shut.size() == symbols.size(), "shut must be as long as symbols");
    require(starts.size() > 0 && starts[0] == 0 && size_t(starts[starts.size() - 1]) == symbols.size(),
            "starts must begin with 0 and end with the number of symbols");
    for (size_t i = 1; i < starts.size(); ++i)
      if (starts[i] < starts[i - 1]) require(false, "starts must not decrease");
    for (size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i] >> bits) require(false, "a symbol of more than " + std::to_string(bits) + " bits");
  }

  size_t size() const { return starts.size() - 1; }
  int64_t length(size_t i) const { return starts[i + 1] - starts[i]; }
  double spell(Speller& speller, size_t i, bool learn) const {
    return speller.spell(symbols.data() + starts[i], shut.data() + starts[i], length(i), learn);
  }

  Array<const uint8_t, 1> symbols;
  Array<const int64_t, 1> starts;
  Array<const bool, 1> shut;
};

}  // namespace

void bind_spelling(nb::module_& m) {
  m.def("spelling_ask", [](nb::handle symbols, nb::handle starts, nb::handle shut,
                           const Tables& tables, int bits) {
    View view(tables, bits);
    const Words words(symbols, starts, shut, bits);
    auto logprobs = new_array<double, 1>({words.size()});
    nb::gil_scoped_release free;
    for (size_t i = 0; i < words.size(); ++i) logprobs.data()[i] = words.spell(view.speller, i, false);
    return logprobs;
  });
  m.def("spelling_read", [](nb::handle symbols, nb::handle starts, nb::handle shut, nb::handle news_,
                            const Tables& tables, int bits, bool ask) {
    View view(tables, bits);
    const Words words(symbols, starts, shut, bits);
    Array<const bool, 1> news(news_, "new");
    require(news.size() == words.size(), "new must be as many as words");
    auto logprobs = new_array<double, 1>({ask ? words.size() : 0});
    nb::object slots = nb::borrow(std::get<0>(tables));
    Speller& speller = view.speller;
    for (size_t i = 0; i < words.size();) {
      // The table grows before the word that needs it, wherever a block begins: at most half full.
      const auto needed = uint64_t(2 * (speller.counters[0] + speller.places(words.length(i))));
      if (news[i] && needed > speller.size) {
        uint64_t size = std::bit_ceil(needed);
        // Numpy's own: what nanobind makes of 64-bit integers has another of numpy's types for them.
        nb::object grown = nb::module_::import_("numpy").attr("zeros")(size, "uint64");
        const Array<uint64_t, 1> room(grown, "grown");
        move_slots(speller.slots, speller.size, room.data(), size);
        speller.slots = room.data(), speller.size = size;
        slots = std::move(grown);
      }
      nb::gil_scoped_release free;
      do {
        if (ask) logprobs.data()[i] = words.spell(speller, i, false);
        if (news[i]) {
          words.spell(speller, i, true);
          speller.counters[1] += 1;
        }
        ++i;
      } while (i < words.size() && !news[i]);
    }
    return std::tuple(slots, logprobs);
  }, nb::arg("symbols"), nb::arg("starts"), nb::arg("shut"), nb::arg("new"), nb::arg("tables"),
     nb::arg("bits"), nb::arg("ask"));
}

}  // namespace unbounded
