// Arrays as they come from Python: checked at the boundary, plain pointers behind it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace unbounded {

namespace nb = nanobind;

template <class T>
const char* type_name() {
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, int8_t>) return "int8";
  if constexpr (std::is_same_v<T, uint8_t>) return "uint8";
  if constexpr (std::is_same_v<T, int32_t>) return "int32";
  if constexpr (std::is_same_v<T, uint32_t>) return "uint32";
  if constexpr (std::is_same_v<T, int64_t>) return "int64";
  if constexpr (std::is_same_v<T, uint64_t>) return "uint64";
  return "another type";
}

// A C-contiguous array of N dimensions that Python keeps alive during the call. `const T` reads,
// `T` writes in place, so it is never a converted copy.
template <class T, int N>
class Array {
 public:
  using Value = std::remove_const_t<T>;

  // Refuses any other type, number of dimensions or layout in one line that names the argument.
  Array(nb::handle object, const char* name) {
    nb::ndarray<nb::ro> found;
    if (!nb::try_cast(object, found, false)) refuse(name, "no array");
    if (found.dtype() != nb::dtype<Value>()) refuse(name, "an array of another type");
    if (found.ndim() != N) refuse(name, "an array of " + std::to_string(found.ndim()) + " dimensions");
    if (found.device_type() != nb::device::cpu::value) refuse(name, "not in this machine's memory");
    int64_t stride = found.size() > 0 ? 1 : 0;
    for (int axis = N - 1; axis >= 0; --axis) {
      shape_[axis] = found.shape(axis);
      if (stride && shape_[axis] > 1 && found.stride(axis) != stride) refuse(name, "not contiguous");
      stride *= static_cast<int64_t>(shape_[axis]);
    }
    if constexpr (!std::is_const_v<T>) {
      nb::ndarray<> writable;
      if (!nb::try_cast(object, writable, false)) refuse(name, "read-only");
    }
    data_ = const_cast<T*>(static_cast<const Value*>(found.data()));
  }

  T* data() const { return data_; }
  size_t size(int axis = 0) const { return shape_[axis]; }
  T& operator[](size_t i) const { return data_[i]; }
  T* row(size_t i) const { return data_ + i * shape_[N - 1]; }

 private:
  [[noreturn]] static void refuse(const char* name, const std::string& found) {
    throw std::invalid_argument(std::string(name) + " is " + found + "; it must be a contiguous " +
                                type_name<Value>() + " array of " + std::to_string(N) +
                                (N == 1 ? " dimension" : " dimensions"));
  }

  T* data_ = nullptr;
  std::array<size_t, N> shape_{};
};

// A new numpy array of zeros that owns its memory.
template <class T, int N>
nb::ndarray<nb::numpy, T> new_array(const std::array<size_t, N>& shape) {
  size_t size = 1;
  for (size_t each : shape) size *= each;
  T* data = new T[size ? size : 1]();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T>(data, N, shape.data(), owner);
}

// The same array with the type that numpy itself gives to whole numbers of 64 bits; there are two
// of that size, and checkers tell them apart.
inline nb::object as_int64(const nb::ndarray<nb::numpy, int64_t>& array) {
  return nb::cast(array).attr("view")("int64");
}

// Refuses arrays that do not fit together, in one line.
inline void require(bool fits, const std::string& otherwise) {
  if (!fits) throw std::invalid_argument(otherwise);
}

}  // namespace unbounded
