// What an argument says of itself, whoever made it: a description, an address, and how long that
// holds. Nothing is copied.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "dlpack.h"
#include "moe/tensor.h"

namespace moe::python {

namespace nb = nanobind;

// Where arrays like this one come from, and so where results go.
struct Family {
  enum class Kind { kNumpy, kTorch, kNamespace };
  Kind kind = Kind::kNumpy;
  nb::object from_dlpack{};  // of kNamespace
};

// What may stand in an argument.
enum class Elements { kFloats, kIndices, kAny };

struct Reading {
  const char* name;
  Elements elements = Elements::kFloats;
  // An output: must not be read-only.
  bool is_written = false;
  // For callers that take care of gradients themselves, a tensor that requires one is fine.
  bool allow_grad = false;
};

class Array {
 public:
  // None makes an absent array. Throws TypeError where `object` is no array or has another dtype,
  // ValueError for what else an array can have wrong by itself.
  Array(nb::handle object, const Reading& reading);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  explicit operator bool() const { return is_present_; }
  const TensorDesc& desc() const { return desc_; }
  std::optional<TensorDesc> given() const {
    return is_present_ ? std::optional(desc_) : std::nullopt;
  }
  void* data() const { return data_; }
  const Family& family() const { return family_; }

  // 0 where there is no such dimension, for shapes of results that are checked later.
  int64_t size(int dim) const {
    return dim < desc_.num_dims && dim < TensorDesc::kMaxDims ? desc_.shape[dim] : 0;
  }

 private:
  void read(nb::handle object, const Reading& reading);
  void read_numpy(nb::handle object, const Reading& reading);
  void read_torch(nb::handle object, const Reading& reading);
  void read_dlpack(nb::handle object, const Reading& reading);
  void read_capsule(nb::handle capsule, const Reading& reading);
  void read_tensor(const DLTensor& tensor, const Reading& reading);
  void read_buffer(nb::handle object, const Reading& reading);
  void set_byte_layout(const Reading& reading, int num_dims, const int64_t* shape,
                       const int64_t* byte_strides);
  void check_elements(const Reading& reading) const;
  void release() noexcept;

  bool is_present_ = false;
  TensorDesc desc_{};
  void* data_ = nullptr;
  Family family_{};
  // Held while this lives: at most one of them.
  DLManagedTensor* managed_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
  std::optional<Py_buffer> buffer_{};
};

// Of an argument that must not be None.
Array required(nb::handle object, const Reading& reading);

}  // namespace moe::python
