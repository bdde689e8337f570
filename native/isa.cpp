#include "isa.h"

#include <cstdlib>
#include <stdexcept>

namespace unbounded {

const char* isa_name(Isa isa) {
  static const char* const names[] = {"generic", "avx2", "avx512", "neon"};
  return names[static_cast<int>(isa)];
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> found{Isa::generic};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) found.push_back(Isa::avx2);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni"))
    found.push_back(Isa::avx512);
#elif defined(__aarch64__)
  found.push_back(Isa::neon);
#endif
  return found;
}

namespace {

Isa named(const std::string& name) {
  std::string known;
  for (Isa each : supported_isas()) {
    if (name == isa_name(each)) return each;
    known += (known.empty() ? "" : ", ") + std::string(isa_name(each));
  }
  throw std::invalid_argument("instruction set '" + name + "' cannot be used here; choose from " + known);
}

Isa& current() {
  static const char* asked = std::getenv("UNBOUNDED_ISA");
  static Isa chosen = asked && *asked ? named(asked) : supported_isas().back();
  return chosen;
}

}  // namespace

Isa isa() { return current(); }

void set_isa(const std::string& name) { current() = named(name); }

}  // namespace unbounded
