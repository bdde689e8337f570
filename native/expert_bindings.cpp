// N-grams, spelling and mixtures for Python, which keeps their tables: tuples of arrays.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <bit>

#include "arrays.h"
#include "growable.h"
#include "mixture.h"
#include "ngram.h"
#include "spelling.h"

namespace unbounded {
namespace {

using std::to_string;
using Words = Arg<"words", const int64_t, 1>;
using Nodes = Arg<"nodes", int32_t, 2>;
using Probs = Arg<"probs", double, 1>;

// N-grams: and how many nodes and rows of counts are in use.
using TreeTables = std::tuple<Arg<"heads", int32_t, 1>, Nodes, Arg<"counts", int32_t, 2>, Arg<"contexts", int64_t, 2>,
                              Arg<"learned", double, 2>, int64_t, int64_t>;

template <int V>
Tree<V> tree_of(const TreeTables& tables) {
  const auto& [heads, nodes, counts, contexts, learned, used, rows] = tables;
  require(counts.size(1) == 4, "counts must have 4 columns");
  require(used > 0 && size_t(used) <= heads.size() && size_t(used) <= nodes.size(),
          to_string(used) + " nodes in use; at least 1 and at most those there are");
  require(rows > 0 && size_t(rows) <= counts.size(),
          to_string(rows) + " rows of counts in use; at least 1 and at most those there are");
  require(learned.size() == Tree<V>::kAllKinds && learned.size(1) == 3,
          "learned must be " + to_string(Tree<V>::kAllKinds) + " rows of 3");
  require(contexts.shape() == std::array<size_t, 2>{V, kOrders}, "contexts must be 5 for each view");
  for (int view = 0; view < V; ++view)
    for (int order = 0; order < kOrders; ++order) {
      const int64_t context = contexts.row(view)[order];
      if (context == kNowhere && order > 0) continue;
      require(order > 0 ? context > 0 && context < used : context == 0, "context " + to_string(context) + " is no node");
      require(context == contexts.row(V - 1)[order] && nodes.row(context)[3 + view] != kAbsent,
              "context " + to_string(context) + " is not in its view");
    }
  return {heads.data(), reinterpret_cast<Node<V>*>(nodes.data()), reinterpret_cast<Counts*>(counts.data()), used, rows,
          reinterpret_cast<double(*)[3]>(learned.data()), reinterpret_cast<int64_t(*)[kOrders]>(contexts.data())};
}

// Call with a constant, the number of views that nodes have.
auto for_views(const Nodes& nodes, auto&& call) {
  require(nodes.size(1) == 4 || nodes.size(1) == 5, "nodes must have 4 columns, or 5 for two views");
  return nodes.size(1) == 4 ? call(std::integral_constant<int, 1>()) : call(std::integral_constant<int, 2>());
}

void require_words(const Words& words) {
  for (size_t t = 0; t < words.size(); ++t)
    if (words[t] < 0 || words[t] > INT32_MAX)
      require(false, "word number " + to_string(words[t]) + "; it must be from 0 to 2147483647");
}

Numpy<int32_t> ngram_chain(const Nodes& nodes) {
  // Only states of before, which have one view, come without chains.
  require(nodes.size(1) == 4 && nodes.size() > 0, "nodes must be rows of 4, at least one");
  auto heads = new_array<int32_t>({nodes.size()});
  Tree<1> tree{heads.data(), reinterpret_cast<Node<1>*>(nodes.data()), nullptr, int64_t(nodes.size()), 0, nullptr, nullptr};
  nb::gil_scoped_release release;
  tree.chain_all();
  return heads;
}

void ngram_check(const Arg<"heads", const int32_t, 1>& heads, const Nodes& nodes,
                 const Arg<"counts", const int32_t, 2>& counts) {
  require(nodes.size(1) >= 4 && nodes.size(1) <= 5 && counts.size(1) == 4 && nodes.size() == heads.size() &&
              nodes.size() > 0 && counts.size() > 0,
          "nodes must be rows of 4 or 5, counts of 4, with a head for each node");
  nb::gil_scoped_release release;
  const auto all = int64_t(nodes.size()), rows = int64_t(counts.size());
  const size_t longest = nodes.size(1) - 1;
  // No two point at the same node, so that no chain runs in a circle.
  std::vector<bool> pointed_at(all);
  const auto points_well = [&](int64_t node) {
    if (node < 0 || node >= all || pointed_at[node]) return false;
    return node == 0 || (pointed_at[node] = true);
  };
  for (int64_t i = 0; i < all; ++i) {
    const int32_t* node = nodes.row(i);
    bool well = points_well(heads[i]) && points_well(node[2]) && node[0] >= 0 && node[0] < all && node[1] >= 0;
    for (size_t view = 3; view <= longest; ++view)
      well &= kNone - 1 - int64_t(node[view]) < rows || (view < longest && node[view] == kAbsent);
    if (!well) require(false, "node " + to_string(i) + " points outside of its tree; the state is damaged");
  }
  for (int64_t i = 0; i < rows; ++i)
    if (counts.row(i)[1] < counts.row(i)[2] || counts.row(i)[2] < 0)
      require(false, "row " + to_string(i) + " of counts has followers that were not counted; the state is damaged");
}

Numpy<double> ngram_weigh(const TreeTables& tables) {
  return for_views(std::get<1>(tables), [&](auto views) {
    auto said = new_array<double>({kOrders, views, 6});
    tree_of<views>(tables).weigh(reinterpret_cast<Said(*)[views]>(said.data()));
    return said;
  });
}

Numpy<double> ngram_ask(const Words& words, int64_t size, const TreeTables& tables,
                        const Arg<"said", const double, 3>& said) {
  return for_views(std::get<1>(tables), [&](auto views) {
    const Tree tree = tree_of<views>(tables);
    require(said.shape() == std::array<size_t, 3>{kOrders, views, 6}, "said must be 5 rows of 6 for each view");
    for (int order = 0; order < kOrders; ++order)
      for (int view = 0; view < views; ++view)
        require(said.row(order)[6 * view + 3] == 0.0 || tree.contexts[view][order] != kNowhere,
                "said is of other contexts");
    require_words(words);
    auto probs = new_array<double>({words.size()});
    nb::gil_scoped_release release;
    tree.ask(words.data(), int64_t(words.size()), size, reinterpret_cast<const Said(*)[views]>(said.data()),
             probs.data());
    return probs;
  });
}

Numpy<double> ngram_walk(const Words& words, int64_t size, const TreeTables& tables) {
  return for_views(std::get<1>(tables), [&](auto views) {
    Tree tree = tree_of<views>(tables);
    require_words(words);
    auto probs = new_array<double>({words.size()});
    nb::gil_scoped_release release;
    tree.walk(words.data(), int64_t(words.size()), size, probs.data());
    return probs;
  });
}

std::pair<int64_t, int64_t> ngram_read(const Words& words, int64_t size, const TreeTables& tables, const Probs& probs) {
  const size_t more = (kOrders + 1) * words.size();
  const auto& [heads, nodes, counts, contexts, learned, used, rows] = tables;
  return for_views(nodes, [&](auto views) {
    Tree tree = tree_of<views>(tables);
    require(probs.size() == words.size(), "probs must be as many as words");
    require(used + more <= std::min(nodes.size(), heads.size()) && rows + 2 * views * more <= counts.size(),
            "no room for " + to_string(more) + " nodes more; reserve it");
    require_words(words);
    nb::gil_scoped_release release;
    tree.read(words.data(), int64_t(words.size()), size, probs.data());
    return std::pair{tree.used, tree.rows};
  });
}

using SpellerTables = std::tuple<Arg<"slots", uint64_t, 1>, Arg<"counters", int64_t, 1>, Arg<"weights", float, 3>>;
using Symbols = Arg<"symbols", const uint8_t, 1>;
using Starts = Arg<"starts", const int64_t, 1>;
using Shut = Arg<"shut", const bool, 1>;

Speller speller_of(const SpellerTables& tables, int bits) {
  const auto& [slots, counters, weights] = tables;
  require(bits >= 1 && bits <= 8, to_string(bits) + " bits a symbol; from 1 to 8");
  const bool first = weights.size(1) == kSpellingLasting;
  require(counters.size() == 2 && weights.size(0) == size_t(spelling_rows(bits, first)) &&
              (first || weights.size(1) == kSpellingContexts) && weights.size(2) == kSpellingClasses,
          "counters must be 2, and weights for each context and bit");
  // A search ends at an empty slot.
  require(std::has_single_bit(slots.size()) && counters[0] >= 0 && size_t(counters[0]) < slots.size(),
          "slots must be a power of two, more than are counted as used");
  return {slots.data(), slots.size(), counters.data(),
          reinterpret_cast<float(*)[kSpellingClasses]>(weights.data()), int(weights.size(1)), bits};
}

// Bytes of all words, where each begins and ends, and before which bytes a word cannot end.
struct Spelled {
  Spelled(const Symbols& symbols, const Starts& starts, const Shut& shut, int bits)
      : symbols(symbols), starts(starts), shut(shut) {
    require(shut.size() == symbols.size(), "shut must be as long as symbols");
    require(starts.size() > 0 && starts[0] == 0 && size_t(starts[starts.size() - 1]) == symbols.size(),
            "starts must begin with 0 and end with the number of symbols");
    for (size_t i = 1; i < starts.size(); ++i) require(starts[i] >= starts[i - 1], "starts must not decrease");
    for (size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i] >> bits) require(false, "a symbol of more than " + to_string(bits) + " bits");
  }

  size_t size() const { return starts.size() - 1; }
  int64_t length(size_t i) const { return starts[i + 1] - starts[i]; }
  double spell(Speller& speller, size_t i, bool learn) const {
    return speller.spell(symbols.data() + starts[i], shut.data() + starts[i], length(i), learn);
  }

  const Symbols& symbols;
  const Starts& starts;
  const Shut& shut;
};

Numpy<double> spelling_ask(const Symbols& symbols, const Starts& starts, const Shut& shut, const SpellerTables& tables,
                           int bits) {
  Speller speller = speller_of(tables, bits);
  const Spelled words(symbols, starts, shut, bits);
  auto logprobs = new_array<double>({words.size()});
  nb::gil_scoped_release release;
  for (size_t i = 0; i < words.size(); ++i) logprobs.data()[i] = words.spell(speller, i, false);
  return logprobs;
}

nb::tuple spelling_read(const Symbols& symbols, const Starts& starts, const Shut& shut,
                        const Arg<"new", const bool, 1>& news, nb::tuple arrays, int bits, bool ask) {
  Speller speller = speller_of(nb::cast<SpellerTables>(arrays), bits);
  const Spelled words(symbols, starts, shut, bits);
  require(news.size() == words.size(), "new must be as many as words");
  auto logprobs = new_array<double>({ask ? words.size() : 0});
  nb::object slots = arrays[0];
  for (size_t i = 0; i < words.size();) {
    // The table grows before the word that needs it, wherever a block begins: at most half full.
    const auto needed = uint64_t(2 * (speller.counters[0] + speller.places(words.length(i))));
    if (news[i] && needed > speller.size) {
      uint64_t size = std::bit_ceil(needed);
      auto grown = new_array<uint64_t>({size});
      move_slots(speller.slots, speller.size, grown.data(), size);
      speller.slots = grown.data(), speller.size = size;
      slots = std::move(grown);
    }
    nb::gil_scoped_release release;
    do {
      if (ask) logprobs.data()[i] = words.spell(speller, i, false);
      if (news[i]) {
        words.spell(speller, i, true);
        speller.counters[1] += 1;
      }
      ++i;
    } while (i < words.size() && !news[i]);
  }
  return nb::make_tuple(slots, logprobs);
}

using Table = Arg<"table", const double, 2>;
using Context = Arg<"context", const float, 2>;
using Plain = Arg<"plain", const double, 2>;
using GateTables = std::tuple<Arg<"scale", const double, 1>, Arg<"seen", int64_t, 1>, Arg<"moments", double, 2>,
                              Arg<"own", double, 1>, Arg<"tilt", float, 2>, Arg<"squares", float, 2>>;

void require_probs(const Table& table) {
  for (size_t at = 0; at < table.size() * table.size(1); ++at)
    if (!(table[at] >= 0.0 && table[at] <= 1e300))
      require(false, "probability " + to_string(table[at]) + "; it must be a number and not negative");
}

// The gate for rows of context and weights, which must be of its experts and signals.
Gate gate_of(const GateTables& tables, const Context& context, const Plain& plain) {
  const auto& [scale, seen, moments, own, tilt, squares] = tables;
  const size_t experts = tilt.size(0), signals = scale.size();
  require(experts > 0 && own.size() == 3 * experts + 1 && own.size() <= signals && seen.size() == 1 &&
              moments.size(0) == 2 && moments.size(1) == signals && tilt.size(1) == signals &&
              squares.shape() == tilt.shape(),
          "a gate's arrays are not of as many experts and signals");
  require(context.size() == plain.size() && plain.size(1) == experts && context.size(1) == signals - own.size(),
          "rows of context and weights are not those of the gate");
  return {int64_t(experts), int64_t(own.size()), int64_t(signals), scale.data(), seen.data(),
          moments.data(),   own.data(),          tilt.data(),      squares.data()};
}

nb::tuple mixture_online(const Table& table, const Arg<"by_rate", double, 2>& by_rate,
                         const Arg<"trust", double, 1>& trust) {
  const size_t rows = table.size(), experts = table.size(1);
  require(by_rate.size() == kRates && trust.size() == kRates && by_rate.size(1) == experts && experts > 0,
          "by_rate and trust must have 11 rows, and as many columns as the table, at least one");
  require_probs(table);
  auto prob = new_array<double>({rows}), weights = new_array<double>({rows, experts});
  int64_t learned;
  {
    nb::gil_scoped_release release;
    Aligned<double> room(experts * kRateLanes);
    learned = mixture_kernels().online(table.data(), int64_t(rows), int64_t(experts), by_rate.data(), trust.data(),
                                       prob.data(), weights.data(), room.data());
  }
  return nb::make_tuple(prob, weights, learned);
}

nb::tuple mixture_gate(const Table& table, const Context& context, const Plain& plain, const GateTables& tables) {
  const Gate gate = gate_of(tables, context, plain);
  require(table.shape() == plain.shape(), "a table and weights that are not of the same rows and experts");
  require_probs(table);
  auto prob = new_array<double>({table.size()}), weights = new_array<double>({table.size(), table.size(1)});
  {
    nb::gil_scoped_release release;
    Aligned<float> room(gate_room(gate.experts, gate.signals));
    mixture_kernels().gate(gate, table.data(), context.data(), plain.data(), int64_t(table.size()), prob.data(),
                           weights.data(), room.data());
  }
  return nb::make_tuple(prob, weights);
}

Numpy<double> mixture_weigh(const Context& context, const Plain& plain, const GateTables& tables) {
  const Gate gate = gate_of(tables, context, plain);
  require(plain.size() == 1, "one row is weighed at a time");
  auto weights = new_array<double>({plain.size(1)});
  Aligned<float> room(gate_room(gate.experts, gate.signals));
  mixture_kernels().weigh(gate, context.data(), plain.data(), weights.data(), room.data());
  return weights;
}

}  // namespace

void bind_experts(nb::module_& m) {
  m.def("ngram_chain", &ngram_chain);
  m.def("ngram_check", &ngram_check);
  m.def("ngram_weigh", &ngram_weigh);
  m.def("ngram_ask", &ngram_ask);
  m.def("ngram_walk", &ngram_walk);
  m.def("ngram_read", &ngram_read);
  m.def("spelling_ask", &spelling_ask);
  m.def("spelling_read", &spelling_read, nb::arg("symbols"), nb::arg("starts"), nb::arg("shut"), nb::arg("new"),
        nb::arg("tables"), nb::arg("bits"), nb::arg("ask"));
  m.def("mixture_online", &mixture_online);
  m.def("mixture_gate", &mixture_gate);
  m.def("mixture_weigh", &mixture_weigh);
}

}  // namespace unbounded
