package main

import (
	"cmp"
	"runtime/debug"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// buildOf uses the variables of the linker first. go install of a released version sets none, but the Go tools record
// the version, and builds in a checkout the commit.
func buildOf() cli.Build {
	known := cli.Build{Version: version, Commit: commit, Date: date}
	info, found := debug.ReadBuildInfo()
	if !found {
		return known
	}
	if recorded := info.Main.Version; known.Version == "devel" && recorded != "" && recorded != "(devel)" {
		known.Version = recorded
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			known.Commit = cmp.Or(known.Commit, setting.Value)
		case "vcs.time":
			known.Date = cmp.Or(known.Date, setting.Value)
		}
	}
	return known
}
