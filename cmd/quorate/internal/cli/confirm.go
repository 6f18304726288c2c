package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a person at a terminal whether to go on, and returns an error unless the answer is yes. Without a
// terminal it asks nothing.
func (c *Env) Confirm(question string) error {
	if !IsTerminal(c.In) || !IsTerminal(c.ErrOut) {
		return nil
	}
	if _, err := fmt.Fprintf(c.ErrOut, "%s Go on? [y/N] ", Printable(question)); err != nil {
		return fmt.Errorf("ask for confirmation: %w", err)
	}
	const longest = 100
	line, err := bufio.NewReader(io.LimitReader(c.In, longest)).ReadString('\n')
	if err != nil && line == "" {
		return fmt.Errorf("nothing was typed, and nothing was changed: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return Usagef("nothing was changed")
}
