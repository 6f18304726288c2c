//go:build !unix

package server

import "io/fs"

// isOthersFile is false, because this system has no owners of files that the rule of unix could follow.
func isOthersFile(fs.FileInfo) bool { return false }
