# cmake -D build= -D work= -D config= -D source= -D compiler= -D generator= -D sanitize= -D mpirun= -P install_and_use.cmake
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${work}/prefix)

# What is installed names neither this checkout nor a compiler flag of this machine.
file(GLOB_RECURSE package ${work}/prefix/*.cmake)
if(NOT package)
  message(FATAL_ERROR "no CMake package under ${work}/prefix")
endif()
foreach(file ${package})
  file(READ ${file} text)
  foreach(word ${source}/ -march -fsanitize -Wall)
    string(FIND "${text}" "${word}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} contains ${word}")
    endif()
  endforeach()
endforeach()

set(flags "")
if(sanitize)
  set(flags -fsanitize=${sanitize})
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/trainer -B ${work}/trainer -G ${generator}
    -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags}
    -D CMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/trainer --config ${config})
run(${work}/trainer/trainer)
run(${mpirun} --oversubscribe --allow-run-as-root --bind-to none -n 2 ${work}/trainer/trainer)
if(EXISTS ${build}/headroom)
  run(${work}/prefix/bin/headroom --version)
endif()
