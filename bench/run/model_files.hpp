#pragma once

#include <headroom/parameters.hpp>

#include "options/config.hpp"

#include <string>

namespace headroom::bench {

/// Overwrites every parameter with a Hugging Face GPT-2 folder's. Local; blocks. Throws: InvalidInput.
void load_gpt2(ParameterManager& parameters, const std::string& folder);

/// Writes the model, from rank 0, as a Hugging Face GPT-2 folder. Collective, between steps; blocks. Throws, on every
/// rank: InputOutputError.
void export_gpt2(ParameterManager& parameters, Communicator& control, const Config& config);

}  // namespace headroom::bench
