package recurrence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// TestWindowsAroundChangesOfTheClock tests examples. The clock of Zurich skips 02:00 to 03:00 on 2027-03-28, and shows
// it twice on 2027-10-31; that of Lord Howe moves by half an hour; Samoa had no 2011-12-30.
func TestWindowsAroundChangesOfTheClock(t *testing.T) {
	for _, c := range []struct{ rule, after, want string }{
		{"weekdays 18:00-08:00 Europe/Zurich", "2026-11-27T12:00", "11-27T17:00-11-28T07:00 11-30T17:00-12-01T07:00"},
		{"daily 18:00-08:00 Europe/Zurich", "2027-03-27T12:00", "03-27T17:00-03-28T06:00 03-28T16:00-03-29T06:00"},
		{"daily 02:15-02:45 Europe/Zurich", "2027-03-27T00:00", "03-27T01:15-03-27T01:45 03-29T00:15-03-29T00:45"},
		{"sun 02:30-04:00 Europe/Zurich", "2027-03-28T00:00", "03-28T01:00-03-28T02:00 04-04T00:30-04-04T02:00"},
		{"sun 01:00-02:30 Europe/Zurich", "2027-03-28T00:00", "03-28T00:00-03-28T01:00 04-03T23:00-04-04T00:30"},
		{"sun 02:00-02:30 Europe/Zurich", "2027-10-31T00:00", "10-31T00:00-10-31T00:30 11-07T01:00-11-07T01:30"},
		{"sun 02:00-03:00 Europe/Zurich", "2027-10-31T00:00", "10-31T00:00-10-31T02:00 11-07T01:00-11-07T02:00"},
		{"sun 02:00-02:30 Australia/Lord_Howe", "2026-10-03T00:00", "10-10T15:00-10-10T15:30 10-17T15:00-10-17T15:30"},
		{"sun 01:45-02:15 Australia/Lord_Howe", "2027-04-03T00:00", "04-03T14:45-04-03T15:45 04-10T15:15-04-10T15:45"},
		{"daily 09:00-17:00 Pacific/Apia", "2011-12-29T12:00", "12-29T19:00-12-30T03:00 12-30T19:00-12-31T03:00"},
		{"daily 00:00-06:00 Asia/Kolkata", "2027-01-01T00:00", "01-01T00:00-01-01T00:30 01-01T18:30-01-02T00:30"},
		{"sat,sun 00:00-24:00", "2026-11-27T00:00", "11-28T00:00-11-30T00:00 12-05T00:00-12-07T00:00"},
		{"fri 18:00-mon 08:00 America/New_York", "2027-03-12T00:00", "03-12T23:00-03-15T12:00 03-19T22:00-03-22T12:00"},
		{"monthly 31 23:00-01:00", "2027-01-31T23:30", "01-31T23:30-02-01T01:00 03-31T23:00-04-01T01:00"},
	} {
		checkTwoWindows(t, c.rule, c.after, c.want)
	}
}

// TestWindowsOnDaysWithoutMidnight tests days whose 00:00 to 01:00 the clock skips, and nights whose 23:00 to 24:00 it
// shows twice. Santiago goes from -04 to -03 at 2026-09-06T04:00Z and back at 2027-04-04T03:00Z; Beirut from +02 to +03
// at 2027-03-27T22:00Z and back at 2027-10-30T21:00Z.
func TestWindowsOnDaysWithoutMidnight(t *testing.T) {
	for _, c := range []struct{ rule, after, want string }{
		{"sun 00:00-24:00 America/Santiago", "2026-09-05T12:00", "09-06T04:00-09-07T03:00 09-13T03:00-09-14T03:00"},
		{"daily 22:00-00:00 America/Santiago", "2026-09-05T12:00", "09-06T02:00-09-06T04:00 09-07T01:00-09-07T03:00"},
		{"sun 00:15-00:45 America/Santiago", "2026-09-05T12:00", "09-13T03:15-09-13T03:45 09-20T03:15-09-20T03:45"},
		{"sun 00:30-01:30 America/Santiago", "2026-09-05T12:00", "09-06T04:00-09-06T04:30 09-13T03:30-09-13T04:30"},
		{"sat 23:00-24:00 America/Santiago", "2026-09-05T12:00", "09-06T03:00-09-06T04:00 09-13T02:00-09-13T03:00"},
		{"sat 20:00-sun 00:30 America/Santiago", "2026-09-05T12:00", "09-06T00:00-09-06T04:00 09-12T23:00-09-13T03:30"},
		{"sat 23:00-24:00 America/Santiago", "2027-04-03T00:00", "04-04T02:00-04-04T04:00 04-11T03:00-04-11T04:00"},
		{"sun 00:00-06:00 America/Santiago", "2027-04-03T00:00", "04-04T04:00-04-04T10:00 04-11T04:00-04-11T10:00"},
		{"sun 00:00-06:00 Asia/Beirut", "2027-03-27T00:00", "03-27T22:00-03-28T03:00 04-03T21:00-04-04T03:00"},
		{"daily 22:00-00:00 Asia/Beirut", "2027-03-27T12:00", "03-27T20:00-03-27T22:00 03-28T19:00-03-28T21:00"},
		{"monthly 28 00:00-00:30 Asia/Beirut", "2027-03-01T00:00", "04-27T21:00-04-27T21:30 05-27T21:00-05-27T21:30"},
		{"sat,sun 00:00-24:00 Asia/Beirut", "2027-03-26T00:00", "03-26T22:00-03-28T21:00 04-02T21:00-04-04T21:00"},
		{"sat 23:00-24:00 Asia/Beirut", "2027-10-30T00:00", "10-30T20:00-10-30T22:00 11-06T21:00-11-06T22:00"},
	} {
		checkTwoWindows(t, c.rule, c.after, c.want)
	}
}

// TestWindowsAtTheEndOfLeapYears: on their last day Go 1.26 tells an end of the present offset that is over, of years
// behind the last change that a table lists.
func TestWindowsAtTheEndOfLeapYears(t *testing.T) {
	for _, c := range []struct{ rule, after, want string }{
		{"daily 18:00-08:00 Europe/Zurich", "2028-12-30T12:00", "12-30T17:00-12-31T07:00 12-31T17:00-01-01T07:00"},
		{"daily 10:00-11:00 Europe/Zurich", "2040-12-30T12:00", "12-31T09:00-12-31T10:00 01-01T09:00-01-01T10:00"},
		{"monthly 31 10:00-12:00 America/New_York", "2044-12-02T00:00", "12-31T15:00-12-31T17:00 01-31T15:00-01-31T17:00"},
		{"daily 00:00-00:30 Australia/Sydney", "2048-12-31T00:00", "12-31T13:00-12-31T13:30 01-01T13:00-01-01T13:30"},
	} {
		checkTwoWindows(t, c.rule, c.after, c.want)
	}
}

func checkTwoWindows(t *testing.T, text, begins, want string) {
	t.Helper()
	rule, err := recurrence.Parse(text)
	after, bad := time.Parse("2006-01-02T15:04", begins)
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	var got []string
	for _, w := range rule.Windows(quota.CivilTime(after.UnixMilli()), 0, 2) {
		got = append(got, w.From.String()[5:16]+"-"+w.Until.String()[5:16])
	}
	if joined := strings.Join(got, " "); joined != want {
		t.Errorf("%s after %s:\n is   %s\n want %s", text, begins, joined, want)
	}
}

// drawnRule is a rule with its parts, for the oracle, which does not read the text.
type drawnRule struct {
	text       string
	on         func(date time.Time) bool
	begin, end string // as the clock shows them
	endsOn     time.Weekday
	endsOnDay  bool
	zone       *time.Location
}

var weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func drawRule(t *rapid.T) drawnRule {
	minute := rapid.OneOf(rapid.IntRange(0, 24*60-1), rapid.IntRange(0, 4*60))
	clock := func(name string) string {
		at := minute.Draw(t, name)
		return fmt.Sprintf("%02d:%02d", at/60, at%60)
	}
	name := rapid.SampledFrom([]string{
		"Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata", "Pacific/Apia",
		"America/Santiago", "Asia/Beirut", "Africa/Cairo",
	}).Draw(t, "zone")
	zone, err := recurrence.CompiledZones().Load(name)
	if err != nil {
		t.Fatal(err)
	}
	r := drawnRule{begin: clock("begin"), end: clock("end"), zone: zone}
	if rapid.IntRange(0, 7).Draw(t, "until midnight") == 0 {
		r.end = "24:00"
	}
	var days string
	switch rapid.IntRange(0, 2).Draw(t, "days") {
	case 0:
		day := rapid.IntRange(1, 31).Draw(t, "day")
		days, r.on = fmt.Sprintf("monthly %d", day), func(date time.Time) bool { return date.Day() == day }
	default:
		on := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID).Draw(t, "weekdays")
		var names []string
		for _, day := range on {
			names = append(names, weekdayNames[day])
		}
		days, r.on = strings.Join(names, ","), func(date time.Time) bool { return slices.Contains(on, int(date.Weekday())) }
	}
	ends := r.end
	if r.endsOnDay = rapid.IntRange(0, 3).Draw(t, "ends on") == 0; r.endsOnDay {
		r.endsOn = time.Weekday(rapid.IntRange(0, 6).Draw(t, "day of the end"))
		ends = weekdayNames[r.endsOn] + " " + r.end
	}
	r.text = strings.Join([]string{days, r.begin + "-" + ends, name}, " ")
	return r
}

// inForce walks through minutes, looks at the clock of the time zone, and says in which of them a window is open: one
// begins when the clock first shows its begin or a later time, and ends when it first shows its end or a later one.
func (r drawnRule) inForce(first time.Time, minutes int) []bool {
	const shown = "2006-01-02T15:04"
	type window struct {
		begin, end  string
		began, over bool
	}
	var windows []*window
	last := first.Add(time.Duration(minutes)*time.Minute + 24*time.Hour)
	for date := first.Truncate(24 * time.Hour); date.Before(last); date = date.AddDate(0, 0, 1) {
		if !r.on(date) {
			continue
		}
		w := &window{begin: date.Format("2006-01-02T") + r.begin}
		for end := date; ; end = end.AddDate(0, 0, 1) {
			w.end = end.Format("2006-01-02T") + r.end
			if w.end > w.begin && (!r.endsOnDay || end.Weekday() == r.endsOn) {
				break
			}
		}
		windows = append(windows, w)
	}
	open := make([]bool, minutes)
	for i := range open {
		clock := first.Add(time.Duration(i) * time.Minute).In(r.zone).Format(shown)
		for _, w := range windows {
			w.began = w.began || clock >= w.begin
			w.over = w.over || clock >= w.end
			open[i] = open[i] || w.began && !w.over
		}
	}
	return open
}

// TestWindowsAgainstAWalk: the windows are those that a walk through all minutes finds, around the changes of clocks.
func TestWindowsAgainstAWalk(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		r := drawRule(t)
		rule, err := recurrence.Parse(r.text)
		if err != nil {
			if !strings.Contains(err.Error(), "no pause") && !strings.Contains(err.Error(), "begins and ends") {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		const days, lead = 8, 10
		around := rapid.SampledFrom([]string{
			"2026-09-03", "2026-12-29", "2027-03-11", "2027-03-26", "2027-04-02", "2027-10-01", "2027-10-29", "2027-11-05",
			"2011-12-28",
		}).Draw(t, "around")
		start, err := time.Parse("2006-01-02", around)
		if err != nil {
			t.Fatal(err)
		}
		open := r.inForce(start.AddDate(0, 0, -lead), (days+lead)*24*60)
		from := lead*24*60 + rapid.IntRange(0, 24*60).Draw(t, "after")
		after := start.AddDate(0, 0, -lead).Add(time.Duration(from) * time.Minute)
		ends := start.AddDate(0, 0, days)
		var want []quota.CivilWindow
		for i := from; i < len(open); i++ {
			at := quota.CivilTime(after.UnixMilli()) + quota.CivilTime(i-from)*60_000
			switch n := len(want); {
			case !open[i]:
			case n > 0 && want[n-1].Until == at:
				want[n-1].Until += 60_000
			default:
				want = append(want, quota.CivilWindow{From: at, Until: at + 60_000})
			}
		}
		most := rapid.IntRange(1, 12).Draw(t, "most")
		want = want[:min(most, len(want))]
		got := rule.Windows(quota.CivilTime(after.UnixMilli()), quota.CivilTime(ends.UnixMilli()), most)
		if !slices.Equal(got, want) {
			t.Fatalf("%s after %s:\n is   %v\n want %v", rule, after, got, want)
		}
	})
}

// TestWindowsContinue: those after the end of some are those that come after them.
func TestWindowsContinue(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		rule, err := recurrence.Parse(drawRule(t).text)
		if err != nil {
			t.Skip(err)
		}
		after := quota.CivilTime(rapid.Int64Range(1_700_000_000_000, 2_000_000_000_000).Draw(t, "after"))
		n := rapid.IntRange(1, 40).Draw(t, "first")
		all := rule.Windows(after, 0, n+20)
		if rest := rule.Windows(all[n-1].Until, 0, 20); !slices.Equal(rest, all[n:]) {
			t.Fatalf("%s: after %d windows come %v, want %v", rule, n, rest, all[n:])
		}
	})
}

// TestTheEndOfTime: windows end with the rule, and with the year 9999.
func TestTheEndOfTime(t *testing.T) {
	rule, err := recurrence.Parse("daily 18:00-08:00")
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * 60 * 60 * 1000
	if got := rule.Windows(quota.MaxCivilTime-day, 0, 9); len(got) != 2 || got[1].Until != quota.MaxCivilTime {
		t.Errorf("at the end of time: %v", got)
	}
	for _, c := range []struct {
		ends quota.CivilTime
		want int
	}{{day, 2}, {18*60*60*1000 + 999, 1}, {18*60*60*1000 + 1000, 2}, {1, 0}} {
		if got := rule.Windows(0, c.ends, 9); len(got) != c.want {
			t.Errorf("until %d: %v, want %d windows", c.ends, got, c.want)
		}
	}
}
