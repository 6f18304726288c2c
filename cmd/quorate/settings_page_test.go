package main

import (
	"fmt"
	"reflect"
	"strings"
)

// settingsPage is docs/server.md: every setting, as the struct says it.
func settingsPage() string {
	var page strings.Builder
	page.WriteString(`# The settings of a server

<!-- Written by the tests from cmd/quorate/settings.go: make golden writes it anew. -->

A setting has the same name everywhere: ` + "`data-dir`" + ` in the YAML file that ` + "`--config`" + ` names, QUORATE_DATA_DIR in the
environment, ` + "`--data-dir`" + ` on the command line. The command line overrides the environment, and that overrides the file. A key
that does not exist is refused with its line. ` + "`deploy/quorate.yaml`" + ` is a file with all keys, explained.

` + "`quorate server --check`" + ` with the same file, environment and flags says whether a server would start with them, and starts
nothing.

SIGHUP makes a running server read its settings again. Those marked "at once" change then; a change of any other is named in
the log and waits for the next start. Settings with a fault change nothing, and the log says what is wrong.
`)
	for _, s := range allSettings() {
		if s.group != "" {
			fmt.Fprintf(&page, "\n## %s\n\n| setting | default | changes | says |\n|---|---|---|---|\n", s.group)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", s.key, s.defaultCell(), s.changesCell(), strings.ReplaceAll(s.help, "|", `\|`))
	}
	return page.String()
}

// defaultCell is what a server that is told nothing goes by; empty for settings that are then not there.
func (s setting) defaultCell() string {
	byDefault := s.byDefault
	if kind := s.field.Type.Kind(); byDefault == "" && kind != reflect.String && kind != reflect.Slice {
		byDefault = fmt.Sprint(reflect.Zero(s.field.Type))
	}
	if byDefault == "" {
		return ""
	}
	return "`" + byDefault + "`"
}

func (s setting) changesCell() string {
	if s.reloads {
		return "at once"
	}
	return "at the next start"
}
