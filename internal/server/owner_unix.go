//go:build unix

package server

import (
	"io/fs"
	"os"
	"syscall"
)

// isOthersFile reports whether another user owns a file than the one that this process runs as.
func isOthersFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}
