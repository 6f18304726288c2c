package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/term"
)

// pagerVariable names the program that shows long tables, before PAGER. An empty value or cat shows them at once.
const pagerVariable = "QUORATE_PAGER"

// pager is the command line of the pager, for the shell; empty for none. Without a variable it is less, if there is
// one.
func pager() string {
	for _, name := range []string{pagerVariable, "PAGER"} {
		if value, isSet := os.LookupEnv(name); isSet {
			if value == "cat" {
				return ""
			}
			return value
		}
	}
	if path, err := exec.LookPath("less"); err == nil {
		return path
	}
	return ""
}

// writePaged writes a text to standard output, through a pager if it is a table for a terminal and has more lines than
// that.
func (c *Env) writePaged(text []byte) error {
	command := pager()
	if command == "" || c.following || !c.IsTable() || !IsTerminal(c.Out) || !IsTerminal(c.In) {
		return c.Write(text)
	}
	screen, _ := c.Out.(*os.File) // IsTerminal is false for everything else
	_, height, err := term.GetSize(int(screen.Fd()))
	if err != nil || bytes.Count(text, []byte("\n")) < height {
		return c.Write(text)
	}
	show := exec.Command("sh", "-c", command) //nolint:noctx // the person who reads ends it
	show.Stdin, show.Stdout, show.Stderr = bytes.NewReader(text), c.Out, c.ErrOut
	show.Env = append(os.Environ(), "LESS="+cmp.Or(os.Getenv("LESS"), "FRX"))
	if err := show.Run(); err != nil {
		return fmt.Errorf("show the answer with the pager %q, which %s chooses: %w", command, pagerVariable, err)
	}
	return nil
}
