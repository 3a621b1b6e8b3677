# How every target of this project is compiled, and the functions that make targets.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(headroom_flags INTERFACE)
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

# headroom_layer(NAME core SOURCES a.cpp ... [LINK lib ...]): one layer as an object library, part of headroom. Tests of a
# layer link that layer and the lower ones only, so an upward dependency does not link.
function(headroom_layer)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LINK" ${ARGN})
  add_library(headroom_${ARG_NAME} OBJECT ${ARG_SOURCES})
  target_link_libraries(headroom_${ARG_NAME} PRIVATE headroom_flags Threads::Threads ${ARG_LINK})
  target_sources(headroom PRIVATE $<TARGET_OBJECTS:headroom_${ARG_NAME}>)
  target_link_libraries(headroom PRIVATE ${ARG_LINK})
endfunction()
