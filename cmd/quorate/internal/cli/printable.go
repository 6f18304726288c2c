package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Printable escapes characters that a terminal would interpret, reorder or hide: control characters, line breaks,
// invisible characters and bytes that are not UTF-8 are written as in a quoted Go string, such as \x1b. Callers
// choose labels, reasons, users, user data and addresses, so a table must not print them raw. JSON and YAML have the
// exact values.
func Printable(text string) string { return escapeUnprintable(text, "") }

// printableText is Printable for texts of several lines.
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

// IsInteractive reports whether output goes to a terminal that can repaint a line.
func IsInteractive(talk io.Writer) bool {
	file, isFile := talk.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// IsTerminal reports whether a stream is a terminal, and not only a device such as /dev/null.
func IsTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// ClipLine shortens a text to at most that many characters.
func ClipLine(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}
