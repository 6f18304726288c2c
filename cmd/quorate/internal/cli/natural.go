package cli

import (
	"cmp"
	"strings"
)

// CompareNatural orders texts as people do: digits in a row are compared as numbers, so that account-2 comes before
// account-10. Different texts are never equal.
func CompareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := leadingDigits(x), leadingDigits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if order := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); order != 0 {
			return order
		}
		x, y = x[m:], y[n:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func leadingDigits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
