package yunikorn

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

func TestQuantity(t *testing.T) {
	const refused = -1
	tests := []struct {
		kind, text string
		want       int64
	}{
		{"memory", "0", 0},
		{"memory", "0010", 10},
		{"memory", "5k", 5000},
		{"memory", "5M", 5e6},
		{"memory", "5G", 5e9},
		{"memory", "5T", 5e12},
		{"memory", "5P", 5e15},
		{"memory", "5E", 5e18},
		{"memory", "5Ki", 5 << 10},
		{"memory", "5Mi", 5 << 20},
		{"memory", "5Gi", 5 << 30},
		{"memory", "5Ti", 5 << 40},
		{"memory", "5Pi", 5 << 50},
		{"memory", "5Ei", 5 << 60},
		{"memory", " \t10 \n G ", 10e9},
		{"memory", "9223372036854775807", math.MaxInt64},
		{"memory", "9223372036854775808", refused},
		{"memory", "10E", refused},
		{"memory", "8Ei", refused},
		{"memory", "0E", 0},
		{"memory", "500m", refused},
		{"memory", "", refused},
		{"memory", "G", refused},
		{"memory", "+1", refused},
		{"memory", "-1", refused},
		{"memory", "1.5G", refused},
		{"memory", "1e3", refused},
		{"memory", "1_000", refused},
		{"memory", "0x10", refused},
		{"memory", "1 0", refused},
		{"memory", "1GG", refused},
		{"memory", "1B", refused},
		{"memory", "5K", refused},
		{"memory", "5g", refused},
		{"memory", "5ki", refused},
		{"memory", "5KI", refused},
		{"memory", "٣", refused},
		{"vcore", "10", 10000},
		{"vcore", "500m", 500},
		{"vcore", "500 m", 500},
		{"vcore", "2k", 2e6},
		{"vcore", "1Ki", 1024000},
		{"vcore", "9P", 9e18},
		{"vcore", "10P", refused},
		{"vcore", "9223372036854775807m", math.MaxInt64},
		{"vcore", "9223372036854775808m", refused},
		{"vcore", "1mm", refused},
		{"cpu", "10", 10},
		{"cpu", "500m", refused},
		{"nvidia.com/gpu", "4", 4},
	}
	for _, test := range tests {
		t.Run(test.kind+" "+test.text, func(t *testing.T) {
			got, err := parseQuantity(test.kind, test.text)
			if err != nil {
				got = refused
			}
			if got != test.want {
				t.Errorf("%d, want %d; %v", got, test.want, err)
			}
		})
	}
}

var written = regexp.MustCompile(`^\s*([0-9]+)\s*(|m|[kMGTPE]|[KMGTPE]i)\s*$`)

// FuzzQuantity compares parsed quantities with arbitrary-precision arithmetic.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{"0", "25G", " 500 m ", "9223372036854775807", "8Ei", "1e3", "-1", "1 0", "٣", ""} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, cores bool) {
		kind, scale := memory, int64(1)
		if cores {
			kind, scale = vcore, 1000
		}
		got, err := parseQuantity(kind, text)
		parts := written.FindStringSubmatch(text)
		if parts == nil || parts[2] == "m" && !cores {
			if err == nil && !strings.ContainsFunc(text, oddSpace) {
				t.Fatalf("%q is not a quantity of %s, but was read as %d", text, kind, got)
			}
			return
		}
		want, _ := new(big.Int).SetString(parts[1], 10)
		if parts[2] != "m" {
			want.Mul(want, big.NewInt(factors[parts[2]])).Mul(want, big.NewInt(scale))
		}
		if !want.IsInt64() {
			if err == nil {
				t.Fatalf("%q of %s is %s, but was read as %d", text, kind, want, got)
			}
			return
		}
		if err != nil || got != want.Int64() {
			t.Fatalf("%q of %s is %s, but was read as %d, %v", text, kind, want, got, err)
		}
	})
}

// oddSpace is white space beyond ASCII, which the pattern does not match.
func oddSpace(r rune) bool { return unicode.IsSpace(r) && (r > unicode.MaxASCII || r == '\v') }
