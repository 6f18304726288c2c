package recurrence_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/quota"
)

// TestRulesHaveOneForm: the text of a rule has single spaces, lower case and a time zone, and is read as the same rule.
func TestRulesHaveOneForm(t *testing.T) {
	for text, want := range map[string]string{
		"weekdays 18:00-08:00 Europe/Zurich": "weekdays 18:00-08:00 Europe/Zurich",
		"  Daily   00:00-24:00x ":            "",
		"Mon,WED,fri  9:00-10:00":            "",
		"Mon,WED,fri  09:00-10:00":           "mon,wed,fri 09:00-10:00 UTC",
		"fri 18:00-Mon 08:00":                "fri 18:00-mon 08:00 UTC",
		"fri-sun,tue 00:00-24:00 UTC":        "fri-sun,tue 00:00-24:00 UTC",
		"monthly 1,15 09:00-12:00":           "monthly 1,15 09:00-12:00 UTC",
	} {
		r, err := recurrence.Parse(text)
		if r.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, r, err, want)
		}
		if err != nil {
			continue
		}
		if again, err := recurrence.Parse(r.String()); again.String() != want || err != nil {
			t.Errorf("%q is %q, %v", r, again, err)
		}
	}
}

// TestErrorsNameTheWrongPart and what is allowed.
func TestErrorsNameTheWrongPart(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "write DAYS HH:MM-",
		"someday 18:00-08:00":                   `"someday" are not days: write daily`,
		"mon,fry 18:00-08:00":                   `"fry" are not days`,
		"mon- 18:00-08:00":                      `"mon-" are not days`,
		"monthly 18:00-08:00":                   `"18:00-08:00" is not a day of the month`,
		"monthly 1,32 18:00-08:00":              `"32" is not a day of the month: write monthly with numbers from 1 to 31`,
		"daily":                                 `"" are not times: write HH:MM-HH:MM`,
		"daily 18:00":                           `"18:00" are not times`,
		"daily 18:60-19:00":                     `"18:60" is not a time: write HH:MM, 00:00 to 24:00`,
		"daily 8:00-19:00":                      `"8:00" is not a time`,
		"daily 24:00-19:00":                     "cannot begin at 24:00",
		"daily 18:00-24:01":                     `"24:01" is not a time`,
		"daily 18:00-mon":                       `"" is not a time`,
		"daily 18:00-18:00":                     "begins and ends at 18:00: write 00:00-24:00",
		"daily 18:00-08:00 Europe/Nowhere":      `"Europe/Nowhere" is not a time zone: write a name of the IANA database`,
		"daily 18:00-08:00 Local":               `"Local" is not a time zone`,
		"daily 18:00-08:00 local":               `"local" is not a time zone`,
		"daily 18:00-08:00 localtime":           `"localtime" is not a time zone`,
		"daily 18:00-08:00 posixrules":          `"posixrules" is not a time zone`,
		"daily 18:00-08:00 right/Europe/Zurich": `"right/Europe/Zurich" is not a time zone`,
		"daily 18:00-08:00 posix/Europe/Zurich": `"posix/Europe/Zurich" is not a time zone`,
		"daily 18:00-08:00 europe/zurich":       `"europe/zurich" is not a time zone`,
		"daily 18:00-08:00 Europe":              `"Europe" is not a time zone`,
		"daily 18:00-08:00 tzdata.zi":           `"tzdata.zi" is not a time zone`,
		"daily 18:00-08:00 zone1970.tab":        `"zone1970.tab" is not a time zone`,
		"daily 18:00-08:00 CET-1CEST":           `"CET-1CEST" is not a time zone`,
		"daily 18:00-08:00 ../etc/passwd":       `"../etc/passwd" is not a time zone`,
		"daily 18:00-08:00 /etc/localtime":      `"/etc/localtime" is not a time zone`,
		"daily 18:00-08:00 Europe/../Etc/UTC":   `"Europe/../Etc/UTC" is not a time zone`,
		"daily 18:00-08:00 UTC 5":               `"5" is behind the time zone`,
		"daily 00:00-24:00":                     "leave no pause",
		"daily 18:00-mon 18:00":                 "leave no pause",
		"fri 18:00-fri 18:00":                   "leave no pause",
		"monthly 1 " + strings.Repeat("1", 120): "the rule has 130 bytes; at most 128 are allowed",
	} {
		if r, err := recurrence.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %q, %v; want an error with %q", text, r, err, want)
		}
	}
	if _, err := recurrence.Parse("mon," + strings.Repeat("tue,", 27) + "wed 18:00-08:00"); err == nil ||
		!strings.Contains(err.Error(), "with its time zone the rule has") {
		t.Errorf("a rule that is too long with its zone: %v", err)
	}
}

// FuzzParse: whatever can be read has windows, and is read again as itself.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"weekdays 18:00-08:00 Europe/Zurich", "fri 18:00-mon 08:00", "monthly 31 23:59-24:00"} {
		f.Add(text, int64(1_800_000_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, after int64) {
		r, err := recurrence.Parse(text)
		if err != nil {
			return
		}
		if again, err := recurrence.Parse(r.String()); err != nil || again.String() != r.String() {
			t.Fatalf("%q is %q, and that is %q, %v", text, r, again, err)
		}
		if after = after % (quota.MaxCivilTime / 2); after < 0 {
			after = -after
		}
		if n := len(r.Windows(quota.CivilTime(after), 0, 3)); n != 3 {
			t.Fatalf("%q has %d windows after %s", r, n, quota.CivilTime(after))
		}
	})
}
