#pragma once

#include <headroom/tensor.hpp>

#include <cstddef>
#include <span>

namespace headroom::detail {

/// out[i] = ((chunks[0][i] + chunks[1][i]) + chunks[2][i]) + ...: each chunk is read once, `out` written once (for up
/// to 8 chunks). `out` may be one of the chunks. dtype: f32, f64, or bf16, summed in f32 and rounded once.
void sum_in_rank_order(DType dtype, std::span<const std::byte* const> chunks, std::byte* out,
                       std::size_t numel) noexcept;

}  // namespace headroom::detail
