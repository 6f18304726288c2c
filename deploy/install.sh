#!/usr/bin/env bash
# Installs what make verify-image and make verify-kubernetes run and this machine lacks: podman, the runtime that it
# starts containers with, a static shell for the image in which the Dockerfile builds, and the emulators that run the
# binary for the other architecture.
set -euo pipefail
missing=()
command -v podman >/dev/null || missing+=(podman)
command -v runc >/dev/null || missing+=(runc)
command -v busybox >/dev/null || missing+=(busybox-static)
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
[[ -e /etc/ssl/certs/ca-certificates.crt ]] || missing+=(ca-certificates)
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "make verify-image and make verify-kubernetes need ${missing[*]} (names of Debian's packages): install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
