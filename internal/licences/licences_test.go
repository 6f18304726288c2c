package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheLicencesAreComplete compares the file that is passed on with what the binary contains now, with versions.
func TestTheLicencesAreComplete(t *testing.T) {
	t.Chdir("../..")
	all, err := components(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range all {
		want = append(want, c.title())
	}
	text, err := os.ReadFile("deploy/licences.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^={80}\n(.*): `).FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1])
	}
	got = slices.Compact(got)
	if !slices.Equal(got, want) {
		t.Errorf("deploy/licences.txt is out of date: write it again with make licences\nit has %s\nwant   %s",
			strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

// TestTheNoticeNamesWhatIsUnderTheMozillaLicence: those who pass the binary on must say where its source is.
func TestTheNoticeNamesWhatIsUnderTheMozillaLicence(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("deploy/licences.txt")
	if err != nil {
		t.Fatal(err)
	}
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for section := range strings.SplitSeq(string(text), strings.Repeat("=", 80)+"\n") {
		name, _, _ := strings.Cut(section, " ")
		if !strings.Contains(section, "Mozilla Public License") {
			continue
		}
		found++
		module := regexp.MustCompile(`/v\d+$`).ReplaceAllString(name, "")
		if !strings.Contains(string(notice), "  "+module+" ") {
			t.Errorf("NOTICE does not name %s", module)
		}
	}
	if found < 5 {
		t.Errorf("only %d texts are of the Mozilla Public License", found)
	}
}
