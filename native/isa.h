// Which instructions the kernels use: the best this processor has, or a lesser one for tests.
//
// A file `*_kernels.cpp` is compiled once for each instruction set, in a namespace of its name
// (the macro ISA); KERNELS declares what it defines, and FOR_ISA picks the one in use.
#pragma once

#include <string>
#include <vector>

namespace unbounded {

enum class Isa { generic, avx2, avx512, neon };

const char* isa_name(Isa isa);

// What this build and this processor can run, the best last.
std::vector<Isa> supported_isas();

// The one in use.
Isa isa();

// Use another; only between calls, for tests and comparisons. Refuses one that is not supported.
void set_isa(const std::string& name);

}  // namespace unbounded

#if defined(__x86_64__)
#define KERNELS(Type, name)                   \
  namespace generic { extern const Type name; } \
  namespace avx2 { extern const Type name; }    \
  namespace avx512 { extern const Type name; }
#define FOR_ISA(name) \
  (isa() == Isa::avx512 ? avx512::name : isa() == Isa::avx2 ? avx2::name : generic::name)
#elif defined(__aarch64__)
#define KERNELS(Type, name)                   \
  namespace generic { extern const Type name; } \
  namespace neon { extern const Type name; }
#define FOR_ISA(name) (isa() == Isa::neon ? neon::name : generic::name)
#else
#define KERNELS(Type, name) namespace generic { extern const Type name; }
#define FOR_ISA(name) (generic::name)
#endif
