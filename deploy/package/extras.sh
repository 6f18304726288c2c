#!/usr/bin/env bash
# Makes what a release has beside the archives and packages of the binary: the npm package and the wheel of the clients,
# the chart, and bills of materials of the binary and of the dashboard in it. The same commit gives the same bytes.
# Usage: SOURCE_DATE_EPOCH=... extras.sh FOLDER VERSION, from the root of the repository, after make sdk-typescript ui.
# Needs Node with npm, jq, and a python3 with setuptools and wheel.
set -euo pipefail
umask 022
out=$PWD/$1 version=$2
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# copy FOLDER takes what is committed of a folder, so that nothing else of a working copy gets into a package.
copy() {
  git ls-files -z "$1" | tar -c --null -T - | tar -x -C "$work"
}

npm_package() {
  copy sdk/typescript
  cp -r sdk/typescript/dist "$work/sdk/typescript/dist"
  (
    cd "$work/sdk/typescript"
    npm pkg set "version=$version" && npm pkg delete scripts.prepare # it would build again
    npm pack --silent --pack-destination "$out" >/dev/null
  )
}

wheel() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import setuptools, wheel' 2>/dev/null && break
  done
  copy sdk/python
  (
    cd "$work/sdk/python"
    sed -i "s/^version = .*/version = \"${version/-dev./.dev}\"/" pyproject.toml
    sed -i "s/^__version__ = .*/__version__ = \"${version/-dev./.dev}\"/" quorate/__init__.py
    "$python" -m pip wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check -w "$out" .
  )
}

chart() {
  copy deploy/chart
  mv "$work/deploy/chart" "$work/deploy/quorate"
  sed -i "s/^version: .*/version: $version/; s/^appVersion: .*/appVersion: v$version/" "$work/deploy/quorate/Chart.yaml"
  tar -c -C "$work/deploy" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u=rwX \
    --mtime="@$SOURCE_DATE_EPOCH" quorate | gzip -9n >"$out/quorate-chart-$version.tgz"
}

# bills reads the modules of the binary from the binary. Licences are in licences.txt.
bills() {
  CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -buildvcs=false -o "$work/quorate" ./cmd/quorate
  # The hashes of this binary are those of none that is released.
  .bin/cyclonedx-gomod bin -json -noserial -notimestamp -version "v$version" "$work/quorate" |
    jq '.metadata |= (del(.component.hashes) | .properties |= map(select(.name | contains("hash") | not)))' \
      >"$out/quorate_$version.cdx.json"
  mkdir "$work/dashboard"
  cp web/ui/package.json web/ui/package-lock.json "$work/dashboard"
  (
    cd "$work/dashboard"
    npm pkg set "version=$version"
    npm sbom --package-lock-only --sbom-format cyclonedx --omit dev |
      jq 'del(.serialNumber, .metadata.timestamp)' >"$out/quorate-dashboard_$version.cdx.json"
  )
}

npm_package
wheel
chart
bills
