package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal tells whether somebody may be looking.
func isTerminal(talk io.Writer) bool {
	file, is := talk.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// atTerminal tells whether a stream is a terminal, and not only a device such as /dev/null.
func atTerminal(stream any) bool {
	file, is := stream.(*os.File)
	if !is {
		return false
	}
	_, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// clip cuts a text off that is too long for its line.
func clip(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}
