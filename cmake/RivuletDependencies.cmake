# Third-party libraries as imported targets. Each is linked by exactly one library of ours (its door).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(doctest REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(prometheus-cpp REQUIRED)
pkg_check_modules(RDKAFKA REQUIRED IMPORTED_TARGET rdkafka)
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)

if(RIVULET_WITH_TORCH)
  if(NOT RIVULET_LIBTORCH)
    include(${CMAKE_CURRENT_LIST_DIR}/RivuletCache.cmake)
    set(RIVULET_LIBTORCH "${rivulet_cache}/libtorch-2.15.0" CACHE PATH "" FORCE)
  endif()
  set(torch ${RIVULET_LIBTORCH}/torch)
  foreach(file lib/libtorch_cpu.so lib/libc10.so include/torch/csrc/api/include/torch/torch.h)
    if(NOT EXISTS ${torch}/${file})
      message(FATAL_ERROR "LibTorch is not complete: ${torch}/${file} is missing. "
        "Run scripts/setup, or give another LibTorch 2.x with -DRIVULET_LIBTORCH=DIR (DIR contains torch/).")
    endif()
  endforeach()
  # The wheel's own find_package(Torch) insists on CUDA libraries that a CPU device does not need.
  add_library(rivulet_torch INTERFACE)
  target_include_directories(rivulet_torch SYSTEM INTERFACE ${torch}/include ${torch}/include/torch/csrc/api/include)
  target_link_options(rivulet_torch INTERFACE -Wl,--no-as-needed
    -Wl,-rpath,${torch}/lib -Wl,-rpath,${RIVULET_LIBTORCH}/nvidia/cu13/lib
    -Wl,-rpath-link,${torch}/lib -Wl,-rpath-link,${RIVULET_LIBTORCH}/nvidia/cu13/lib)
  target_link_libraries(rivulet_torch INTERFACE ${torch}/lib/libtorch_cpu.so ${torch}/lib/libc10.so Threads::Threads)
  # What speaks to CUDA itself (devices/cuda). The headers and the runtime come with every wheel of LibTorch, so that it
  # is compiled and tried everywhere; on a Jetson they are JetPack's.
  find_path(RIVULET_CUDA_INCLUDE cuda_runtime_api.h HINTS ${RIVULET_LIBTORCH}/nvidia/cu13/include
    PATHS /usr/local/cuda/include)
  include(${CMAKE_CURRENT_LIST_DIR}/RivuletCache.cmake)
  find_path(RIVULET_CUDA_CRT crt/host_defines.h
    HINTS ${RIVULET_CUDA_INCLUDE} ${rivulet_cache}/python-tests/nvidia/cu13/include)
  find_library(RIVULET_CUDART NAMES libcudart.so.13 cudart HINTS ${RIVULET_LIBTORCH}/nvidia/cu13/lib
    PATHS /usr/local/cuda/lib64)
  if(RIVULET_CUDA_INCLUDE AND RIVULET_CUDA_CRT AND RIVULET_CUDART)
    add_library(rivulet_cudart INTERFACE)
    target_include_directories(rivulet_cudart SYSTEM INTERFACE ${RIVULET_CUDA_INCLUDE} ${RIVULET_CUDA_CRT})
    target_link_libraries(rivulet_cudart INTERFACE ${RIVULET_CUDART})
  endif()
  if(RIVULET_WITH_CUDA)
    foreach(file libtorch_cuda.so libc10_cuda.so)
      if(NOT EXISTS ${torch}/lib/${file})
        message(FATAL_ERROR "RIVULET_WITH_CUDA needs a LibTorch with CUDA: ${torch}/lib/${file} is missing. Install "
          "docker/wheels-cuda.txt into a folder (pip install --no-deps --target DIR -r docker/wheels-cuda.txt) and "
          "give it with -DRIVULET_LIBTORCH=DIR.")
      endif()
      target_link_libraries(rivulet_torch INTERFACE ${torch}/lib/${file})
    endforeach()
  endif()
endif()
if(RIVULET_WITH_CUDA AND NOT TARGET rivulet_cudart)
  message(FATAL_ERROR "RIVULET_WITH_CUDA needs LibTorch (RIVULET_WITH_TORCH=ON) and CUDA's runtime: cuda_runtime_api.h, "
    "crt/host_defines.h and libcudart were found neither beside LibTorch nor in /usr/local/cuda.")
endif()
