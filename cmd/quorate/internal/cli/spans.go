package cli

import (
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/internal/manifest"
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

// FormatSpan writes a duration as [ParseSpan] reads it, without trailing zeros: 24h, not 24h0m0s, and from two days on
// with days: 7d, 2d12h.
func FormatSpan(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		days, rest := strconv.Itoa(int(d/day))+"d", d%day
		if rest == 0 {
			return days
		}
		return days + FormatSpan(rest)
	}
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

// ParseSpan reads a time such as 90s, 12h, 90d or 1d12h. The flag is named in errors.
func ParseSpan(flag, text string) (time.Duration, error) {
	span, err := parseSpan(text)
	if err != nil {
		return 0, Usagef("%s: %v", flag, err)
	}
	return span, nil
}

// mostDays is the most days of a span, so that it fits into a time.Duration.
const mostDays = 36_500

func parseSpan(text string) (time.Duration, error) {
	span, err := manifest.ParseDuration(text)
	switch {
	case err != nil && text != "0" && strings.Trim(text, "0123456789") == "" && text != "":
		return 0, Usagef("%.64q has no unit: write %.64[2]ss, %.64[2]sm, %.64[2]sh or %.64[2]sd", text, text)
	case err != nil:
		return 0, Usagef("%.64q is not a time: write days, hours, minutes and seconds, such as 30d, 48h, 1h30m or 90s", text)
	case span < 0:
		return 0, Usagef("%.64q is negative: write a time such as 90s", text)
	case span > mostDays*24*time.Hour:
		return 0, Usagef("%.64q is too long: the maximum is %dd", text, mostDays)
	}
	return span, nil
}
