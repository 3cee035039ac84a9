# Compiler settings that every target of ours uses: link rivulet_options PRIVATE.
add_library(rivulet_options INTERFACE)
target_include_directories(rivulet_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(rivulet_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wno-missing-field-initializers -fno-omit-frame-pointer
  $<$<BOOL:${CMAKE_UNITY_BUILD}>:-Wno-shadow>  # a name of another file of the lump is no shadow
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage> -ffp-contract=off
  $<$<BOOL:${RIVULET_WERROR}>:-Werror>)
# What a sanitizer looks at is built fast and runs fast enough: half the time of -O0 and of -O2 with all names.
if(RIVULET_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
endif()
# For loops over all parameters or all numbers of a row, which GCC vectorizes at -O3 only. Not beside a precompiled header of
# -O1: GCC 12 crashes on that.
set(rivulet_vectorize "$<$<CONFIG:RelWithDebInfo>:-O3>")
if(RIVULET_SANITIZE)
  set(rivulet_vectorize "")
endif()
if(RIVULET_SANITIZE STREQUAL "address")
  # One build for the tests and for the programs that libFuzzer drives, which link its main themselves (tests/fuzz). ccache
  # keeps what uses a precompiled header only if that has no time in it.
  target_compile_options(rivulet_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  target_compile_options(rivulet_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS)
  target_link_options(rivulet_options INTERFACE -fsanitize=address,undefined)
elseif(RIVULET_SANITIZE STREQUAL "thread")
  target_compile_options(rivulet_options INTERFACE -fsanitize=thread -Wno-tsan)
  target_link_options(rivulet_options INTERFACE -fsanitize=thread)
else()
  target_compile_options(rivulet_options INTERFACE -D_GLIBCXX_ASSERTIONS)
endif()
# Same bits on every machine of a group: no -march=native, no contraction of a*b+c.

# What nearly every file includes, read once. A file still names all that it uses: clang-tidy reads it without this.
set(rivulet_std_headers <algorithm> <atomic> <chrono> <functional> <map> <memory> <optional> <set> <span> <string>
  <string_view> <variant> <vector>)

# rivulet_library(name SOURCES a.cpp ... [DEPENDS targets of ours] [DOOR third-party targets, private]
#   [PRECOMPILED <header> ...])
function(rivulet_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;DOOR;PRECOMPILED" ${ARGN})
  add_library(rivulet_${name} STATIC ${arg_SOURCES})
  add_library(rivulet::${name} ALIAS rivulet_${name})
  target_link_libraries(rivulet_${name} PRIVATE rivulet_options ${arg_DOOR} PUBLIC ${arg_DEPENDS})
  if(arg_PRECOMPILED)
    target_precompile_headers(rivulet_${name} PRIVATE ${rivulet_std_headers} ${arg_PRECOMPILED})
  endif()
endfunction()
