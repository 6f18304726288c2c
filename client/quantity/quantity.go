// Package quantity reads and writes amounts as people do: 16Gi of bytes, 500m of a core.
package quantity

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

var unitNames = map[quoratev1.Unit]string{
	quoratev1.Unit_UNIT_COUNT: "count",
	quoratev1.Unit_UNIT_MILLI: "milli",
	quoratev1.Unit_UNIT_BYTES: "bytes",
	quoratev1.Unit_UNIT_ITEMS: "items",
}

// suffixes are powers of thousand and of 1024, in the order in which Format prefers them.
var suffixes = []struct {
	name   string
	factor int64
}{
	{"k", 1e3},
	{"M", 1e6},
	{"G", 1e9},
	{"T", 1e12},
	{"P", 1e15},
	{"E", 1e18},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"Pi", 1 << 50},
	{"Ei", 1 << 60},
}

const (
	// milliSuffix means a thousandth. Only the unit milli has it.
	milliSuffix = "m"
	// maxQuantity is the most bytes of an amount as text, which suffices for every amount with decimals.
	maxQuantity = 64
)

// Max is the largest amount that Parse reads: 2^62-1 base units, the most that the servers take.
const Max int64 = 1<<62 - 1

var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:0|[1-9][0-9]*)(?:\.[0-9]+)?)([eE][-+]?[0-9]{1,2})?([A-Za-z]*)$`)
})

// UnitName returns the name of a unit: count, milli, bytes or items. An unspecified unit is count.
func UnitName(unit quoratev1.Unit) string {
	if name, found := unitNames[unit]; found {
		return name
	}
	return unitNames[quoratev1.Unit_UNIT_COUNT]
}

// UnitOf returns the unit of a name; found is false for another text.
func UnitOf(name string) (unit quoratev1.Unit, found bool) {
	for unit, known := range unitNames {
		if known == name {
			return unit, true
		}
	}
	return quoratev1.Unit_UNIT_UNSPECIFIED, false
}

// Parse parses an amount and returns base units. An amount is a decimal number with an optional suffix: k M G T
// P E (powers of 1000), Ki Mi Gi Ti Pi Ei (powers of 1024), or m (thousandths) for the unit milli. For milli, a number
// without a suffix counts whole things: "2" is 2,000 base units, "500m" is 500. For bytes, KiB and so on mean Ki. A
// number may have an exponent instead of a suffix, "1e+06", because other YAML tools write large numbers so.
//
// An amount that is negative, is not a whole number of base units, or exceeds Max is an error. So is one that
// people read in two ways, such as 1GB; the error says how each of them is written.
func Parse(text string, unit quoratev1.Unit) (int64, error) {
	if text == "" || len(text) > maxQuantity {
		return 0, fmt.Errorf("%.64q is not an amount: it has 1 to %d characters, such as 25 or 1.5Gi",
			text, maxQuantity)
	}
	if text[0] == '-' {
		return 0, fmt.Errorf("%q is negative: an amount is at least 0", text)
	}
	parts := pattern().FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("%q is not an amount: %s", text, adviseNumber(text))
	}
	number, exponent, suffix := parts[1], parts[2], parts[3]
	if exponent != "" && suffix != "" {
		return 0, fmt.Errorf("%q is not an amount: write an exponent or a suffix, not both", text)
	}
	factor, err := factorOf(number, suffix, unit)
	if err != nil {
		return 0, fmt.Errorf("%q is not an amount: %w", text, err)
	}
	amount, valid := new(big.Rat).SetString(number + exponent)
	if !valid {
		return 0, fmt.Errorf("%q is not an amount: %q is not a decimal number", text, number+exponent)
	}
	amount.Mul(amount, factor)
	if !amount.IsInt() {
		return 0, fmt.Errorf("%q is not a whole number of %s", text, baseUnits(unit))
	}
	if amount.Num().Cmp(big.NewInt(Max)) > 0 {
		return 0, fmt.Errorf("%q is too large: an amount is at most %s", text, Format(Max, unit))
	}
	return amount.Num().Int64(), nil
}

// grouped matches numbers with marks between their digits.
var grouped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+([_,' ])[0-9]+.*$`) })

// adviseNumber says how a text is written that is not a number with a suffix.
func adviseNumber(text string) string {
	marks := grouped().FindStringSubmatch(text)
	switch {
	case marks != nil && marks[1] == ",":
		return "a comma has two meanings: write 1.5 with a point, and 1500 without marks between the digits"
	case marks != nil:
		return "write the digits without marks between them, such as 1500"
	}
	return "write a number and perhaps a suffix, such as 25, 250G or 1.5Gi"
}

// adviseSuffix says how an unknown suffix that people use is written. Everyone means the same by GiB, but half of the
// readers take GB for powers of 1024.
func adviseSuffix(number, suffix string, unit quoratev1.Unit) string {
	if unit == quoratev1.Unit_UNIT_BYTES && strings.EqualFold(suffix, "b") {
		return "the unit is bytes: write " + number
	}
	name := strings.TrimSuffix(strings.ToLower(suffix), "b")
	for i, s := range suffixes[:len(suffixes)/2] {
		binary := suffixes[i+len(suffixes)/2].name
		switch name {
		case strings.ToLower(s.name):
			return fmt.Sprintf("write %s%s (10^%d) or %s%s (2^%d)", number, s.name, 3*(i+1), number, binary, 10*(i+1))
		case strings.ToLower(binary):
			return fmt.Sprintf("write %s%s (2^%d)", number, binary, 10*(i+1))
		}
	}
	return "suffixes are k M G T P E and Ki Mi Gi Ti Pi Ei, and m for the unit milli"
}

func factorOf(number, suffix string, unit quoratev1.Unit) (*big.Rat, error) {
	if inBytes, found := strings.CutSuffix(suffix, "iB"); found && unit == quoratev1.Unit_UNIT_BYTES {
		suffix = inBytes + "i"
	}
	one := big.NewRat(1, 1)
	if unit == quoratev1.Unit_UNIT_MILLI {
		one.SetInt64(1000)
	}
	if suffix == "" {
		return one, nil
	}
	if suffix == milliSuffix {
		if unit != quoratev1.Unit_UNIT_MILLI {
			return nil, fmt.Errorf("m means thousandths, and the unit is %s", UnitName(unit))
		}
		return big.NewRat(1, 1), nil
	}
	for _, s := range suffixes {
		if s.name == suffix {
			return one.Mul(one, new(big.Rat).SetInt64(s.factor)), nil
		}
	}
	return nil, errors.New(adviseSuffix(number, suffix, unit))
}

func baseUnits(unit quoratev1.Unit) string {
	switch unit {
	case quoratev1.Unit_UNIT_BYTES:
		return "bytes"
	case quoratev1.Unit_UNIT_MILLI:
		return "thousandths"
	case quoratev1.Unit_UNIT_COUNT, quoratev1.Unit_UNIT_ITEMS, quoratev1.Unit_UNIT_UNSPECIFIED:
		return "things"
	}
	return "things"
}

// Format formats an amount exactly: bytes with the suffix that leaves the fewest digits, milli as whole things
// or with m, counts and items without a suffix. Parse returns the same amount for the result, from 0 to
// Max.
func Format(amount int64, unit quoratev1.Unit) string {
	plain := strconv.FormatInt(amount, 10)
	switch unit {
	case quoratev1.Unit_UNIT_MILLI:
		if amount%1000 == 0 {
			return strconv.FormatInt(amount/1000, 10)
		}
		return plain + milliSuffix
	case quoratev1.Unit_UNIT_BYTES:
		return shortestText(amount, plain)
	case quoratev1.Unit_UNIT_COUNT, quoratev1.Unit_UNIT_ITEMS, quoratev1.Unit_UNIT_UNSPECIFIED:
		return plain
	}
	return plain
}

func shortestText(amount int64, best string) string {
	if amount == 0 {
		return best
	}
	for _, s := range suffixes {
		if amount%s.factor != 0 {
			continue
		}
		if text := strconv.FormatInt(amount/s.factor, 10) + s.name; len(text) < len(best) {
			best = text
		}
	}
	return best
}

// Round formats an amount for a table: exactly if that is short, and otherwise rounded down to two decimals and
// marked with ~. Only bytes are ever rounded.
func Round(amount int64, unit quoratev1.Unit) string {
	const short = 7
	exact := Format(amount, unit)
	if unit != quoratev1.Unit_UNIT_BYTES || len(exact) <= short || amount < 0 {
		return exact
	}
	largest := suffixes[0]
	for _, s := range suffixes {
		if s.factor <= amount && strings.HasSuffix(s.name, "i") {
			largest = s
		}
	}
	hundredths := new(big.Int).Mul(big.NewInt(amount), big.NewInt(100))
	hundredths.Quo(hundredths, big.NewInt(largest.factor))
	whole, part := new(big.Int).QuoRem(hundredths, big.NewInt(100), new(big.Int))
	return fmt.Sprintf("~%d.%02d%s", whole, part, largest.name)
}
