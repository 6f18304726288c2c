package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Printable shows what a terminal would obey, reorder or hide: control characters, line breaks, characters without a shape
// and bytes that are not UTF-8 are written as Go writes them in a quoted string, such as \x1b. Labels, reasons, users, user
// data and addresses are whatever their callers chose. JSON and YAML say exactly what they are.
func Printable(text string) string { return escapeUnprintable(text, "") }

// printableText is printable for texts of several lines.
func printableText(text string) string { return escapeUnprintable(text, "\n\t") }

func escapeUnprintable(text, keep string) string {
	plain := func(r rune, width int) bool {
		return (strconv.IsPrint(r) || strings.ContainsRune(keep, r)) && (r != utf8.RuneError || width > 1)
	}
	var shown strings.Builder
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		if plain(r, width) {
			shown.WriteRune(r)
		} else {
			quoted := strconv.Quote(text[i : i+width])
			shown.WriteString(quoted[1 : len(quoted)-1])
		}
		i += width
	}
	return shown.String()
}

// printableArgs are arguments of a format whose texts are printable.
func printableArgs(args []any, show func(string) string) []any {
	shown := make([]any, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case string:
			shown[i] = show(value)
		case error:
			shown[i] = show(value.Error())
		case fmt.Stringer:
			shown[i] = show(value.String())
		default:
			shown[i] = arg
		}
	}
	return shown
}

// IsInteractive tells whether somebody may be looking.
func IsInteractive(talk io.Writer) bool {
	file, is := talk.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// IsTerminal tells whether a stream is a terminal, and not only a device such as /dev/null.
func IsTerminal(stream any) bool {
	file, is := stream.(*os.File)
	if !is {
		return false
	}
	_, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// ClipLine cuts a text off that is too long for its line.
func ClipLine(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}
