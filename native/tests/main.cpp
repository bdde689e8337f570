// The datastore without Python: the same bits from every instruction set, under sanitizers and on
// other processors (`make sanitize`, `make arm`).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../exact.h"
#include "../isa.h"
#include "../lists.h"
#include "../search.h"
#include "../threads.h"

using namespace unbounded;

namespace {

// What all integer kernels found on the made-up stream below, on the first machine that ran it.
constexpr uint64_t kExpected = 13530271335262837415ull;

constexpr size_t kWidth = 40;

struct Random {
  uint64_t state = 88172645463325252ull;
  uint32_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<uint32_t>(state >> 32);
  }
  // Whole numbers over a power of two: the same floats everywhere.
  float value() { return (static_cast<float>(next() >> 16) - 32768.0f) / 32768.0f; }
};

uint64_t mix(uint64_t hash, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 1099511628211ull;
  return hash;
}

struct Result {
  uint64_t hash = 14695981039346656037ull;
  std::vector<double> shares;
};

Result run() {
  Random random;
  std::vector<float> mean(kWidth), axes(kWidth * kAxes, 0.0f), steps(kAxes, 0.0f);
  for (size_t i = 0; i < kWidth; ++i) axes[i * kAxes + i] = 1.0f, steps[i] = 0.25f;
  Lists lists(Quantizer(mean.data(), axes.data(), steps.data(), kWidth), {256, 8, 64, 1024});
  std::vector<int32_t> words;
  Result result;
  const Votes votes{true, 4.0f, 0.0f, 4};
  while (lists.entries() < 6000) {
    size_t n = static_cast<size_t>(std::min<int64_t>(lists.room(), 1 + random.next() % 200));
    std::vector<float> keys(n * kWidth);
    for (float& each : keys) each = random.value();
    std::vector<int64_t> targets(n);
    for (int64_t& each : targets) each = random.next() % 50;
    Coded coded = encode(lists.quantizer(), keys.data(), n);
    result.hash = mix(result.hash, coded.codes.data(), coded.codes.size() * sizeof(uint32_t));
    if (lists.entries() == 0) {
      lists.append(coded.codes.data(), lists.assign(coded).data(), targets.data(), n);
    } else {
      size_t k = static_cast<size_t>(std::min<int64_t>(30, lists.entries()));
      Search search(lists, coded, static_cast<int64_t>(k), true, targets.data());
      std::vector<float> squared(n * k);
      std::vector<int64_t> positions(n * k);
      search.neighbours(squared.data(), positions.data());
      result.hash = mix(result.hash, squared.data(), squared.size() * sizeof(float));
      result.hash = mix(result.hash, positions.data(), positions.size() * sizeof(int64_t));
      std::vector<double> shares(n * 4);
      search.score(votes, words.data(), shares.data());
      result.shares.insert(result.shares.end(), shares.begin(), shares.end());
      lists.append(coded.codes.data(), search.nearest_lists().data(), targets.data(), n);
    }
    // The same keys searched exactly.
    std::vector<int64_t> low(n, 0), high(n);
    std::vector<int32_t> own(targets.begin(), targets.end());
    for (size_t t = 0; t < n; ++t) high[t] = static_cast<int64_t>(t);
    std::vector<double> shares(n * 4);
    Exact{keys.data(), n, keys.data(), kWidth, low.data(), high.data()}.score(
        20, votes, own.data(), targets.data(), shares.data());
    result.shares.insert(result.shares.end(), shares.begin(), shares.end());
    words.insert(words.end(), targets.begin(), targets.end());
  }
  result.hash = mix(result.hash, lists.lengths.data(), lists.lengths.size() * sizeof(int64_t));
  result.hash = mix(result.hash, lists.centroids.data(), lists.centroids.size() * sizeof(uint32_t));
  return result;
}

}  // namespace

int main() {
  int passed = 0, failed = 0;
  auto check = [&](bool holds, const char* what, const char* isa, int threads) {
    ++(holds ? passed : failed);
    if (!holds) std::printf("FAILED: %s (%s, %d threads)\n", what, isa, threads);
  };
  set_isa("generic");
  Result plain = run();
  std::printf("hash %llu\n", static_cast<unsigned long long>(plain.hash));
  check(plain.hash == kExpected, "integers are those of every other machine", "generic", 1);
  for (Isa each : supported_isas())
    for (int count : {1, 3}) {
      set_isa(isa_name(each));
      set_threads(count);
      Result found = run();
      check(found.hash == plain.hash, "integers have the same bits", isa_name(each), count);
      bool near = found.shares.size() == plain.shares.size();
      for (size_t i = 0; near && i < found.shares.size(); ++i) {
        double a = found.shares[i], b = plain.shares[i];
        near = (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-5;
      }
      check(near, "votes agree", isa_name(each), count);
    }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
