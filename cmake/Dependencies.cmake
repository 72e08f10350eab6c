# Everything comes from Debian 12 (packages.txt); nothing is vendored.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(RocksDB CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# Not named lz4: those variables are RocksDB's, whose own search they would break
# when CMake runs again.
pkg_check_modules(liblz4 REQUIRED IMPORTED_TARGET liblz4)
find_package(civetweb CONFIG REQUIRED)
include(GoogleTest)
