#include "report/palette.hpp"

namespace headroom::bench {
namespace {

constexpr std::array<Band, 16> kBands{{{Tag::parameter_shard, 0x5f6b78},
                                       {Tag::gradient_shard, 0x8d98a4},
                                       {Tag::optimizer_state, 0xb9c2cb},
                                       {Tag::parameter_full_retained, 0x2e4a7d},
                                       {Tag::parameter_full_current, 0x0072b2},
                                       {Tag::parameter_full_next, 0x56b4e9},
                                       {Tag::parameter_full_gathering, 0xa9d8f5},
                                       {Tag::gradient_full_computing, 0xc2410c},
                                       {Tag::gradient_full_awaiting_reduce, 0xe69f00},
                                       {Tag::gradient_full_reducing, 0xf5cd6c},
                                       {Tag::gradient_full_retained, 0x8a4b1c},
                                       {Tag::communication, 0xcc79a7},
                                       {Tag::input, 0xefe27a},
                                       {Tag::other, 0xa08fb5},
                                       {Tag::activation, 0x1b9e77},
                                       {Tag::workspace, 0x8fd3b6}}};

constexpr std::array<OperationKind, 6> kKinds{{{"gather", 0x56b4e9},
                                               {"reduce", 0xe69f00},
                                               {"forward", 0x4daf8c},
                                               {"backward", 0x8c6bb1},
                                               {"update", 0x5f6b78},
                                               {"other", 0xc3cad1}}};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::span<const Band> bands() noexcept { return kBands; }
std::span<const OperationKind> operation_kinds() noexcept { return kKinds; }

std::size_t kind_of(std::string_view operation) noexcept {
  if (operation == "all_gather") return 0;
  if (operation == "reduce_scatter" || operation == "all_reduce") return 1;
  if (ends_with(operation, "_forward")) return 2;
  if (ends_with(operation, "_backward")) return 3;
  for (const std::string_view update : {"adamw", "sum_squares", "advance_step"})
    if (operation == update) return 4;
  return kKinds.size() - 1;
}

}  // namespace headroom::bench
