// Arrays as they come from Python: checked at the boundary, plain pointers behind it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace unbounded {

namespace nb = nanobind;

// Refuses what does not fit together, in one line.
inline void require(bool fits, const auto& otherwise) {
  if (!fits) throw std::invalid_argument(otherwise);
}

template <class T>
std::string type_name() {
  if (std::is_same_v<T, bool>) return "bool";
  const char* kind = std::is_floating_point_v<T> ? "float" : std::is_signed_v<T> ? "int" : "uint";
  return kind + std::to_string(8 * sizeof(T));
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
      stride *= int64_t(shape_[axis]);
    }
    nb::ndarray<> writable;
    if (!std::is_const_v<T> && !nb::try_cast(object, writable, false)) refuse(name, "read-only");
    data_ = const_cast<T*>(static_cast<const Value*>(found.data()));
  }

  T* data() const { return data_; }
  size_t size(int axis = 0) const { return shape_[axis]; }
  const std::array<size_t, N>& shape() const { return shape_; }
  T& operator[](size_t i) const { return data_[i]; }
  T* row(size_t i) const {
    for (int axis = 1; axis < N; ++axis) i *= shape_[axis];
    return data_ + i;
  }

 private:
  [[noreturn]] static void refuse(const char* name, const std::string& found) {
    throw std::invalid_argument(std::string(name) + " is " + found + "; it must be a contiguous " +
                                type_name<Value>() + " array of " + std::to_string(N) +
                                (N == 1 ? " dimension" : " dimensions"));
  }

  T* data_;
  std::array<size_t, N> shape_;
};

// The name of an argument as a part of its type.
template <size_t N>
struct Name {
  constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }
  char text[N];
};

// An array as an argument of a function that Python calls.
template <Name name, class T, int N>
struct Arg : Array<T, N> {
  explicit Arg(nb::handle object) : Array<T, N>(object, name.text) {}
};

// A new array of zeros for Python, made by numpy itself: of two types for whole numbers of 64 bits, which
// checkers tell apart, nanobind's own arrays have the other.
template <class T>
class Numpy : public nb::object {
 public:
  static constexpr auto Name = nb::detail::const_name("numpy.ndarray");

  explicit Numpy(const auto& shape) {
    static const nb::handle zeros = nb::object(nb::module_::import_("numpy").attr("zeros")).release();
    nb::list sizes;
    for (size_t size : shape) sizes.append(size);
    nb::object::operator=(zeros(sizes, type_name<T>().c_str()));
    data_ = nb::cast<nb::ndarray<T>>(*this).data();
  }
  T* data() const { return data_; }

 private:
  T* data_;
};

template <class T, size_t N>
Numpy<T> new_array(const size_t (&shape)[N]) {
  return Numpy<T>(shape);
}

template <class T>
Numpy<T> copied(const std::vector<T>& values) {
  auto array = new_array<T>({values.size()});
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

}  // namespace unbounded

namespace nanobind::detail {

// Any object is taken, and looked at where an exception may be thrown.
template <unbounded::Name name, class T, int N>
struct type_caster<unbounded::Arg<name, T, N>> {
  using Value = unbounded::Arg<name, T, N>;
  static constexpr auto Name = const_name("numpy.ndarray");
  template <class>
  using Cast = Value;
  template <class>
  bool can_cast() const { return true; }
  bool from_python(handle from, uint32_t, cleanup_list*) noexcept {
    object = from;
    return true;
  }
  explicit operator Value() const { return Value(object); }
  handle object;
};

}  // namespace nanobind::detail
