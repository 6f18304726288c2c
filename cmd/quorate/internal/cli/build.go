package cli

import "runtime"

// Build is where this binary comes from.
type Build struct {
	// Version is that of a release, or the description of a commit by git, or "devel".
	Version string
	// Commit and Date are those of the source, if the build knew them; Date is in the form of RFC 3339.
	Commit, Date string
}

// Platform is the operating system and the processor for which this binary was built.
func (Build) Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// String is the build on one line.
func (b Build) String() string {
	text := "quorate " + b.Version
	if b.Commit != "" {
		const short = 12
		text += " (" + b.Commit[:min(short, len(b.Commit))]
		if b.Date != "" {
			text += ", " + b.Date
		}
		text += ")"
	}
	return text + " " + runtime.Version() + " " + b.Platform()
}
