// Command tests prints the tests of some packages that do more in make verify, as a pattern for go test -run. The
// others would repeat there what they have done in make test.
//
//	go run ./internal/verify/tests ./fsm ./quota/ledger
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	pattern, err := patternOf(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(pattern)
}

// patternOf returns a regular expression for the names of the tests that do more in make verify in any of the folders.
// A folder without one is an error: it should not be given.
func patternOf(folders []string) (string, error) {
	var names []string
	for _, folder := range folders {
		p, err := parse(folder)
		if err != nil {
			return "", fmt.Errorf("%s: %w", folder, err)
		}
		found := p.exhaustiveTests()
		if len(found) == 0 {
			return "", fmt.Errorf("%s: no test calls internal/verify, directly or through others; "+
				"remove the import, or the folder from the arguments", folder)
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return "", errors.New("no folder is given")
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$", nil
}
