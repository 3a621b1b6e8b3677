# How every target of this project is compiled, and the functions that make targets.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # As its manual asks for precompiled headers, which would otherwise never hit.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(headroom_flags INTERFACE)
target_link_libraries(headroom_flags INTERFACE Threads::Threads spdlog::spdlog)
target_compile_features(headroom_flags INTERFACE cxx_std_20)
target_compile_options(headroom_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wpedantic)
if(HEADROOM_WERROR)
  target_compile_options(headroom_flags INTERFACE -Werror)
endif()
if(HEADROOM_NATIVE)
  target_compile_options(headroom_flags INTERFACE -march=native)
endif()
if(HEADROOM_SANITIZE)
  # -O1 -g1: full debug information multiplies the compile time under sanitizers, and reports need lines only.
  target_compile_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  target_link_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE})
endif()
target_include_directories(headroom_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

# Precompiling what most files include halves the compile time. Files include what they use all the same: lint compiles src and
# bench without it, and a list of the project's own headers here would rebuild everything at each change of one.
set(headroom_precompiled
    <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <exception> <functional> <limits> <map> <memory>
    <mutex> <numeric> <optional> <set> <span> <stdexcept> <string> <string_view> <thread> <tuple> <unordered_map> <utility>
    <vector> <spdlog/fmt/fmt.h>)
if(HEADROOM_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(headroom_flags INTERFACE -fpch-preprocess) # for ccache
endif()

# headroom_precompile(TARGET [FROM OTHER] [HEADERS <a> ...]): with the precompiled headers of OTHER, or its own: those above and
# HEADERS. Targets that share compile with the same options: the compiler refuses the headers otherwise.
function(headroom_precompile target)
  cmake_parse_arguments(ARG "" "FROM" "HEADERS" ${ARGN})
  if(NOT HEADROOM_PRECOMPILE)
    return()
  endif()
  if(ARG_FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARG_FROM})
  else()
    target_precompile_headers(${target} PRIVATE ${headroom_precompiled} ${ARG_HEADERS})
  endif()
endfunction()

# headroom_layer(NAME core SOURCES a.cpp ... [LINK lib ...] [OWN_PRECOMPILED]): one layer as an object library, part of headroom. Tests of a
# layer link that layer and the lower ones only, so an upward dependency does not link.
function(headroom_layer)
  cmake_parse_arguments(ARG "OWN_PRECOMPILED" "NAME" "SOURCES;LINK" ${ARGN})
  add_library(headroom_${ARG_NAME} OBJECT ${ARG_SOURCES})
  target_link_libraries(headroom_${ARG_NAME} PRIVATE headroom_flags ${ARG_LINK})
  target_sources(headroom PRIVATE $<TARGET_OBJECTS:headroom_${ARG_NAME}>)
  target_link_libraries(headroom PRIVATE ${ARG_LINK})
  if(ARG_OWN_PRECOMPILED OR ARG_NAME STREQUAL core)
    headroom_precompile(headroom_${ARG_NAME})
  else()
    headroom_precompile(headroom_${ARG_NAME} FROM headroom_core)
  endif()
endfunction()
