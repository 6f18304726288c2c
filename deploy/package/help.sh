#!/usr/bin/env bash
# Writes what archives and packages have beside the binary: man pages, completions and, for Debian, the copyright and
# the changelog. Usage: COMMIT=... DATE=... help.sh FOLDER VERSION, from the root of the repository.
set -euo pipefail

out=$1
rm -rf "$out"
mkdir -p "$out/man" "$out/man.gz" "$out/completions"
go build -buildvcs=false -trimpath -o "$out/quorate" -ldflags \
  "-X main.version=v$2 -X main.commit=$COMMIT -X main.date=$DATE" ./cmd/quorate

# Help must not depend on who builds.
quorate() { env -i HOME=/nonexistent PATH=/usr/bin:/bin "$out/quorate" "$@"; }
quorate docs create "$out/man" --format man
for page in "$out"/man/*; do
  gzip -9nc "$page" >"$out/man.gz/${page##*/}.gz"
done
quorate completion bash >"$out/completions/quorate.bash"
quorate completion zsh >"$out/completions/_quorate"
quorate completion fish >"$out/completions/quorate.fish"
quorate completion powershell >"$out/completions/quorate.ps1"
gzip -9nc CHANGELOG.md >"$out/CHANGELOG.md.gz"
# Debian's tools read this format.
gzip -9nc >"$out/changelog.gz" <<END
quorate (${2/-/\~}) unstable; urgency=medium

  * See CHANGELOG.md.gz.

 -- The Quorate authors <quorate@example.org>  $(date --utc --date "$DATE" -R)
END
cat >"$out/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: quorate
Source: https://github.com/quorate/quorate

Files: *
Copyright: 2026 The Quorate authors
License: Apache-2.0
 On Debian systems, the text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
Comment: The binary contains libraries under the MIT, BSD, ISC, Apache-2.0 and
 MPL-2.0 licences; see NOTICE and licences.txt in /usr/share/doc/quorate.
END
rm "$out/quorate"
