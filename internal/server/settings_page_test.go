package server

import (
	"fmt"
	"reflect"
	"strings"
)

func settingsPage() string {
	var page strings.Builder
	page.WriteString(`# The settings of a server

<!-- Written by the tests from internal/server/settings.go: make golden writes it anew. -->

A setting has the same name everywhere: ` + "`data-dir`" + ` in the YAML file that ` + "`--config`" + ` names,
QUORATE_SERVER_DATA_DIR in the environment, ` + "`--data-dir`" + ` on the command line. The command line overrides the
environment, which overrides the file. A key that does not exist is refused with its line number, and a variable that
does not exist is a warning ([all variables](command-line.md#environment)). ` + "`deploy/quorate.yaml`" + ` is a file with
all keys, explained.

` + "`quorate server run --check`" + ` with the same file, environment and flags reports whether a server would start with them,
and starts nothing.

SIGHUP makes a running server read its settings again. Those marked "on SIGHUP" change then; a change of any other
setting is logged and takes effect at the next start. If the new settings contain a fault, none of them changes and the
log names the fault.
`)
	for _, s := range settingFields() {
		if s.group != "" {
			fmt.Fprintf(&page, "\n## %s\n\n| setting | default | takes effect | meaning |\n|---|---|---|---|\n",
				s.group)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", s.key, s.defaultCell(), s.changesCell(),
			strings.ReplaceAll(s.help, "|", `\|`))
	}
	return page.String()
}

// defaultCell is empty for settings that have none.
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
		return "on SIGHUP"
	}
	return "at a restart"
}
