package manifest

import (
	"strings"
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	count = quoratev1.Unit_UNIT_COUNT
	milli = quoratev1.Unit_UNIT_MILLI
	octet = quoratev1.Unit_UNIT_BYTES
)

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
