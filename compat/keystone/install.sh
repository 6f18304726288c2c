#!/usr/bin/env bash
# Installs what make verify-openstack runs and this machine lacks: oslo.limit, openstackclient and Glance, as Debian has
# them.
set -euo pipefail
missing=()
command -v openstack >/dev/null || missing+=(python3-openstackclient)
/usr/bin/python3 -c 'import oslo_limit' 2>/dev/null || missing+=(python3-oslo.limit)
command -v glance-api >/dev/null || missing+=(glance-api)
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "make verify-openstack needs ${missing[*]} (names of Debian's packages): install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
