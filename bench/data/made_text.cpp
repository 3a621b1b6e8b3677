#include "data/made_text.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace headroom::bench {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kPeople[] = {"the miller", "the captain", "a young weaver", "the old judge", "her brother",
                                        "the baker",  "a stranger",  "the gardener",   "my uncle",      "the piper"};
constexpr std::string_view kThings[] = {"barrel",  "lantern", "basket", "letter",
                                        "blanket", "candle",  "hammer", "ladder"};
constexpr std::string_view kNumbers[] = {"two", "three", "four", "five", "six", "seven", "eight", "nine"};
constexpr std::string_view kPlaces[] = {"by the river",     "under the bridge", "behind the mill", "on the long road",
                                        "near the harbour", "in the market",    "at the old gate"};
constexpr std::string_view kVerbs[] = {"carried", "sold", "found", "lost", "mended", "counted", "remembered"};
constexpr std::string_view kMotions[] = {"walked", "waited", "slept", "sang", "worked", "stood"};
constexpr std::string_view kTimes[] = {"before dawn", "after the rain", "every morning", "that winter", "at noon"};
constexpr std::string_view kWeather[] = {"the wind rose", "snow fell", "the bells rang", "the river froze",
                                         "the fair began"};

/// SplitMix64 (Steele, Lea and Flood, 2014).
class Draws {
 public:
  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return (x ^ (x >> 31)) % bound;
  }
  // Uneven: the smaller of two draws, so that early words are the common ones.
  std::string_view word(Words words) {
    const std::uint64_t first = below(words.size()), second = below(words.size());
    return words[first < second ? first : second];
  }

 private:
  std::uint64_t state_ = 2024;
};

std::string sentence(Draws& draws, std::string_view person) {
  std::string text;
  const auto add = [&](std::string_view part) { text.append(text.empty() ? "" : " ").append(part); };
  const std::uint64_t form = draws.below(4);
  if (form == 0) add(draws.word(kTimes));
  add(person);
  if (form < 3) {
    // What is counted first is counted again: a number to carry through the sentence.
    const std::string_view number = draws.word(kNumbers), thing = draws.word(kThings);
    add(draws.word(kVerbs));
    add(number);
    add(std::string(thing) + "s");
    add(draws.word(kPlaces));
    if (form == 2) add("and all " + std::string(number) + " " + std::string(thing) + "s were gone");
  } else {
    add(draws.word(kMotions));
    add(draws.word(kPlaces));
    add("until " + std::string(draws.word(kWeather)));
  }
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text + ".";
}

}  // namespace

std::string made_text(std::size_t bytes) {
  Draws draws;
  std::string text;
  while (text.size() < bytes) {
    const std::string_view person = draws.word(kPeople);
    for (std::uint64_t left = 3 + draws.below(4); left > 0; --left)
      text += sentence(draws, draws.below(3) == 0 ? draws.word(kPeople) : person) + (left > 1 ? " " : "\n");
  }
  text.resize(bytes);
  return text;
}

}  // namespace headroom::bench
