//go:build unix

package access

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

func localCommands() []cli.Constructor { return []cli.Constructor{newRecoverCmd} }
