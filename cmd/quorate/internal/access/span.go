package access

import (
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	day = 24 * time.Hour
	// mostDays is the most days of a span, so that it fits into a time.Duration.
	mostDays = 36_500
)

// parseSpan reads a duration such as 12h, or a number of days such as 90d.
func parseSpan(flag, text string) (time.Duration, error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 32)
		if err != nil || days > mostDays {
			return 0, cli.Usagef("%s: %q is not a number of days up to %d, such as 90d", flag, text, mostDays)
		}
		return time.Duration(days) * day, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return 0, cli.Usagef("%s: %q is not a time such as 12h or 90d", flag, text)
	}
	return span, nil
}

// parseTime reads a time of RFC 3339, or a span such as 90d that begins now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	span, err := parseSpan(flag, text)
	if err != nil {
		return time.Time{}, cli.Usagef("%s: %q is neither a time such as 2026-12-24T18:00:00Z nor a span such as 90d",
			flag, text)
	}
	return now.Add(span), nil
}
