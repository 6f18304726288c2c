#!/bin/sh
# Runs after a package was removed. The data in /var/lib/quorate, /etc/quorate/tls and the group stay: they are yours.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
