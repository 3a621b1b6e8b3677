#include "kernels/host.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom::kernels::host {

namespace {

/// One head of one sequence: pointers to its first row, and a query tile [first, first + rows).
struct Head {
  const float *q, *k, *v;
  std::int64_t stride;  ///< Between rows of qkv.
  float scale;
};

struct Tile {
  std::int64_t first, rows;
};

Head head_of(const Attention& shape, const float* qkv, std::int64_t batch, std::int64_t head) {
  const std::int64_t stride = 3 * shape.width();
  const float* q = qkv + batch * shape.sequence * stride + head * shape.head_dim;
  return {q, q + shape.width(), q + 2 * shape.width(), stride,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)))};
}

/// left[query rows, D] * right[key rows, D]^T.
void multiply_rows(const Attention& shape, const Tile& queries, const Tile& keys, const Operand& left,
                   const Operand& right, float alpha, float* tile) {
  gemm({queries.rows, keys.rows, shape.head_dim}, {left.data + queries.first * left.stride, left.stride},
       {right.data + keys.first * right.stride, right.stride, true}, alpha, 0.0F, {tile, keys.rows});
}

/// How many keys of the tile row `row` of the query tile may see, and that number rounded up to whole vectors.
std::int64_t visible_keys(const Tile& queries, const Tile& keys, std::int64_t row) {
  return std::min(queries.first + row + 1 - keys.first, keys.rows);
}
std::int64_t round_up(std::int64_t visible, std::int64_t limit) {
  constexpr std::int64_t kLanes = 16;
  return std::min((visible + kLanes - 1) / kLanes * kLanes, limit);
}

/// scores[0, keys) -> exp(score - maximum), 0 beyond `visible`; returns exp(old maximum - new maximum).
float online_softmax(float* scores, std::int64_t visible, std::int64_t keys, float& maximum, float& sum) {
  const std::int64_t padded = round_up(visible, keys);
  std::fill(scores + visible, scores + padded, -std::numeric_limits<float>::infinity());
  float highest = maximum, added = 0;
#pragma omp simd reduction(max : highest)
  for (std::int64_t j = 0; j < padded; ++j) highest = highest < scores[j] ? scores[j] : highest;
#pragma omp simd reduction(+ : added)
  for (std::int64_t j = 0; j < padded; ++j) {
    const float probability = exp(scores[j] - highest);
    scores[j] = probability;
    added += probability;
  }
  std::fill(scores + padded, scores + keys, 0.0F);
  const float correction = std::exp(maximum - highest);
  maximum = highest;
  sum = sum * correction + added;
  return correction;
}

void scale_row(float* row, std::int64_t count, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
}

/// out and lse point at the head's first row; stride_out between rows of out.
void forward_tile(const Attention& shape, const Head& head, const Tile& queries, float* out, float* lse,
                  float* workspace) {
  const std::int64_t width = shape.width(), head_dim = shape.head_dim;
  float* scores = workspace;
  float* maximum = scores + shape.query_tile * shape.key_tile;
  float* sum = maximum + shape.query_tile;
  float* first_out = out + queries.first * width;
  std::fill_n(maximum, queries.rows, -std::numeric_limits<float>::infinity());
  std::fill_n(sum, queries.rows, 0.0F);
  const std::int64_t end = queries.first + queries.rows;
  for (std::int64_t key = 0; key < end; key += shape.key_tile) {
    const Tile keys{key, std::min(shape.key_tile, end - key)};
    multiply_rows(shape, queries, keys, {head.q, head.stride}, {head.k, head.stride}, head.scale, scores);
    for (std::int64_t row = 0; row < queries.rows; ++row) {
      const float correction =
          online_softmax(scores + row * keys.rows, visible_keys(queries, keys, row), keys.rows, maximum[row], sum[row]);
      if (key > 0) scale_row(first_out + row * width, head_dim, correction);
    }
    gemm({queries.rows, head_dim, keys.rows}, {scores, keys.rows}, {head.v + key * head.stride, head.stride}, 1.0F,
         key > 0 ? 1.0F : 0.0F, {first_out, width});
  }
  for (std::int64_t row = 0; row < queries.rows; ++row) {
    scale_row(first_out + row * width, head_dim, 1.0F / sum[row]);
    lse[queries.first + row] = maximum[row] + std::log(sum[row]);
  }
}

/// probabilities: scores in, exp(score - lse) out; gradients: d(probability) in, d(score) * scale out. 0 where masked.
void softmax_backward(float* probabilities, float* gradients, std::int64_t visible, std::int64_t keys, float lse,
                      float delta, float scale) {
#pragma omp simd
  for (std::int64_t j = 0; j < keys; ++j) {
    const float probability = j < visible ? exp(probabilities[j] - lse) : 0.0F;
    probabilities[j] = probability;
    gradients[j] = j < visible ? probability * (gradients[j] - delta) * scale : 0.0F;
  }
}

float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// Pointers to one head's first row in dout and out (stride: width), lse, and the three parts of dqkv (stride: qkv's).
struct HeadGradients {
  const float *dout, *out, *lse;
  float *dq, *dk, *dv;
};

void backward_tile(const Attention& shape, const Head& head, const HeadGradients& to, const Tile& queries,
                   float* workspace) {
  const std::int64_t width = shape.width(), head_dim = shape.head_dim, stride = head.stride;
  float* probabilities = workspace;
  float* gradients = probabilities + shape.query_tile * shape.key_tile;
  float* delta = gradients + shape.query_tile * shape.key_tile;
  const float* dout = to.dout + queries.first * width;
  for (std::int64_t row = 0; row < queries.rows; ++row) {
    delta[row] = dot(dout + row * width, to.out + (queries.first + row) * width, head_dim);
  }
  const std::int64_t end = queries.first + queries.rows;
  for (std::int64_t key = 0; key < end; key += shape.key_tile) {
    const Tile keys{key, std::min(shape.key_tile, end - key)};
    multiply_rows(shape, queries, keys, {head.q, stride}, {head.k, stride}, head.scale, probabilities);
    multiply_rows(shape, queries, keys, {to.dout, width}, {head.v, stride}, 1.0F, gradients);
    for (std::int64_t row = 0; row < queries.rows; ++row) {
      softmax_backward(probabilities + row * keys.rows, gradients + row * keys.rows, visible_keys(queries, keys, row),
                       keys.rows, to.lse[queries.first + row], delta[row], head.scale);
    }
    gemm({keys.rows, head_dim, queries.rows}, {probabilities, keys.rows, true}, {dout, width}, 1.0F, 1.0F,
         {to.dv + key * stride, stride});
    gemm({keys.rows, head_dim, queries.rows}, {gradients, keys.rows, true}, {head.q + queries.first * stride, stride},
         1.0F, 1.0F, {to.dk + key * stride, stride});
    gemm({queries.rows, head_dim, keys.rows}, {gradients, keys.rows}, {head.k + key * stride, stride}, 1.0F,
         key > 0 ? 1.0F : 0.0F, {to.dq + queries.first * stride, stride});
  }
}

/// Calls body(batch, head, query tile) for each.
template <class Body>
void for_each_tile(const Attention& shape, const Body& body) {
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (std::int64_t query = 0; query < shape.sequence; query += shape.query_tile) {
        body(batch, head, Tile{query, std::min(shape.query_tile, shape.sequence - query)});
      }
    }
  }
}

}  // namespace

void attention_forward(const Attention& shape, const float* qkv, float* out, float* lse, float* workspace) {
  for_each_tile(shape, [&](std::int64_t batch, std::int64_t head, const Tile& queries) {
    forward_tile(shape, head_of(shape, qkv, batch, head), queries,
                 out + batch * shape.sequence * shape.width() + head * shape.head_dim,
                 lse + (batch * shape.heads + head) * shape.sequence, workspace);
  });
}

void attention_backward(const Attention& shape, const AttentionInputs& inputs, float* dqkv, float* workspace) {
  const std::int64_t width = shape.width();
  for (std::int64_t row = 0; row < shape.batch * shape.sequence; ++row) {  // dk and dv are sums over query tiles
    std::fill_n(dqkv + row * 3 * width + width, 2 * width, 0.0F);
  }
  for_each_tile(shape, [&](std::int64_t batch, std::int64_t head, const Tile& queries) {
    const std::int64_t first = batch * shape.sequence * width + head * shape.head_dim;
    float* dq = dqkv + batch * shape.sequence * 3 * width + head * shape.head_dim;
    const HeadGradients to{
        inputs.dout + first, inputs.out + first, inputs.lse + (batch * shape.heads + head) * shape.sequence, dq,
        dq + width,          dq + 2 * width};
    backward_tile(shape, head_of(shape, inputs.qkv, batch, head), to, queries, workspace);
  });
}

}  // namespace headroom::kernels::host
