#!/usr/bin/env bash
# Installs what verify-package needs and this machine lacks: tools that make a clean root, and that check packages.
set -euo pipefail
missing=()
command -v debootstrap >/dev/null || missing+=(debootstrap)
command -v ip >/dev/null || missing+=(iproute2)
command -v lintian >/dev/null || missing+=(lintian)
command -v jq >/dev/null || missing+=(jq)
python3 -c 'import setuptools, wheel' 2>/dev/null || /usr/bin/python3 -c 'import setuptools, wheel' 2>/dev/null ||
  missing+=(python3-setuptools python3-wheel python3-pip)
command -v rpm >/dev/null || missing+=(rpm)
command -v rpmlint >/dev/null || missing+=(rpmlint)
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "the tests of the packages need ${missing[*]} (names of Debian's packages): install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
