package manifest

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const (
	count = quoratev1.Unit_UNIT_COUNT
	milli = quoratev1.Unit_UNIT_MILLI
	octet = quoratev1.Unit_UNIT_BYTES
)

func TestParseQuantity(t *testing.T) {
	tests := []struct {
		text string
		unit quoratev1.Unit
		want int64
	}{
		{"0", count, 0},
		{"25", count, 25},
		{"25", quoratev1.Unit_UNIT_UNSPECIFIED, 25},
		{"2k", count, 2000},
		{"1.5k", count, 1500},
		{"1.0", count, 1},
		{"250G", octet, 250_000_000_000},
		{"1.5Gi", octet, 3 << 29},
		{"0.5Ki", octet, 512},
		{"1Ei", octet, 1 << 60},
		{"4.6E", octet, 4_600_000_000_000_000_000},
		{"2", milli, 2000},
		{"500m", milli, 500},
		{"0.25", milli, 250},
		{"0.001", milli, 1},
		{"1k", milli, 1_000_000},
		{"4611686018427387903", count, MaxAmount},
		{"4611686018427387.903", milli, MaxAmount},
		{"4611686018427387903m", milli, MaxAmount},
		{"0.000000000000000000000000000000000000000000000000E", octet, 0},
	}
	for _, test := range tests {
		got, err := ParseQuantity(test.text, test.unit)
		if err != nil || got != test.want {
			t.Errorf("ParseQuantity(%q, %s) = %d, %v; want %d", test.text, UnitName(test.unit), got, err, test.want)
		}
	}
}

func TestParseQuantityRefuses(t *testing.T) {
	tests := []struct {
		text string
		unit quoratev1.Unit
		want string
	}{
		{"", count, "1 to 64 characters"},
		{strings.Repeat("1", 65), count, "1 to 64 characters"},
		{"-5", count, "negative"},
		{"-", count, "negative"},
		{"+5", count, "write a number"},
		{" 5", count, "write a number"},
		{"5 ", count, "write a number"},
		{"five", count, "write a number"},
		{".5Gi", octet, "write a number"},
		{"5.", count, "write a number"},
		{"1_000", count, "write a number"},
		{"1,5", count, "write a number"},
		{"0x10", count, "write a number"},
		{"010", count, "write a number"},
		{"1e3", count, "write a number"},
		{"1e", count, "suffixes are"},
		{"٥", count, "write a number"},
		{"250K", octet, "suffixes are"},
		{"250GB", octet, "suffixes are"},
		{"500m", count, "the unit is count"},
		{"500m", octet, "the unit is bytes"},
		{"1.5", count, "not a whole number of things"},
		{"0.5", octet, "not a whole number of bytes"},
		{"0.0005", milli, "not a whole number of thousandths"},
		{"0.5m", milli, "not a whole number of thousandths"},
		{"4611686018427387904", count, "at most 4611686018427387903"},
		{"9223372036854775807", count, "at most 4611686018427387903"},
		{"9223372036854775808", count, "at most 4611686018427387903"},
		{"4Ei", octet, "at most 4611686018427387903"},
		{"4611686018427387904m", milli, "at most 4611686018427387903m"},
		{"10E", milli, "too large"},
		{"unlimited", count, "write a number"},
	}
	for _, test := range tests {
		got, err := ParseQuantity(test.text, test.unit)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("ParseQuantity(%q, %s) = %d, %v; want an error that says %q",
				test.text, UnitName(test.unit), got, err, test.want)
		}
	}
}

func TestFormatQuantity(t *testing.T) {
	tests := []struct {
		amount int64
		unit   quoratev1.Unit
		want   string
	}{
		{0, count, "0"},
		{1_000_000, count, "1000000"},
		{-3, count, "-3"},
		{0, octet, "0"},
		{250_000_000_000, octet, "250G"},
		{16 << 30, octet, "16Gi"},
		{3 << 29, octet, "1536Mi"},
		{1500, octet, "1500"},
		{999, octet, "999"},
		{1000, octet, "1k"},
		{-1024, octet, "-1Ki"},
		{math.MaxInt64, octet, "9223372036854775807"},
		{500, milli, "500m"},
		{2000, milli, "2"},
		{2500, milli, "2500m"},
		{math.MinInt64, milli, "-9223372036854775808m"},
	}
	for _, test := range tests {
		if got := FormatQuantity(test.amount, test.unit); got != test.want {
			t.Errorf("FormatQuantity(%d, %s) = %q, want %q", test.amount, UnitName(test.unit), got, test.want)
		}
	}
}

func TestRoundQuantity(t *testing.T) {
	tests := []struct {
		amount int64
		unit   quoratev1.Unit
		want   string
	}{
		{0, octet, "0"},
		{16 << 30, octet, "16Gi"},
		{250_000_000_000, octet, "250G"},
		{1234567, octet, "1234567"},
		{12345678, octet, "~11.77Mi"},
		{(16 << 30) - 16_000_000_000, octet, "~1.09Gi"},
		{(2 << 40) - 1, octet, "~1.99Ti"},
		{math.MaxInt64, octet, "~7.99Ei"},
		{-12345678, octet, "-12345678"},
		{123456789, count, "123456789"},
		{123456789, milli, "123456789m"},
	}
	for _, test := range tests {
		if got := RoundQuantity(test.amount, test.unit); got != test.want {
			t.Errorf("RoundQuantity(%d, %s) = %q, want %q", test.amount, UnitName(test.unit), got, test.want)
		}
	}
}

func TestQuantitiesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, MaxAmount).Draw(t, "amount")
		amount -= amount % rapid.SampledFrom([]int64{1, 1000, 1 << 20, 1e12}).Draw(t, "round to")
		unit := rapid.SampledFrom([]quoratev1.Unit{count, milli, octet}).Draw(t, "unit")
		text := FormatQuantity(amount, unit)
		if got, err := ParseQuantity(text, unit); err != nil || got != amount {
			t.Fatalf("%d %s was written as %q and read as %d, %v", amount, UnitName(unit), text, got, err)
		}
	})
}

func TestLimits(t *testing.T) {
	for _, text := range []string{"unlimited", "unset", "0", "25", "advisory:25"} {
		limit, err := ParseLimit(text, count)
		if err != nil {
			t.Errorf("ParseLimit(%q): %v", text, err)
			continue
		}
		if got := FormatLimit(limit, count); got != text {
			t.Errorf("limit %q comes back as %q", text, got)
		}
	}
	if _, err := ParseLimit("none", count); err == nil || !strings.Contains(err.Error(), "or write unlimited") {
		t.Errorf("ParseLimit(none) says %v, want a hint at unlimited", err)
	}
	if got := FormatLimit(nil, count); got != "unset" {
		t.Errorf("no limit is written as %q, want unset", got)
	}
}

func FuzzParseQuantity(f *testing.F) {
	for _, seed := range []string{"25", "1.5Gi", "500m", "-1", "4611686018427387904", "0.001", "1E", "10e3", ""} {
		f.Add(seed, int32(count))
		f.Add(seed, int32(milli))
		f.Add(seed, int32(octet))
	}
	f.Fuzz(func(t *testing.T, text string, number int32) {
		unit := quoratev1.Unit(number)
		amount, err := ParseQuantity(text, unit)
		if err != nil {
			return
		}
		if amount < 0 {
			t.Fatalf("%q was read as %d", text, amount)
		}
		again, err := ParseQuantity(FormatQuantity(amount, unit), unit)
		if err != nil || again != amount {
			t.Fatalf("%q was read as %d, and %q as %d, %v", text, amount, FormatQuantity(amount, unit), again, err)
		}
	})
}
