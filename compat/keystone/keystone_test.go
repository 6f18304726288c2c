package keystone

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/internal/manifest"
)

const registered = `{"service_id": "s", "resource_name": "cores", "default_limit": 5}`

func withLimits(limits string) string {
	return `{"registered_limits": [` + registered + `], "limits": [` + limits + `]}`
}

func withProjects(projects string) string {
	return `{"registered_limits": [` + registered + `], "projects": [` + projects + `]}`
}

func TestConvertRefuses(t *testing.T) {
	limit := func(rest string) string {
		return withLimits(`{"service_id": "s", "resource_name": "cores", ` + rest + `}`)
	}
	register := func(resource, rest string) string {
		return `{"registered_limits": [{"service_id": "s", "resource_name": "` + resource + `", ` + rest + `}]}`
	}
	var deep strings.Builder
	for i := range 17 {
		deep.WriteString(`, {"id": "p` + strings.Repeat("x", i+1) + `", "parent_id": "p` +
			strings.Repeat("x", i) + `"}`)
	}
	tests := map[string]struct {
		text string
		want string
	}{
		"nothing":          {"", "registered_limits is missing or empty"},
		"nothing in it":    {"{}", "document 1 has none of the lists registered_limits, limits and projects"},
		"an empty list":    {"[]", "document 1 is an empty list: print registered_limits, limits or projects"},
		"another list":     {`[{"ID": "x", "Name": "n", "Resource Name": "r"}]`, "document 1, line 1 is not one that openstack"},
		"a list of texts":  {`["x"]`, "document 1, line 1: the value must be an object, not a string"},
		"a number there":   {`[{"ID": 5}]`, `document 1, line 1: "ID" must be a string in quotes, not a number`},
		"no JSON":          {"{\n]", "line 2: not JSON"},
		"a key twice":      {`{"limits": [], "limits": []}`, `line 1: "limits" is given twice`},
		"a part of a list": {`{"limits": [], "truncated": true}`, "document 1 is truncated: get the whole list"},
		"no service": {
			`{"registered_limits": [{"resource_name": "cores", "default_limit": 1}]}`,
			"registered limit 1 (, cores): service_id: a name is empty",
		},
		"no resource": {
			register("", `"default_limit": 1`),
			"resource_name has 0 characters; allowed are 1 to 255",
		},
		"too long for Keystone": {
			register(strings.Repeat("r", 256), `"default_limit": 1`),
			"resource_name has 256 characters",
		},
		"too long for us": {
			register(strings.Repeat("r", 64), `"default_limit": 1`),
			"is not a valid resource name: use 1 to 63 letters",
		},
		"no default": {
			register("r", `"id": "x"`),
			`registered limit 1 (s, r): limit "" is not a whole number from -1 to 2147483647`,
		},
		"a null default": {register("r", `"default_limit": null`), `limit "null" is not`},
		"below -1":       {register("r", `"default_limit": -2`), `limit "-2" is not`},
		"above 31 bits": {
			register("r", `"default_limit": 2147483648`),
			`limit "2147483648" is not`,
		},
		"a text": {register("r", `"default_limit": "5"`), `limit "\"5\"" is not`},
		"a fraction": {
			limit(`"project_id": "p", "resource_limit": 1.5`),
			`limit 1 (s, cores): limit "1.5" is not`,
		},
		"registered twice": {
			`{"registered_limits": [` + registered + `, ` + registered + `]}`,
			"registered limit 2 (s, cores) is listed twice",
		},
		"one name for two": {
			`{"registered_limits": [` + strings.Replace(registered, "cores", "a.b", 1) + `, ` +
				strings.Replace(registered, "cores", "a:b", 1) + `]}`,
			`registered limit 2 (s, a:b) would be named "a.b", but a.b already has that name`,
		},
		"not registered": {
			withLimits(`{"service_id": "s", "resource_name": "disc", "project_id": "p", "resource_limit": 1}`),
			"limit 1 (s, disc): Unable to create a limit that has no corresponding registered limit.",
		},
		"another region": {
			withLimits(`{"service_id": "s", "region_id": "north", "resource_name": "cores", "project_id": "p", "resource_limit": 1}`), "Unable to create a limit that has no corresponding registered limit.",
		},
		"neither": {
			limit(`"project_id": null, "resource_limit": 1`),
			"exactly one of project_id and domain_id must be given",
		},
		"both": {
			limit(`"project_id": "p", "domain_id": "d", "resource_limit": 1`),
			"exactly one of project_id and domain_id must be given",
		},
		"a limit twice": {
			withLimits(strings.Repeat(
				`{"service_id": "s", "resource_name": "cores", "project_id": "p", "resource_limit": 1}, `, 2) +
				`{"service_id": "s", "resource_name": "cores", "project_id": "q", "resource_limit": 1}`),
			`limit 2 (s, cores): limit 1 already sets this resource for "p"`,
		},
		"a project without id": {withProjects(`{"name": "x"}`), "project 1 has no id"},
		"a project twice":      {withProjects(`{"id": "x"}, {"id": "x"}`), `project "x" is listed twice`},
		"an unknown parent": {
			withProjects(`{"id": "x", "parent_id": "y"}`),
			`project "x" has the parent "y", which is not listed`,
		},
		"its own parent": {withProjects(`{"id": "x", "parent_id": "x"}`), `project "x" is its own ancestor`},
		"a circle": {
			withProjects(`{"id": "x", "parent_id": "y"}, {"id": "y", "parent_id": "z"}, {"id": "z", "parent_id": "x"}`),
			"is its own ancestor",
		},
		"too deep":        {withProjects(`{"id": "p"}` + deep.String()), "is at depth 18; the maximum is 16"},
		"too long a text": {strings.Repeat(" ", compat.MaxSize+1), "up to 4194304 are read"},
		"a service as a number": {
			`{"registered_limits": [` + registered +
				`, {"service_id": 5}], "limits": [{"project_id": 7}]}`,
			"registered limit 2: \"service_id\" must be a string in quotes, not a number\nlimit 1: \"project_id\" " +
				"must be a string in quotes, not a number",
		},
		"a limit in an object":   {`{"limits": {}}`, `document 1: "limits" must be a list, not an object`},
		"projects and no limits": {`{"projects": [{"id": "x"}]}`, "registered_limits is missing or empty"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Convert([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Convert answers %v, %v; want an error that says %q", c, err, test.want)
			}
		})
	}
}

// TestAllProblemsAtOnce: all problems of a file are reported, while the API reports only the first.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Convert([]byte(withLimits(`
		{"service_id": "s", "resource_name": "cores", "project_id": "p", "resource_limit": -2},
		{"service_id": "t", "resource_name": "cores", "project_id": "p", "resource_limit": 1},
		{"service_id": "s", "resource_name": "cores", "resource_limit": 1}`)))
	want := compat.Problems{
		`limit 1 (s, cores): limit "-2" is not a whole number from -1 to 2147483647`,
		"limit 2 (t, cores): Unable to create a limit that has no corresponding registered limit.",
		"limit 3 (s, cores): exactly one of project_id and domain_id must be given",
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestLevels: what the model strict_two_level refuses is a problem here, where the default of a parent without a
// limit counts, and unlimited is more than any amount.
func TestLevels(t *testing.T) {
	text := func(projects, limits string) []byte {
		return []byte(`{"registered_limits": [{"service_id": "s", "resource_name": "cores", "default_limit": 20}],
			"projects": [` + projects + `], "limits": [` + limits + `]}`)
	}
	limit := func(id, most string) string {
		return `{"service_id": "s", "resource_name": "cores", ` + id + `, "resource_limit": ` + most + `}`
	}
	const projects = `{"id": "d", "is_domain": true}, {"id": "p", "domain_id": "d"}, {"id": "q", "parent_id": "d"}`
	domain, p, q := `"domain_id": "d"`, `"project_id": "p"`, `"project_id": "q"`
	const out = `: in the model strict_two_level a limit is at most the one above; in the flat model, leave the projects out`
	for name, test := range map[string]struct {
		text []byte
		want compat.Problems
	}{
		"equal, and siblings add up": {text(projects, limit(p, "30")+","+limit(q, "30")+","+limit(domain, "30")), nil},
		"above, wherever it stands": {
			text(projects, limit(p, "31")+","+limit(q, "-1")+","+limit(domain, "30")),
			compat.Problems{
				`limit 1 (s, cores): the limit of "p" is 31, above 30, that of "d" above it` + out,
				`limit 2 (s, cores): the limit of "q" is unlimited, above 30, that of "d" above it` + out,
			},
		},
		"above the default": {
			text(projects, limit(p, "21")),
			compat.Problems{
				`limit 1 (s, cores): the limit of "p" is 21, above 20, the default, which "d" above it has` + out,
			},
		},
		"above zero": {
			text(projects, limit(p, "1")+","+limit(domain, "0")),
			compat.Problems{`limit 1 (s, cores): the limit of "p" is 1, above 0, that of "d" above it` + out},
		},
		"below unlimited":      {text(projects, limit(p, "-1")+","+limit(domain, "-1")), nil},
		"the flat model":       {text("", limit(p, "31")+","+limit(domain, "30")), nil},
		"a domain on its own":  {text(projects, limit(domain, "-1")), nil},
		"a project not listed": {text(projects, limit(`"project_id": "r"`, "99")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Convert(test.text)
			if diff := cmp.Diff(test.want.Err(), err); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

// TestZeroIsALimit: 0 is a limit here, while Keystone's own check of trees treats it as no limit, in parents and in
// children.
func TestZeroIsALimit(t *testing.T) {
	c, err := Convert([]byte(`{"registered_limits": [{"service_id": "s", "resource_name": "cores", "default_limit": 0}],
		"limits": [{"service_id": "s", "resource_name": "cores", "domain_id": "d", "resource_limit": 0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	tree := c.Trees[0]
	for name, limit := range map[string]any{
		"the default": tree.GetDefaults()["cores"], "the domain": tree.GetNodes()[0].GetLimits()["cores"],
	} {
		if diff := cmp.Diff(compat.AtMost(0).String(), limit.(interface{ String() string }).String()); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", name, diff)
		}
	}
}

// FuzzConvert searches for documents that crash the converter, or are converted to trees that cannot be written as a
// manifest.
func FuzzConvert(f *testing.F) {
	for _, file := range []string{"../../examples/keystone/limits.json", "testdata/flat.json", "testdata/names.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Convert(data)
		if err != nil {
			return
		}
		if _, err := manifest.Format(&manifest.Manifest{Trees: c.Trees}); err != nil {
			t.Fatalf("%v\n%v", err, c.Trees)
		}
	})
}
