//go:build !unix

package atomicfile

// SyncFolder does nothing: this system has no call for it, and its file systems keep renames in a journal.
func SyncFolder(string) error { return nil }
