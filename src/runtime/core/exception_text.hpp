#pragma once

#include <exception>
#include <string>

namespace headroom::detail {

/// What `error` says; it must hold one.
[[nodiscard]] std::string text_of(const std::exception_ptr& error);

}  // namespace headroom::detail
