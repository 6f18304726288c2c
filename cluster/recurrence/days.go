package recurrence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

// dayRule selects the dates on which windows begin: by day of the week, or by day of the month.
type dayRule struct {
	weekdays  [7]bool  // by time.Weekday
	monthDays [32]bool // by number; [0] is not used
	text      string
}

func (d dayRule) includes(date time.Time) bool {
	return d.weekdays[date.Weekday()] || d.monthDays[date.Day()]
}

const monthly = "monthly"

// dayNames are the days of the week as they are written, by time.Weekday.
var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// groups of days have words of their own.
var groups = map[string][2]time.Weekday{
	"daily": {time.Monday, time.Sunday}, "weekdays": {time.Monday, time.Friday}, "weekends": {time.Saturday, time.Sunday},
}

func parseDays(words *wordList) (dayRule, error) {
	text := strings.ToLower(words.next())
	if text == monthly {
		return parseMonthDays(words.next())
	}
	d := dayRule{text: text}
	for part := range strings.SplitSeq(text, ",") {
		first, last, err := parseWeekdays(part)
		if err != nil {
			return dayRule{}, err
		}
		for day := first; ; day = (day + 1) % 7 {
			if d.weekdays[day] = true; day == last {
				break
			}
		}
	}
	return d, nil
}

func parseWeekdays(text string) (first, last time.Weekday, err error) {
	if group, found := groups[text]; found {
		return group[0], group[1], nil
	}
	from, to, several := strings.Cut(text, "-")
	if !several {
		to = from
	}
	first, known := parseWeekday(from)
	last, lastKnown := parseWeekday(to)
	if !known || !lastKnown {
		return 0, 0, fmt.Errorf("%q are not days: write daily, weekdays, weekends, days such as mon,wed,fri or mon-thu, or "+
			"monthly with days of the month", quota.Clip(text))
	}
	return first, last, nil
}

func parseWeekday(text string) (time.Weekday, bool) {
	i := slices.Index(dayNames, text)
	return time.Weekday(i), i >= 0
}

func parseMonthDays(text string) (dayRule, error) {
	d := dayRule{text: monthly + " " + text}
	for part := range strings.SplitSeq(text, ",") {
		day, err := strconv.Atoi(part)
		if err != nil || day < 1 || day > 31 {
			return dayRule{}, fmt.Errorf("%q is not a day of the month: write monthly with numbers from 1 to 31, such as "+
				"monthly 1,15", quota.Clip(part))
		}
		d.monthDays[day] = true
	}
	return d, nil
}
