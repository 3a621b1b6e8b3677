#include <headroom/error.hpp>

#include "runtime/core/backend.hpp"

namespace headroom::detail {

std::shared_ptr<Backend> make_cuda_backend(int index) {
  throw DeviceError(Damage::none, "this build has no CUDA backend, so there is no device cuda:" +
                                      std::to_string(index) + "; use the host device, or build with CUDA");
}

int cuda_device_count() noexcept { return 0; }

}  // namespace headroom::detail
