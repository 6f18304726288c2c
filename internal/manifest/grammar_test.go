package manifest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/yamldoc"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// yaml11 has the patterns of https://yaml.org/type as they stand there, and not those of package yamldoc; only in the
// float of base 10, [0-9_] replaces [0-9.], a known mistake of the page. The letters y and n are among the booleans.
var yaml11 = map[string]*regexp.Regexp{
	"bool": regexp.MustCompile(`^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`),
	"null": regexp.MustCompile(`^(?:~|null|Null|NULL|)$`),
	"int": regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|` +
		`[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`),
	"float": regexp.MustCompile(`^(?:[-+]?(?:[0-9][0-9_]*)?\.[0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`),
	"timestamp": regexp.MustCompile(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}` +
		`(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:(?:[ \t]*)Z|[-+][0-9]{1,2}(?::[0-9]{2})?)?)$`),
	"merge": regexp.MustCompile(`^<<$`),
	"value": regexp.MustCompile(`^=$`),
	// The core schema of YAML 1.2 takes these for numbers, too.
	"int of 1.2":   regexp.MustCompile(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`),
	"float of 1.2": regexp.MustCompile(`^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$`),
}

// resolve returns the type that a reader of YAML gives to a text without quotes; empty for a text.
func resolve(plain string) string {
	for _, name := range slices.Sorted(maps.Keys(yaml11)) {
		if yaml11[name].MatchString(plain) {
			return name
		}
	}
	return ""
}

// wordsOfValues are all words of the grammar that stand behind a colon or in a list.
func wordsOfValues() []string {
	words := []string{unlimitedWord, unsetWord, quota.AdvisoryWord + "1", noThresholds, anyWord, "free"}
	for _, s := range policy.Switches() {
		words = append(words, s.Values...)
	}
	words = slices.AppendSeq(words, maps.Keys(policy.Presets()))
	for unit := range quoratev1.Unit_name {
		words = append(words, quantity.UnitName(quoratev1.Unit(unit)))
	}
	words = slices.AppendSeq(words, maps.Values(queueings))
	words = slices.AppendSeq(words, maps.Values(tenantsSee))
	for kind := access.User; kind <= access.AnonymousSubject; kind++ {
		words = append(words, kind.String())
	}
	words = append(words, access.AllVerbs.Names()...)
	words = append(words, access.SignatureAlgorithms()...)
	words = append(words, formatSpan(1), formatSpan(90_000), formatSpan(5_400_000), formatDays(30*86_400_000))
	return append(words, percentValue(80).text, quantity.Format(1<<30, quoratev1.Unit_UNIT_BYTES),
		quantity.Format(5, quoratev1.Unit_UNIT_MILLI))
}

func TestEveryWordOfTheGrammarIsATextForYAML(t *testing.T) {
	for kind, keys := range mapKeys {
		for _, key := range keys {
			if of := resolve(key); of != "" {
				t.Errorf("the key %q of map %d is a %s for YAML", key, kind, of)
			}
		}
	}
	for _, word := range wordsOfValues() {
		if of := resolve(word); of != "" {
			t.Errorf("the word %q is a %s for YAML", word, of)
		}
	}
}

// numbersAndFlags are the keys whose values are numbers or booleans on purpose: every reader writes them as they are,
// or in another form that quantity.Parse takes for the same.
var numbersAndFlags = strings.Fields("version limits defaults borrow lend applications approvals min max margin " +
	"max-priority hard require-reason require-principal unpreemptable")

func TestWhatPeopleChooseIsATextForYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		section := sections().Draw(t, "access")
		drawn := &Manifest{
			Access: sectionMessage(section.Canonical()),
			Trees:  rapid.SliceOfNDistinct(trees(), 0, 2, (*quoratev1.Tree).GetName).Draw(t, "trees"),
		}
		text, err := Format(drawn)
		if err != nil {
			t.Skip("not a manifest")
		}
		var document yaml.Node
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		checkTexts(t, document.Content[0], "")
	})
}

// checkTexts looks at every value without quotes; key is the key above it.
func checkTexts(t *rapid.T, n *yaml.Node, key string) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if child.Kind == yaml.ScalarNode && !isQuoted(child) && resolve(child.Value) != "" {
				t.Errorf("the key %s is a %s for YAML", child.Value, resolve(child.Value))
			}
			continue
		}
		below := key
		if n.Kind == yaml.MappingNode && !slices.Contains(numbersAndFlags, key) {
			below = n.Content[i-1].Value
		}
		checkTexts(t, child, below)
	}
	if n.Kind == yaml.ScalarNode && !isQuoted(n) && resolve(n.Value) != "" && !slices.Contains(numbersAndFlags, key) {
		t.Errorf("%s: the value %s is a %s for YAML", key, n.Value, resolve(n.Value))
	}
}

func TestTypeOfKnowsWhatYAMLKnows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.SampledFrom(strings.Fields("y No OFF ~ null 010 0x1F 0b1 1_000 12:30 1:30:00 1e3 1.5e+3 .5 1. .inf -.INF "+
				".nan 2027-01-01 2027-1-1T1:00:00Z << = 0o17 08 +1 -0")),
			rapid.StringMatching(`[-+]?[0-9._:eExobTZ]{1,12}`), rapid.StringMatching(`[a-zA-Z~]{1,5}`),
		).Draw(t, "text")
		if of := resolve(text); of != "" && yamldoc.TypeOf(text) == yamldoc.Text {
			t.Errorf("%q is a %s for YAML, and a text for TypeOf", text, of)
		}
	})
}

func TestVersionOfTheManifest(t *testing.T) {
	for _, text := range []string{"version: 1\ntrees: {}\n", "trees: {}\nversion: '1'\n", "trees: {}\n"} {
		m, err := Parse("f", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if written, err := Format(m); err != nil || string(written) != "version: 1\ntrees: {}\n" {
			t.Errorf("%q is written as %q, %v", text, written, err)
		}
	}
	for text, want := range map[string]string{
		"version: 2\nwoods: {}\n": `f:1:10: version of the manifest is 1, not "2": this program knows no other`,
		"version: {}\n":           `f:1:10: version of the manifest is 1, not a map`,
		"version: 1.0\n":          `version of the manifest is 1, not "1.0"`,
		"version: 1\n":            `f:1:1: the key "trees" is missing`,
		"version: 2\nat: t:a\n":   `version of the manifest is 1, not "2"`,
	} {
		_, err := Parse("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(Problems(err)) != 1 {
			t.Errorf("%q answers %v, want %s", text, err, want)
		}
	}
}

// What every YAML tool would write differently is refused where it is read, because the file would mean something else
// after such a tool.
func TestTextsWithoutQuotesThatYAMLWouldChange(t *testing.T) {
	for text, want := range map[string]string{
		inTree("nodes: {010: {}}"):              `"010" without quotes is a number`,
		inTree("nodes: {1.5e+3: {}}"):           `"1.5e+3" without quotes is a number with a point or an exponent`,
		inTree("labels: {a: 1.10}"):             `label "a" of tree "t": "1.10" without quotes is a number`,
		inTree("labels: {a: true}"):             `label "a" of tree "t": "true" without quotes is a boolean`,
		inTree("labels: {a: 2027-01-01}"):       `label "a" of tree "t": "2027-01-01" without quotes is a date`,
		inTree("principals: [{users: [0x10]}]"): `users of principal 1 of tree "t": "0x10" without quotes is a number`,
		inTree("forest: 1_0"):                   `forest of tree "t": "1_0" without quotes is a number`,
		inTree("moves: {a: 1_0}"):               `moves: "1_0" without quotes is a number`,
		inTree("require-reason: on"):            `require-reason of tree "t" is true or false, not "on"`,
		inTree("labels: {a: .inf}"):             `".inf" without quotes`,
		inTree("labels: {<<: x}"):               `merging (<<) is not read`,
		"trees: {t: {resources: {.5: {}}}}":     `".5" without quotes is a number`,
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s answers %v, want %s", text, err, want)
		}
	}
	text := inTree("nodes: {2024: {}, y: {}, n: {}, 'no': {}, '010': {}}, labels: {a: 12, b: -7, c: '1.10', d: 'off'}")
	if _, warnings, err := ParseWithWarnings("f", []byte(text)); err != nil || len(warnings) > 0 {
		t.Errorf("%s: %v, %v", text, warnings, err)
	}
}

func inTree(entry string) string { return "trees: {t: {resources: {c: {unit: count}}, " + entry + "}}" }

// What only one version of YAML changes is read as it stands, because tools of the other write it without quotes, and
// is a warning.
func TestTextsWithoutQuotesThatSomeYAMLWouldChange(t *testing.T) {
	for text, want := range map[string]string{
		inTree("nodes: {no: {}}"):              `f:1:52: warning: "no" without quotes is a boolean for some YAML tools`,
		inTree("labels: {a: off}"):             `"off" without quotes is a boolean`,
		inTree("labels: {On: b}"):              `"On" without quotes is a boolean`,
		inTree("labels: {a: 12:30}"):           `"12:30" without quotes is a number`,
		inTree("principals: [{users: [yes]}]"): `"yes" without quotes is a boolean`,
		inTree("nodes: {1e3: {}}"):             `"1e3" without quotes is a number with a point or an exponent`,
		inTree("nodes: {08: {}}"):              `"08" without quotes is a number`,
		inTree("labels: {a: =}"):               `"=" without quotes is a mark of YAML`,
	} {
		_, warnings, err := ParseWithWarnings("f", []byte(text))
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].String(), want) {
			t.Errorf("%s answers %v, %v, want %s", text, warnings, err, want)
		}
	}
}

// keyOf is the key of a manifest for a field of the API: values of a manifest carry their unit, so the key does not.
func keyOf(field protoreflect.Name) string {
	key := strings.ReplaceAll(string(field), "_", "-")
	for _, unit := range []string{"-ms", "-at", "-percent"} {
		key = strings.TrimSuffix(key, unit)
	}
	return key
}

// A reader of the API knows the keys of a manifest, and the other way round. The test is the list of what differs.
func TestKeysAreTheNamesOfTheAPI(t *testing.T) {
	for kind, c := range map[mapKind]struct {
		message proto.Message
		// keys are those without a field, and fields those without a key.
		keys, fields string
	}{
		// What else is in the request is said by flags of the command that applies the manifest.
		manifestMap: {
			&quoratev1.ApplyTreesRequest{}, "version",
			"dry-run expected-revision actor reason request-id prune remove-policies subtree keep-access",
		},
		// Names are the keys of the maps around.
		treeMap:     {&quoratev1.Tree{}, "", "name"},
		resourceMap: {&quoratev1.Resource{}, "", "name"},
		policyMap:   {&quoratev1.Policy{}, "", "name"},
		roleMap:     {&quoratev1.AccessRole{}, "", "name"},
		issuerMap:   {&quoratev1.Issuer{}, "", "name"},
		// Nodes stand in their parent, and not with a path in a list.
		nodeMap: {&quoratev1.Node{}, "nodes", "path"},
		// The text of a subtree has what is in its tree otherwise.
		subtreeMap: {&quoratev1.Node{}, "nodes at moves units version", "path"},
		// The word none stands for the whole map.
		thresholdsMap:  {&quoratev1.LimitThresholds{}, "", "none"},
		itemsMap:       {&quoratev1.ItemSpec{}, "", ""},
		turnMap:        {&quoratev1.ItemTurn{}, "", ""},
		leasesMap:      {&quoratev1.LeaseSettings{}, "", ""},
		autoApproveMap: {&quoratev1.AutoApprove{}, "", ""},
		principalMap:   {&quoratev1.PrincipalLimit{}, "", ""},
		accessMap:      {&quoratev1.AccessSection{}, "", ""},
		certificateMap: {&quoratev1.CertificateRule{}, "", ""},
		bindingMap:     {&quoratev1.Binding{}, "", ""},
	} {
		want := strings.Fields(c.keys)
		fields := c.message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if key := keyOf(fields.Get(i).Name()); !slices.Contains(strings.Fields(c.fields), key) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		if keys := slices.Sorted(slices.Values(mapKeys[kind])); !slices.Equal(keys, want) {
			t.Errorf("%T has the keys %v, and the fields\n%v", c.message, keys, want)
		}
	}
	if most := bindingMap; len(mapKeys) != int(most)+1 {
		t.Errorf("there are %d maps, and %d have keys", most+1, len(mapKeys))
	}
}
