package access

import (
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// parseTime reads a time of RFC 3339, or a span such as 90d that begins now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	span, err := cli.ParseSpan(flag, text)
	if err != nil {
		return time.Time{}, cli.Usagef("%s: %q is neither a time such as 2026-12-24T18:00:00Z nor a span such as 90d",
			flag, text)
	}
	return now.Add(span), nil
}
