package rest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

func TestNamesOfResources(t *testing.T) {
	for _, c := range []struct{ region, name, want string }{
		{"", "image_count_total", "image_count_total"},
		{"", "class:VCPU", "class.VCPU"},
		{"", "class:-x", "class.-3A-x"},
		{"", "a.b", "a.-2Eb"},
		{"", "a/b", "a.-2Fb"},
		{"north", "volumes", "north/volumes"},
		{"north", "class:VCPU", "north/class.VCPU"},
		{"", "größe", "gr.-C3.-B6.-C3.-9Fe"},
	} {
		got, err := encodeResource(c.region, c.name)
		if err != nil || got != c.want {
			t.Errorf("%q %q becomes %q, %v, want %q", c.region, c.name, got, err, c.want)
		}
	}
	for _, c := range []struct{ region, name, want string }{
		{"", "", "has 0 characters; allowed are 1 to 255"},
		{"", strings.Repeat("a", 256), "has 256 characters"},
		{"", strings.Repeat("a", 64), "up to 63 characters"},
		{"", ":a", "must begin with"},
		{"a.b", "c", "must consist of"},
		{"a/b", "c", "must consist of"},
	} {
		if got, err := encodeResource(c.region, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q becomes %q, %v", c.region, c.name, got, err)
		}
	}
	for _, hidden := range []string{"a.-2eb", "a.-41", "a/b/c", "a.-zz/b"} {
		if region, name, ok := decodeResource(hidden); ok {
			t.Errorf("%q is %q %q", hidden, region, name)
		}
	}
}

// TestNamesAreReversible: a name becomes a valid one of which it comes out again, and so no two become one.
func TestNamesAreReversible(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9_:./é-]{1,20}`).Draw(t, "name")
		region := rapid.StringMatching(`([a-z0-9_-]{1,5})?`).Draw(t, "region")
		encoded, err := encodeResource(region, name)
		if err != nil {
			return
		}
		gotRegion, gotName, ok := decodeResource(encoded)
		if !ok || gotRegion != region || gotName != name || !compat.IsResource(encoded) {
			t.Fatalf("%q %q becomes %q, and that %q %q, %v", region, name, encoded, gotRegion, gotName, ok)
		}
	})
}

// FuzzDecodeResource: what a resource of a tree is called in Keystone stands for that resource alone.
func FuzzDecodeResource(f *testing.F) {
	for _, seed := range []string{"image_count_total", "class.VCPU", "north/a.-2Eb", "a.-zz", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, resource string) {
		region, name, ok := decodeResource(resource)
		if !ok {
			return
		}
		if again, err := encodeResource(region, name); err != nil || again != resource {
			t.Errorf("%q is %q %q, and that becomes %q, %v", resource, region, name, again, err)
		}
	})
}

func TestIDs(t *testing.T) {
	id := limitID("glance", "science/atlas", "north/class.VCPU")
	if id != "glance:science~atlas:north~class.VCPU" {
		t.Error(id)
	}
	if parts, ok := splitID(id, 3); !ok || strings.Join(parts, " ") != "glance science/atlas north/class.VCPU" {
		t.Errorf("%q, %v", parts, ok)
	}
	for _, other := range []string{"", "a", "a:b", "a:b:c:d"} {
		if parts, ok := splitID(other, 3); ok {
			t.Errorf("%q is %q", other, parts)
		}
	}
}

// TestBuiltInPolicies: what is known here of the built-in policies is what they do.
func TestBuiltInPolicies(t *testing.T) {
	presets := policy.Presets()
	if len(presets) != len(builtIn) {
		t.Errorf("%d policies are known here, and there are %d", len(builtIn), len(presets))
	}
	for name, p := range presets {
		want := policyRules{
			boundsSum: p.Sum != policy.SumUnbounded, refusesUnknown: p.UnknownNodes == policy.RefuseUnknown,
			unsetIsZero: p.Unset.Kind != quota.Unlimited,
		}
		if got, known := builtIn[name]; !known || got != want {
			t.Errorf("%s is %+v here, and does %+v", name, got, want)
		}
	}
}
