#!/bin/sh
# Runs before a package is removed. With an upgrade, rpm calls it with 1 and dpkg with "upgrade": the server goes on.
set -e

case "${1:-}" in
1 | upgrade) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now quorate.service
fi
