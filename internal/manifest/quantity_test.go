package manifest

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	count = quoratev1.Unit_UNIT_COUNT
	milli = quoratev1.Unit_UNIT_MILLI
	octet = quoratev1.Unit_UNIT_BYTES
)

// TestQuantities plays the table that the dashboard's parser plays, too (web/ui/src/requests/quantity.test.ts): amounts
// mean the same in manifests, on the command line and in the browser.
func TestQuantities(t *testing.T) {
	text, err := os.ReadFile("testdata/quantities.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Text, Unit, Amount, Refused string }
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 80 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	units := map[string]quoratev1.Unit{"unspecified": quoratev1.Unit_UNIT_UNSPECIFIED}
	for unit, name := range unitNames {
		units[name] = unit
	}
	for _, row := range rows {
		unit, known := units[row.Unit]
		got, err := ParseQuantity(row.Text, unit)
		switch {
		case !known:
			t.Errorf("there is no unit %s", row.Unit)
		case row.Refused != "" && (err == nil || !strings.Contains(err.Error(), row.Refused)):
			t.Errorf("ParseQuantity(%q, %s) = %d, %v; want an error that says %q", row.Text, row.Unit, got, err, row.Refused)
		case row.Refused == "" && (err != nil || strconv.FormatInt(got, 10) != row.Amount):
			t.Errorf("ParseQuantity(%q, %s) = %d, %v; want %s", row.Text, row.Unit, got, err, row.Amount)
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
