#!/usr/bin/env bash
# Installs what the tests of the dashboard need and this machine lacks: Node with npm, which builds it, and Chromium
# with a font, which shows it.
set -euo pipefail
missing=()
command -v npm >/dev/null || missing+=(nodejs npm)
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || command -v google-chrome >/dev/null ||
  missing+=(chromium-headless-shell fonts-dejavu-core)
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "the tests of the dashboard need ${missing[*]} (names of Debian's packages): install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
