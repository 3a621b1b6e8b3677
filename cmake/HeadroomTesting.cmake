# headroom_test(NAME core_stream SOURCES ... LAYERS core memory ... [LINK ...] [LABELS ...] [TIMEOUT s] [MPI 1 2 4])
# A GoogleTest program linked with the named layers; each case is a ctest entry. With MPI: one entry a suite and world size.
# The folder's name is a label too, and FOLDER_tests the target that builds its programs.
include(GoogleTest)
find_package(GTest 1.12 REQUIRED)

# What every source of a test is compiled with, and the headers that all of them share.
function(headroom_test_source target)
  target_link_libraries(${target} PRIVATE headroom_flags GTest::gtest)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/bench)
  target_compile_options(${target} PRIVATE -O1) # the layers under test keep their own; this nearly halves the tests' compile time
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF) # one way for objects and programs
  if(target STREQUAL headroom_test_headers)
    headroom_precompile(${target} HEADERS <gtest/gtest.h>)
  else()
    headroom_precompile(${target} FROM headroom_test_headers)
  endif()
endfunction()
add_library(headroom_test_headers OBJECT headers.cpp)
headroom_test_source(headroom_test_headers)

function(headroom_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SOURCES;LAYERS;LINK;LABELS;MPI" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(program test_${ARG_NAME})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(labels ${folder} ${ARG_LABELS})
  add_executable(${program} ${ARG_SOURCES})
  headroom_test_source(${program})
  foreach(layer ${ARG_LAYERS})
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:headroom_${layer}>)
    target_link_libraries(${program} PRIVATE $<TARGET_PROPERTY:headroom_${layer},LINK_LIBRARIES>)
  endforeach()
  target_link_libraries(${program} PRIVATE ${ARG_LINK})
  target_compile_definitions(${program} PRIVATE HEADROOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                HEADROOM_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(ARG_MPI)
    foreach(world ${ARG_MPI})
      add_test(NAME ${ARG_NAME}.mpi${world}
               COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe --allow-run-as-root --bind-to none -n ${world}
                       $<TARGET_FILE:${program}>)
      set_tests_properties(${ARG_NAME}.mpi${world} PROPERTIES LABELS "mpi;${labels}" TIMEOUT ${ARG_TIMEOUT}
                           PROCESSORS 2)
    endforeach()
  else()
    target_link_libraries(${program} PRIVATE GTest::gtest_main)
    gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${ARG_TIMEOUT})
    # gtest_discover_tests keeps the first of several labels only, so they are set once the tests are known.
    set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${program}_labels.cmake)
    file(WRITE ${labels_file} "foreach(test IN LISTS ${program}_TESTS)
  set_tests_properties(\${test} PROPERTIES LABELS \"${labels}\")
endforeach()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
  endif()
  if(NOT TARGET ${folder}_tests)
    add_custom_target(${folder}_tests)
  endif()
  if(NOT (HEADROOM_SANITIZE AND ARG_MPI)) # scripts/test.sh runs ranks as threads there: no sanitizer sees into MPI
    add_dependencies(${folder}_tests ${program})
  endif()
endfunction()
