#include "isa.h"

#include <cstdlib>
#include <stdexcept>

namespace unbounded {

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::neon: return "neon";
    default: return "generic";
  }
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> found{Isa::generic};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
      found.push_back(Isa::avx512);
  }
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
    known += known.empty() ? isa_name(each) : std::string(", ") + isa_name(each);
  }
  throw std::invalid_argument("instruction set '" + name + "' cannot be used here; choose from " + known);
}

Isa first() {
  const char* asked = std::getenv("UNBOUNDED_ISA");
  return asked && *asked ? named(asked) : supported_isas().back();
}

Isa& current() {
  static Isa chosen = first();
  return chosen;
}

}  // namespace

Isa isa() { return current(); }

void set_isa(const std::string& name) { current() = named(name); }

}  // namespace unbounded
