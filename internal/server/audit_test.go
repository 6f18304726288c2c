package server

import (
	"strings"
	"testing"
)

// TestSettingsOfTheAudit: nothing is written by default, and each bad value is named with what is allowed.
func TestSettingsOfTheAudit(t *testing.T) {
	valid := Settings{AuditSize: 100, AuditKeep: 10, AuditRequired: "none"}
	for name, tc := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"the defaults": {func(*Settings) {}, ""},
		"required":     {func(s *Settings) { s.AuditRequired, s.AuditFile = "changes", "-" }, ""},
		"no file":      {func(s *Settings) { s.AuditRequired = "changes" }, "audit-file is empty"},
		"all":          {func(s *Settings) { s.AuditRequired, s.AuditFile = "all", "-" }, ""},
		"all, no file": {func(s *Settings) { s.AuditRequired = "all" }, "audit-required is all, but audit-file is empty"},
		"another word": {func(s *Settings) { s.AuditRequired = "holds" }, "allowed are none, changes and all"},
		"classes":      {func(s *Settings) { s.AuditClasses, s.AuditFile = []string{"holds", "reads"}, "-" }, ""},
		"another class": {
			func(s *Settings) { s.AuditClasses, s.AuditFile = []string{"renewals"}, "-" },
			`audit-classes has "renewals": allowed are holds and reads`,
		},
		"classes, no file": {func(s *Settings) { s.AuditClasses = []string{"holds"} }, "audit-classes is set, but audit-file"},
		"no size":          {func(s *Settings) { s.AuditSize = 0 }, "audit-size is 0: allowed are 1 to 1048576 MiB"},
		"too large":        {func(s *Settings) { s.AuditSize = 1<<20 + 1 }, "audit-size"},
		"none kept":        {func(s *Settings) { s.AuditKeep = 0 }, "audit-keep is 0: allowed are 1 to 1000"},
		"too many":         {func(s *Settings) { s.AuditKeep = 1001 }, "audit-keep"},
	} {
		s := valid
		tc.change(&s)
		faults := s.checkAudit()
		if tc.want == "" && len(faults) == 0 {
			continue
		}
		if len(faults) != 1 || tc.want == "" || !strings.Contains(faults[0].Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, faults, tc.want)
		}
	}
}
