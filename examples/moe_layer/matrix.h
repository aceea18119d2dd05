// As much of matrices as the layer needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

// Somebody's numbers, read as a matrix.
template <class T>
struct View {
  T* data;
  int64_t num_rows, num_cols, row_stride, col_stride;

  T& operator()(int64_t i, int64_t j) const { return data[i * row_stride + j * col_stride]; }
  View transposed() const { return {data, num_cols, num_rows, col_stride, row_stride}; }
  View rows(int64_t begin, int64_t end) const {
    return {data + begin * row_stride, end - begin, num_cols, row_stride, col_stride};
  }
  operator View<const T>() const { return {data, num_rows, num_cols, row_stride, col_stride}; }
};

template <class Real>
class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t num_rows, int64_t num_cols)
      : num_rows_(num_rows),
        num_cols_(num_cols),
        values_(static_cast<size_t>(num_rows * num_cols)) {}

  int64_t num_rows() const { return num_rows_; }
  int64_t num_cols() const { return num_cols_; }
  std::vector<Real>& values() { return values_; }
  const std::vector<Real>& values() const { return values_; }

  Real& operator()(int64_t i, int64_t j) { return view()(i, j); }
  Real operator()(int64_t i, int64_t j) const { return view()(i, j); }
  View<Real> view() { return {values_.data(), num_rows_, num_cols_, num_cols_, 1}; }
  View<const Real> view() const { return {values_.data(), num_rows_, num_cols_, num_cols_, 1}; }

  Matrix& operator+=(const Matrix& other) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
    return *this;
  }

 private:
  int64_t num_rows_ = 0, num_cols_ = 0;
  std::vector<Real> values_;
};

// c += a * b
template <class Real>
void multiply_add(std::type_identity_t<View<const Real>> a,
                  std::type_identity_t<View<const Real>> b, View<Real> c) {
  for (int64_t i = 0; i < a.num_rows; ++i) {
    for (int64_t k = 0; k < a.num_cols; ++k) {
      for (int64_t j = 0; j < b.num_cols; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
}
