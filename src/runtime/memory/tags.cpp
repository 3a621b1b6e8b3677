#include <headroom/events.hpp>

#include <stdexcept>
#include <string>

namespace headroom {
namespace {

constexpr std::array<const char*, kTagCount> kTagNames{
    "parameter_shard",
    "parameter_full.gathering",
    "parameter_full.next",
    "parameter_full.current",
    "parameter_full.retained",
    "parameter_full.releasing",
    "gradient_full.computing",
    "gradient_full.awaiting_reduce",
    "gradient_full.reducing",
    "gradient_full.retained",
    "gradient_shard",
    "optimizer_state",
    "activation",
    "workspace",
    "communication",
    "input",
    "other",
};
constexpr std::array kCategoryNames{"parameter_shard", "parameter_full", "gradient_full", "gradient_shard",
                                    "optimizer_state", "activation",     "workspace",     "communication",
                                    "input",           "other"};
constexpr std::array kStateNames{"none",      "gathering",       "next",    "current", "retained",
                                 "computing", "awaiting_reduce", "reducing"};

[[noreturn]] void refuse(Category category, UseState state) {
  throw std::logic_error(std::string("a buffer of category ") + name_of(category) + " cannot be in state " +
                         kStateNames.at(static_cast<std::size_t>(state)));
}

Tag parameter_tag(UseState state) {
  switch (state) {
    case UseState::gathering: return Tag::parameter_full_gathering;
    case UseState::next: return Tag::parameter_full_next;
    case UseState::current: return Tag::parameter_full_current;
    case UseState::retained: return Tag::parameter_full_retained;
    default: refuse(Category::parameter_full, state);
  }
}

Tag gradient_tag(UseState state) {
  switch (state) {
    case UseState::computing: return Tag::gradient_full_computing;
    case UseState::awaiting_reduce: return Tag::gradient_full_awaiting_reduce;
    case UseState::reducing: return Tag::gradient_full_reducing;
    case UseState::retained: return Tag::gradient_full_retained;
    default: refuse(Category::gradient_full, state);
  }
}

}  // namespace

const char* name_of(Tag tag) noexcept { return kTagNames[static_cast<std::size_t>(tag)]; }
const char* name_of(Category category) noexcept { return kCategoryNames[static_cast<std::size_t>(category)]; }

Tag tag_of(Category category, UseState state) {
  if (category == Category::parameter_full) return parameter_tag(state);
  if (category == Category::gradient_full) return gradient_tag(state);
  if (state != UseState::none) refuse(category, state);
  switch (category) {
    case Category::parameter_shard: return Tag::parameter_shard;
    case Category::gradient_shard: return Tag::gradient_shard;
    case Category::optimizer_state: return Tag::optimizer_state;
    case Category::activation: return Tag::activation;
    case Category::workspace: return Tag::workspace;
    case Category::communication: return Tag::communication;
    case Category::input: return Tag::input;
    default: return Tag::other;
  }
}

}  // namespace headroom
