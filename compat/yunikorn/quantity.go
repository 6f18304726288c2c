package yunikorn

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The resource types that every partition counts, whether or not the configuration names them. The first two have a
// unit; all other types are plain numbers, cpu among them.
const (
	vcore  = "vcore"
	memory = "memory"
	pods   = "pods"
)

// amounts are base units by resource type: thousandths of a core for vcore, bytes for memory. Never negative.
type amounts map[string]int64

// factors of the suffixes. The suffix m, a thousandth, is only known to vcore.
var factors = map[string]int64{
	"":  1,
	"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
}

// parseQuantity reads digits, white space and a suffix, with white space around it; vcore is counted in thousandths.
// The result must fit in a signed 64 bit number.
func parseQuantity(kind, text string) (int64, error) {
	trimmed := strings.TrimSpace(text)
	suffix := strings.TrimLeft(trimmed, "0123456789")
	digits := strings.TrimSuffix(trimmed, suffix)
	suffix = strings.TrimSpace(suffix)
	factor, known := factors[suffix]
	scale := int64(1)
	if kind == vcore {
		scale = 1000
		if suffix == "m" {
			factor, known, scale = 1, true, 1
		}
	}
	if digits == "" || !known {
		return 0, fmt.Errorf("%q is not a quantity of %s: write a whole number, optionally followed by one of the "+
			"suffixes %s", clipText(text), clipText(kind), suffixesOf(kind))
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err == nil && number <= math.MaxInt64/factor && number*factor <= math.MaxInt64/scale {
		return number * factor * scale, nil
	}
	return 0, fmt.Errorf("%q of %s is too large: the maximum is %d base units",
		clipText(text), clipText(kind), math.MaxInt64)
}

func suffixesOf(kind string) string {
	if kind == vcore {
		return "m k M G T P E Ki Mi Gi Ti Pi Ei"
	}
	return "k M G T P E Ki Mi Gi Ti Pi Ei"
}

// reading is a map of quantities as it was understood. What was not understood is missing in the amounts, and told
// once.
type reading struct {
	amounts  amounts
	wrong    ConfigErrors
	reported bool
}

func readAmounts(written map[string]string, path, queue string) *reading {
	if len(written) == 0 {
		return &reading{}
	}
	r := &reading{amounts: amounts{}}
	for _, kind := range slices.Sorted(maps.Keys(written)) {
		amount, err := parseQuantity(kind, written[kind])
		if err != nil {
			r.wrong = append(r.wrong, Problem{path + "." + clipText(kind), queue, ruleQuantity, err.Error()})
			continue
		}
		r.amounts[kind] = amount
	}
	return r
}

// exceedsAny names the first type of which small holds more than big allows. A type that big does not name is
// unlimited.
func exceedsAny(big, small amounts) (string, bool) {
	first, found := "", false
	for kind, amount := range small {
		if most, limited := big[kind]; limited && amount > most && (!found || kind < first) {
			first, found = kind, true
		}
	}
	return first, found
}

// minAmounts is the type by type minimum; types of either side stay.
func minAmounts(a, b amounts) amounts {
	result := make(amounts, len(a)+len(b))
	maps.Copy(result, a)
	for kind, amount := range b {
		if other, both := result[kind]; !both || amount < other {
			result[kind] = amount
		}
	}
	return result
}

func (a amounts) isZero() bool {
	for _, amount := range a {
		if amount > 0 {
			return false
		}
	}
	return true
}

// addAmounts stops at the top instead of wrapping.
func (a amounts) addAmounts(b amounts) {
	for kind, amount := range b {
		if a[kind] > math.MaxInt64-amount {
			a[kind] = math.MaxInt64
		} else {
			a[kind] += amount
		}
	}
}
