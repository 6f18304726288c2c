#!/usr/bin/env bash
# Installs Prometheus with promtool where they are missing.
set -euo pipefail
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then exit 0; fi
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "make verify-metrics needs prometheus and promtool (Debian's package prometheus): install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends prometheus >/dev/null
