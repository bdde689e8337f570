#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "ngram.h"

namespace unbounded {
namespace {

using Words = Array<const int64_t, 1>;

void require_words(const Words& words) {
  for (size_t t = 0; t < words.size(); ++t)
    if (words[t] < 0 || words[t] > INT32_MAX)
      require(false, "word number " + std::to_string(words[t]) + "; it must be from 0 to 2147483647");
}

// What Python keeps of a tree: heads, nodes, counts, contexts, learned, and how many nodes and rows
// of counts are in use.
using Tables = std::tuple<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, int64_t, int64_t>;

struct View {
  explicit View(const Tables& tables)
      : heads(std::get<0>(tables), "heads"),
        nodes(std::get<1>(tables), "nodes"),
        counts(std::get<2>(tables), "counts"),
        contexts(std::get<3>(tables), "contexts"),
        learned(std::get<4>(tables), "learned"),
        tree{heads.data(), reinterpret_cast<Node*>(nodes.data()),
             reinterpret_cast<Counts*>(counts.data()), std::get<5>(tables), std::get<6>(tables),
             reinterpret_cast<double(*)[3]>(learned.data()), contexts.data()} {
    const int64_t used = tree.used, rows = tree.rows;
    require(nodes.size(1) == 4 && counts.size(1) == 4, "nodes and counts must have 4 columns");
    require(used > 0 && size_t(used) <= heads.size() && size_t(used) <= nodes.size(),
            std::to_string(used) + " nodes in use; at least 1 and at most those there are");
    require(rows > 0 && size_t(rows) <= counts.size(),
            std::to_string(rows) + " rows of counts in use; at least 1 and at most those there are");
    require(learned.size(0) == size_t(kOrders * kTotals * kRepeats) && learned.size(1) == 3,
            "learned must have 750 rows of 3");
    require(contexts.size() == kOrders && contexts[0] == 0, "contexts must be 5, the first of them 0");
    for (int order = 1; order < kOrders; ++order)
      require(contexts[order] == kNowhere || (contexts[order] > 0 && contexts[order] < used),
              "context " + std::to_string(contexts[order]) + " is no node");
  }

  Array<int32_t, 1> heads;
  Array<int32_t, 2> nodes, counts;
  Array<int64_t, 1> contexts;
  Array<double, 2> learned;
  Tree tree;
};

}  // namespace

void bind_ngram(nb::module_& m) {
  m.def("ngram_chain", [](nb::handle nodes_) {
    Array<int32_t, 2> nodes(nodes_, "nodes");
    require(nodes.size(1) == 4 && nodes.size() > 0, "nodes must be rows of 4, at least one");
    auto heads = new_array<int32_t, 1>({nodes.size()});
    Tree tree{heads.data(), reinterpret_cast<Node*>(nodes.data()), nullptr,
              int64_t(nodes.size()), 0, nullptr, nullptr};
    nb::gil_scoped_release free;
    tree.chain_all();
    return heads;
  });
  m.def("ngram_check", [](nb::handle heads_, nb::handle nodes_, nb::handle counts_) {
    Array<const int32_t, 1> heads(heads_, "heads");
    Array<const int32_t, 2> nodes(nodes_, "nodes"), counts(counts_, "counts");
    require(nodes.size(1) == 4 && counts.size(1) == 4 && nodes.size() == heads.size() &&
                nodes.size() > 0 && counts.size() > 0,
            "nodes and counts must be rows of 4, with a head for each node");
    nb::gil_scoped_release free;
    const auto all = int64_t(nodes.size()), rows = int64_t(counts.size());
    // No two point at the same node, so that no chain runs in a circle.
    std::vector<bool> pointed_at(all);
    const auto points_well = [&](int64_t node) {
      if (node < 0 || node >= all || pointed_at[node]) return false;
      return node == 0 || (pointed_at[node] = true);
    };
    for (int64_t i = 0; i < all; ++i) {
      const int32_t* node = nodes.row(i);
      if (!points_well(heads[i]) || !points_well(node[2]) || node[0] < 0 || node[0] >= all ||
          node[1] < 0 || kNone - 1 - int64_t(node[3]) >= rows)
        require(false, "node " + std::to_string(i) + " points outside of its tree; the state is damaged");
    }
    for (int64_t i = 0; i < rows; ++i)
      if (counts.row(i)[1] < counts.row(i)[2] || counts.row(i)[2] < 0)
        require(false, "row " + std::to_string(i) + " of counts has followers that were not counted; the state is damaged");
  });
  m.def("ngram_weigh", [](const Tables& tables) {
    View view(tables);
    auto said = new_array<double, 2>({kOrders, 6});
    view.tree.weigh(reinterpret_cast<Said*>(said.data()));
    return said;
  });
  m.def("ngram_ask", [](nb::handle words_, int64_t size, const Tables& tables, nb::handle said_) {
    Words words(words_, "words");
    View view(tables);
    Array<const double, 2> said(said_, "said");
    require(said.size() == kOrders && said.size(1) == 6, "said must be 5 rows of 6");
    for (int order = 0; order < kOrders; ++order)
      require(said.row(order)[3] == 0.0 || view.contexts[order] != kNowhere, "said is of other contexts");
    require_words(words);
    auto probs = new_array<double, 1>({words.size()});
    nb::gil_scoped_release free;
    view.tree.ask(words.data(), int64_t(words.size()), size,
                  reinterpret_cast<const Said*>(said.data()), probs.data());
    return probs;
  });
  m.def("ngram_walk", [](nb::handle words_, int64_t size, const Tables& tables) {
    Words words(words_, "words");
    View view(tables);
    require_words(words);
    auto probs = new_array<double, 1>({words.size()});
    nb::gil_scoped_release free;
    view.tree.walk(words.data(), int64_t(words.size()), size, probs.data());
    return probs;
  });
  m.def("ngram_read", [](nb::handle words_, int64_t size, const Tables& tables, nb::handle probs_) {
    Words words(words_, "words");
    Array<double, 1> probs(probs_, "probs");
    View view(tables);
    const size_t more = kOrders * words.size();
    require(probs.size() == words.size(), "probs must be as many as words");
    require(view.tree.used + more <= std::min(view.nodes.size(), view.heads.size()) &&
                view.tree.rows + 2 * more <= view.counts.size(),
            "no room for " + std::to_string(more) + " nodes more; reserve it");
    require_words(words);
    nb::gil_scoped_release free;
    view.tree.read(words.data(), int64_t(words.size()), size, probs.data());
    return std::pair(view.tree.used, view.tree.rows);
  });
}

}  // namespace unbounded
