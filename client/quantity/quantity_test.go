package quantity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

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
		got, err := Parse(row.Text, unit)
		switch {
		case !known:
			t.Errorf("there is no unit %s", row.Unit)
		case row.Refused != "" && (err == nil || !strings.Contains(err.Error(), row.Refused)):
			t.Errorf("Parse(%q, %s) = %d, %v; want an error that says %q", row.Text, row.Unit, got, err, row.Refused)
		case row.Refused == "" && (err != nil || strconv.FormatInt(got, 10) != row.Amount):
			t.Errorf("Parse(%q, %s) = %d, %v; want %s", row.Text, row.Unit, got, err, row.Amount)
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
		if got := Format(test.amount, test.unit); got != test.want {
			t.Errorf("Format(%d, %s) = %q, want %q", test.amount, UnitName(test.unit), got, test.want)
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
		if got := Round(test.amount, test.unit); got != test.want {
			t.Errorf("Round(%d, %s) = %q, want %q", test.amount, UnitName(test.unit), got, test.want)
		}
	}
}

func TestQuantitiesRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		amount := random.Int64N(Max) >> random.IntN(62)
		amount -= amount % []int64{1, 1000, 1 << 20, 1e12}[random.IntN(4)]
		unit := []quoratev1.Unit{count, milli, octet}[random.IntN(3)]
		text := Format(amount, unit)
		if got, err := Parse(text, unit); err != nil || got != amount {
			t.Fatalf("%d %s was written as %q and read as %d, %v", amount, UnitName(unit), text, got, err)
		}
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
		amount, err := Parse(text, unit)
		if err != nil {
			return
		}
		if amount < 0 {
			t.Fatalf("%q was read as %d", text, amount)
		}
		again, err := Parse(Format(amount, unit), unit)
		if err != nil || again != amount {
			t.Fatalf("%q was read as %d, and %q as %d, %v", text, amount, Format(amount, unit), again, err)
		}
	})
}
