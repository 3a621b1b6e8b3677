#include "kernels/host.hpp"

#include <cblas.h>

namespace headroom::kernels::host {

namespace {

/// OpenBLAS's thread count is one number for the process. The streams are our threads, so each call is to run on the
/// thread that makes it; set once, before the first call, under the lock of a local static.
void use_single_threaded_blas() {
  static const bool once = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

void gemm(const GemmShape& shape, const Operand& a, const Operand& b, float alpha, float beta, const Output& c) {
  use_single_threaded_blas();
  const auto order = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  const auto narrow = [](std::int64_t value) { return static_cast<blasint>(value); };
  cblas_sgemm(CblasRowMajor, order(a.transposed), order(b.transposed), narrow(shape.m), narrow(shape.n),
              narrow(shape.k), alpha, a.data, narrow(a.stride), b.data, narrow(b.stride), beta, c.data,
              narrow(c.stride));
}

}  // namespace headroom::kernels::host
