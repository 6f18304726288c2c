package recurrence

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

// daySpan is when a window begins on its date, and when it ends, by the clock.
type daySpan struct {
	begin, end clockTime
	// endsOn is the day of the week on which the window ends, if endsOnDay.
	endsOn    time.Weekday
	endsOnDay bool
	text      string
}

// clockTime is a time of the day as the clock shows it, counted from midnight.
type clockTime time.Duration

const midnight = clockTime(24 * time.Hour)

func (c clockTime) String() string {
	return fmt.Sprintf("%02d:%02d", time.Duration(c)/time.Hour, time.Duration(c)/time.Minute%60)
}

func parseSpan(words *wordList) (daySpan, error) {
	text := words.next()
	from, until, isSpan := strings.Cut(text, "-")
	if !isSpan {
		return daySpan{}, fmt.Errorf("%q are not times: write HH:MM-HH:MM after the days, such as 18:00-08:00, or "+
			"18:00-mon 08:00", quota.Clip(text))
	}
	var s daySpan
	if s.endsOn, s.endsOnDay = parseWeekday(strings.ToLower(until)); s.endsOnDay {
		until = words.next()
	}
	var err error
	if s.begin, err = parseClock(from); err == nil && s.begin == midnight {
		err = fmt.Errorf("a window cannot begin at %s: write 00:00, and the day after it", midnight)
	}
	if err == nil {
		s.end, err = parseClock(until)
	}
	if err == nil && s.begin == s.end && !s.endsOnDay {
		err = fmt.Errorf("the window begins and ends at %s: write 00:00-24:00 for a whole day", s.begin)
	}
	s.text = fmt.Sprintf("%s-%s", s.begin, s.end)
	if s.endsOnDay {
		s.text = fmt.Sprintf("%s-%s %s", s.begin, dayNames[s.endsOn], s.end)
	}
	return s, err
}

// parseClock reads 00:00 to 24:00.
func parseClock(text string) (clockTime, error) {
	at, err := time.Parse("15:04", text)
	switch {
	case text == midnight.String():
		return midnight, nil
	case err != nil || len(text) != len("15:04"):
		return 0, fmt.Errorf("%q is not a time: write HH:MM, 00:00 to 24:00", quota.Clip(text))
	}
	return clockTime(at.Sub(at.Truncate(24 * time.Hour))), nil
}

// endDate is the date on which the window ends that begins on a date: the first one that the span allows.
func (s daySpan) endDate(date time.Time) time.Time {
	if s.end <= s.begin {
		date = date.AddDate(0, 0, 1)
	}
	for s.endsOnDay && date.Weekday() != s.endsOn {
		date = date.AddDate(0, 0, 1)
	}
	return date
}
