package cli

import (
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// RoundSpan writes a remaining time, rounded up to a unit that suits its length.
func RoundSpan(ms int64) string {
	step := 100 * time.Millisecond
	const most = (math.MaxInt64 - int64(time.Minute)) / int64(time.Millisecond) // rounding up must not overflow
	d := time.Duration(max(0, min(ms, most))) * time.Millisecond
	switch {
	case d > time.Hour:
		step = time.Minute
	case d > time.Minute:
		step = time.Second
	}
	return FormatSpan((d + step - 1).Truncate(step))
}

// FormatSpan writes a duration without trailing zeros: 48h, not 48h0m0s.
func FormatSpan(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// FormatTime writes a wall clock time; empty if there is none.
func FormatTime(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return at.AsTime().UTC().Format(time.RFC3339)
}

const (
	day = 24 * time.Hour
	// mostDays is the most days of a span, so that it fits into a time.Duration.
	mostDays = 36_500
)

// ParseSpan reads a duration such as 12h, or a number of days such as 90d. The flag is named in errors.
func ParseSpan(flag, text string) (time.Duration, error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 32)
		if err != nil || days > mostDays {
			return 0, Usagef("%s: %q is not a number of days up to %d, such as 90d", flag, text, mostDays)
		}
		return time.Duration(days) * day, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return 0, Usagef("%s: %q is not a time such as 12h or 90d", flag, text)
	}
	return span, nil
}
