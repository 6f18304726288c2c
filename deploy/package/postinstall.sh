#!/bin/sh
# Runs after a package was installed or upgraded. The configuration that comes with it names no machine of yours, so the
# service is neither enabled nor started. A server that runs keeps the old binary until it is restarted, one node at a
# time.
set -e

# The group that may read keys and secrets: the server runs as a user that exists only while it runs.
if ! getent group quorate-tls >/dev/null 2>&1; then
  groupadd --system quorate-tls 2>/dev/null || addgroup -S quorate-tls
fi
mkdir -p /etc/quorate/tls
chgrp quorate-tls /etc/quorate/tls
chmod 0750 /etc/quorate/tls

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
