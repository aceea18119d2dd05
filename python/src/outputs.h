// The outputs of a call: arrays that the caller gave, fresh ones in the family of the first
// argument where it gave none.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>

#include "array.h"
#include "moe/tensor.h"

namespace moe::python {

class Output {
 public:
  // `given` may be None.
  Output(nb::handle given, const char* name);

  bool is_given() const { return static_cast<bool>(array_); }
  const Array& array() const { return array_; }

  // What a fresh one is. Nothing happens to a given one.
  void expect(DType dtype, std::initializer_list<int64_t> shape);
  // Described: given or expected.
  const std::optional<TensorDesc>& desc() const { return desc_; }

  // Makes a fresh one where one is expected.
  void allocate(const Family& family);
  void* data() const { return data_; }
  // What the caller gets: None for one neither given nor expected.
  nb::object take();

 private:
  nb::object object_;
  Array array_;
  std::optional<TensorDesc> desc_{};
  void* data_ = nullptr;
  nb::object from_dlpack_{};
};

// The arrays of `out`, which is None or a tuple of `num` of them; null handles otherwise. They live
// as long as `out`.
constexpr size_t kMaxOutputs = 3;
std::array<nb::handle, kMaxOutputs> split_outputs(nb::handle out, size_t num);

}  // namespace moe::python
