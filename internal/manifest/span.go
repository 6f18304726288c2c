package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// The longest times, the same as the API's.
const (
	maxTTL      = 7 * 24 * time.Hour
	maxGrace    = time.Hour
	maxOvertake = 7 * 24 * time.Hour
	maxLifespan = 366 * day // also of an item in a state

	day = 24 * time.Hour
)

// parseSpan is 0 if the key is absent.
func (p *parser) parseSpan(what, key string, sections map[string]value, most time.Duration) int64 {
	v, found := sections[key]
	if !found {
		return 0
	}
	if v.kind != kindText {
		p.addProblem(v.line, v.column, "%s of %s is a time, such as 90s, 30m, 1h30m or 30d, not %s", key, what,
			v.describeValue())
		return 0
	}
	span, err := durationMs(v.text, most)
	if err != nil {
		p.addProblem(v.line, v.column, "%s of %s: %v", key, what, err)
	}
	return span
}

// ParseDuration parses a duration in Go's format, or one that begins with days, such as 30d or 1d12h. Its errors are
// for callers to word.
func ParseDuration(text string) (time.Duration, error) {
	number, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(number, 10, 16)
	if err != nil || rest == "" {
		return time.Duration(days) * day, err
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || strings.ContainsAny(rest[:1], "+-")) {
		err = strconv.ErrSyntax
	}
	return time.Duration(days)*day + d, err
}

func durationMs(text string, most time.Duration) (int64, error) {
	d, err := ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.64q is not a duration: write days, hours, minutes and seconds, such as 30d, 48h, 1h30m "+
			"or 90s", text)
	case d <= 0:
		return 0, fmt.Errorf("%q is not positive: write a longer time, or leave the line out for the default", text)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is not a whole number of milliseconds", text)
	case d > most:
		return 0, fmt.Errorf("%q is too long: the maximum is %s", text, formatSpan(most.Milliseconds()))
	}
	return d.Milliseconds(), nil
}

// formatSpan formats milliseconds in the shortest form that durationMs reads: 48h, not 48h0m0s.
func formatSpan(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d.Milliseconds() != ms {
		return fmt.Sprintf("%dms", ms) // beyond what a Duration can be: for Parse to refuse
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

// formatDays is formatSpan for spans that people think of in days.
func formatDays(ms int64) string {
	if days := ms / day.Milliseconds(); days > 0 && ms%day.Milliseconds() == 0 {
		return strconv.FormatInt(days, 10) + "d"
	}
	return formatSpan(ms)
}

func (v *value) addSpan(key string, ms int64) {
	if ms != 0 {
		v.addEntry(key, value{text: formatSpan(ms), plain: true})
	}
}

// queueings are the names of the orders in which requests wait.
var queueings = map[quoratev1.Queueing]string{
	quoratev1.Queueing_QUEUEING_STRICT:      "strict",
	quoratev1.Queueing_QUEUEING_BEST_EFFORT: "best-effort",
}

func (p *parser) parseQueueing(what string, sections map[string]value) quoratev1.Queueing {
	v, found := sections["queueing"]
	if !found {
		return quoratev1.Queueing_QUEUEING_UNSPECIFIED
	}
	for known, word := range queueings {
		if v.kind == kindText && v.text == word {
			return known
		}
	}
	p.addProblem(v.line, v.column, "queueing of %s must be strict or best-effort, not %s", what, v.describeValue())
	return quoratev1.Queueing_QUEUEING_UNSPECIFIED
}

// tenantsSee are the words for what callers learn of the levels above theirs.
var tenantsSee = map[quoratev1.TenantsSee]string{
	quoratev1.TenantsSee_TENANTS_SEE_TOTALS:  "totals",
	quoratev1.TenantsSee_TENANTS_SEE_NAMES:   "names",
	quoratev1.TenantsSee_TENANTS_SEE_NOTHING: "nothing",
}

func (p *parser) parseTenantsSee(what string, sections map[string]value) quoratev1.TenantsSee {
	v, found := sections["tenants-see"]
	if !found {
		return quoratev1.TenantsSee_TENANTS_SEE_UNSPECIFIED
	}
	for known, word := range tenantsSee {
		if v.kind == kindText && v.text == word {
			return known
		}
	}
	p.addProblem(v.line, v.column, "tenants-see of %s must be totals, names or nothing, not %s", what, v.describeValue())
	return quoratev1.TenantsSee_TENANTS_SEE_UNSPECIFIED
}

// parseLeases is nil if there are none.
func (p *parser) parseLeases(what string, sections map[string]value) *quoratev1.LeaseSettings {
	v, found := sections["leases"]
	if !found {
		return nil
	}
	place := "leases of " + what
	terms := p.knownSections(place, v, leasesMap)
	if v.kind == kindMap && len(v.entries) == 0 {
		p.addProblem(v.line, v.column, "%s are empty: write leases: {default-ttl: 30m}, or leave the line out", place)
	}
	settings := &quoratev1.LeaseSettings{
		DefaultTtlMs: p.parseSpan(place, "default-ttl", terms, maxTTL),
		MaxTtlMs:     p.parseSpan(place, "max-ttl", terms, maxTTL),
		GraceMs:      p.parseSpan(place, "grace", terms, maxGrace),
	}
	if most := settings.GetMaxTtlMs(); most > 0 && settings.GetDefaultTtlMs() > most {
		p.addProblem(v.line, v.column, "%s: their default-ttl, %s, is longer than their max-ttl, %s",
			place, formatSpan(settings.GetDefaultTtlMs()), formatSpan(most))
	}
	return settings
}

func leasesValue(s *quoratev1.LeaseSettings) value {
	v := value{kind: kindMap}
	v.addSpan("default-ttl", s.GetDefaultTtlMs())
	v.addSpan("max-ttl", s.GetMaxTtlMs())
	v.addSpan("grace", s.GetGraceMs())
	return v
}
