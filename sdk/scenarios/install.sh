#!/usr/bin/env bash
# Installs what the clients of all languages need and this machine lacks: Python with mypy, Node with npm, a JDK,
# curl with jq, and the gRPC libraries of Python and Java with their compilers of protocols.
set -euo pipefail
missing=()
command -v python3 >/dev/null || missing+=(python3)
command -v mypy >/dev/null || missing+=(mypy)
command -v npm >/dev/null || missing+=(nodejs npm)
command -v javac >/dev/null || missing+=(openjdk-17-jdk-headless)
command -v curl >/dev/null || missing+=(curl)
command -v jq >/dev/null || missing+=(jq)
/usr/bin/python3 -c 'import grpc' 2>/dev/null || missing+=(python3-grpcio)
[[ -e /usr/share/java/grpc-netty.jar ]] ||
  missing+=(libgrpc-java libguava-java libnetty-java libopencensus-java libperfmark-java)
# What examples/programs are generated with.
command -v protoc >/dev/null || missing+=(protobuf-compiler)
[[ -e /usr/include/google/protobuf/any.proto ]] || missing+=(libprotobuf-dev)
command -v grpc_python_plugin >/dev/null || missing+=(protobuf-compiler-grpc)
command -v grpc_java_plugin >/dev/null || missing+=(protobuf-compiler-grpc-java-plugin)
/usr/bin/python3 -c 'import google.protobuf' 2>/dev/null || missing+=(python3-protobuf)
[[ -e /usr/share/java/protobuf.jar ]] || missing+=(libprotobuf-java)
[[ -e /usr/share/java/geronimo-annotation-1.3-spec.jar ]] || missing+=(libgeronimo-annotation-1.3-spec-java)
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "the tests of the clients need ${missing[*]} (names of Debian's packages): install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
