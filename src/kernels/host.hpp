#pragma once

#include <headroom/kernels.hpp>

#include <cstddef>
#include <cstdint>

/// The host bodies of the kernels: pure functions over raw pointers, f32 and row-major unless said. They do not check;
/// the dispatch functions of the same name did. No allocation, no globals.
namespace headroom::kernels::host {

// elementwise.cpp
template <class T>
void fill(T* data, std::int64_t count, T value);
void accumulate(const float* source, float* destination, std::int64_t count);
void accumulate(const std::uint16_t* bf16_source, float* destination, std::int64_t count);

// cast.cpp: between f32 and bf16; the destination may begin where the source does, else they are apart.
void narrow(const std::byte* source, std::byte* destination, std::int64_t count);
void widen(const std::byte* source, std::byte* destination, std::int64_t count);

// normal.cpp
void fill_normal(float* data, std::int64_t count, const Normal& normal);

// gemm.cpp
struct GemmShape {
  std::int64_t m, n, k;
};
struct Operand {
  const float* data;
  std::int64_t stride;  ///< Between rows as stored.
  bool transposed = false;
};
struct Output {
  float* data;
  std::int64_t stride;
};
/// c[m,n] = alpha * op(a)[m,k] * op(b)[k,n] + beta * c, in one single-threaded BLAS call.
void gemm(const GemmShape& shape, const Operand& a, const Operand& b, float alpha, float beta, const Output& c);

// linear.cpp
struct Linear {
  std::int64_t rows, in, out;
};
/// residual may be null, or y.
void linear_forward(const Linear& shape, const float* x, const float* w, const float* bias, const float* residual,
                    float* y);
/// dw and dbias are accumulated.
struct LinearGradients {
  float *dx, *dw, *dbias;
};
void linear_backward(const Linear& shape, const float* dy, const float* x, const float* w,
                     const LinearGradients& gradients);

// embedding.cpp
struct Embedding {
  std::int64_t rows, sequence, width, vocabulary;
};
void embedding_forward(const Embedding& shape, const std::int32_t* tokens, const float* wte, const float* wpe,
                       float* out);
void embedding_backward(const Embedding& shape, const std::int32_t* tokens, const float* dout, float* dwte,
                        float* dwpe);

// layer_norm.cpp
struct LayerNorm {
  std::int64_t rows, width;
  const float *x, *weight;
  float *mean, *rstd;
};
void layer_norm_forward(const LayerNorm& norm, const float* bias, float* y);
void layer_norm_backward(const LayerNorm& norm, const float* dy, float* dx, Write dx_write, float* dweight,
                         float* dbias);

// gelu.cpp
void gelu_forward(const float* x, float* y, std::int64_t count);
void gelu_backward(const float* dy, const float* x, float* dx, std::int64_t count);

// attention.cpp
/// key_tile is a multiple of query_tile, so that every row of a tile that is computed sees at least one key of it.
struct Attention {
  std::int64_t batch, heads, sequence, head_dim;
  std::int64_t query_tile = 64, key_tile = 256;
  [[nodiscard]] std::int64_t width() const noexcept { return heads * head_dim; }
  [[nodiscard]] std::int64_t workspace_numel() const noexcept { return 2 * query_tile * (key_tile + 1); }
};
void attention_forward(const Attention& shape, const float* qkv, float* out, float* lse, float* workspace);
struct AttentionInputs {
  const float *dout, *qkv, *out, *lse;
};
void attention_backward(const Attention& shape, const AttentionInputs& inputs, float* dqkv, float* workspace);

// cross_entropy.cpp
struct LinearCrossEntropy {
  std::int64_t rows, width, vocabulary, chunk;
  double scale;
  const float *hidden, *wte;
  const std::int32_t* targets;
  float *lse, *workspace;
};
[[nodiscard]] std::int64_t cross_entropy_chunk(std::int64_t rows, std::int64_t vocabulary) noexcept;
[[nodiscard]] std::int64_t cross_entropy_workspace_numel(std::int64_t rows, std::int64_t chunk) noexcept;
void cross_entropy_forward(const LinearCrossEntropy& head, double* loss);
void cross_entropy_backward(const LinearCrossEntropy& head, float* dhidden, float* dwte);

// step_scalars.cpp
[[nodiscard]] double sum_squares(const float* data, std::int64_t count);
void advance_step(StepScalars& scalars);

// adamw.cpp
struct AdamWRange {
  float* parameter;
  const float* gradient;
  float *exp_avg, *exp_avg_sq;
  std::int64_t count;
};
void adamw(const AdamWRange& range, const StepScalars& scalars, const AdamWHyperparameters& options);

}  // namespace headroom::kernels::host
