#pragma once

#include <headroom/tensor.hpp>

#include <cstddef>

namespace headroom::detail {

/// Local argument checks of every backend, made before anything is enqueued. All throw std::logic_error.
void check_all_gather(const TensorView& send, const TensorView& recv, int rank, int size);
void check_reduce_scatter(const TensorView& send, const TensorView& recv, int rank, int size);
void check_all_reduce(const TensorView& buffer, const TensorView& scratch, std::size_t scratch_bytes);
void check_broadcast(const TensorView& buffer, int root, int size);
void check_agree(std::size_t words);
void check_share(std::size_t bytes, int root, int size);

}  // namespace headroom::detail
