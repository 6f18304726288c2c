package yamldoc

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"
)

type settings struct {
	Name    string        `yaml:"name"`
	Count   int           `yaml:"count"`
	Size    uint64        `yaml:"size"`
	On      bool          `yaml:"on"`
	Wait    time.Duration `yaml:"wait"`
	Share   float64       `yaml:"share"`
	Join    []string      `yaml:"join"`
	Members []struct {
		ID    string `yaml:"id"`
		Voter *bool  `yaml:"voter,omitempty"`
	} `yaml:"members"`
	private int
}

func TestDecode(t *testing.T) {
	text := `
name: 007
count: "3"
size: 5
on: true
wait: 90s
share: 1
join: &a [x, 1]
members:
- {id: a, voter: false}
- id: b
`
	got := settings{private: 1}
	if err := decodeText(text, &got); err != nil {
		t.Fatal(err)
	}
	voter := got.Members[0].Voter
	if voter == nil || *voter || got.Members[0].ID != "a" || got.Members[1].ID != "b" || got.Members[1].Voter != nil {
		t.Errorf("members are %+v", got.Members)
	}
	got.Members = nil
	want := settings{"007", 3, 5, true, 90 * time.Second, 1, []string{"x", "1"}, nil, 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, text := range []string{"", "---\n", "name:\ncount: ~\njoin: null\n"} {
		got := settings{Name: "kept", Count: 1}
		if err := decodeText(text, &got); err != nil || got.Name != "kept" || got.Count != 1 {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"nam: x":                "line 1, column 1: unknown field \"nam\"",
		"count: 1\ncount: 1":    "line 2, column 1: \"count\" is given twice; the first is in line 1",
		"<<: {count: 1}":        "line 1, column 1: merging (<<) is not read: write the keys out",
		"count: x":              "line 1, column 8: \"x\" should be a whole number",
		"count: 1.5":            "line 1, column 8: \"1.5\" should be a whole number",
		"count: [1]":            "line 1, column 8: this must be a whole number, not a list",
		"size: -1":              "line 1, column 7: \"-1\" should be a whole number",
		"on: yes":               "line 1, column 5: \"yes\" should be true or false",
		"on: \"true\"":          "line 1, column 5: \"true\" should be true or false",
		"wait: 5":               "line 1, column 7: \"5\" should be a duration, such as 90s",
		"share: x":              "line 1, column 8: \"x\" should be a number",
		"name: {a: b}":          "line 1, column 7: this must be a text, not a map",
		"join: a":               "line 1, column 7: this must be a list, not \"a\"",
		"join: [[a]]":           "line 1, column 8: this must be a text, not a list",
		"members: [{i: a}]":     "line 1, column 12: unknown field \"i\"",
		"members: [{voter: 1}]": "line 1, column 19: \"1\" should be true or false",
		"members: [a]":          "line 1, column 11: this must be a map of keys and values, not \"a\"",
		"private: 1":            "line 1, column 1: unknown field \"private\"",
		"[]":                    "line 1, column 1: this must be a map of keys and values, not a list",
	} {
		if err := decodeText(text, &settings{}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func decodeText(text string, out any) error {
	document, err := Read([]byte(text), Rules{})
	if err != nil {
		return err
	}
	return document.Decode(out)
}

func TestFromJSON(t *testing.T) {
	got, err := FromJSON([]byte(`{
		"z": "5", "a": 5, "b": 1.50, "c": true, "d": null, "e": {}, "f": [], "g": [{"h": "x y", "i": [1]}, []],
		"t": "2026-11-20T12:00:00Z", "u": "http://a:1/b", "v": "", "w": "a: b", "x": "one\ntwo", "y": "no",
		"yes": "\ud83d\ude00 \u0007"
	}`))
	want := `z: "5"
a: 5
b: 1.50
c: true
d: null
e: {}
f: []
g:
- h: x y
  i:
  - 1
- []
t: "2026-11-20T12:00:00Z"
u: http://a:1/b
v: ""
w: "a: b"
x: |-
  one
  two
"y": "no"
"yes": "\U0001F600 \a"
`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, text := range []string{"", "{", "[1", `{"a" 1}`, "[1,,2]"} {
		if got, err := FromJSON([]byte(text)); err == nil {
			t.Errorf("%q becomes %s", text, got)
		}
	}
}

// FuzzFromJSON looks for JSON that means something else once it is YAML.
func FuzzFromJSON(f *testing.F) {
	f.Add("a", "b")
	f.Add("yes", "12:30")
	f.Add(" - ", "#")
	f.Add("", "\n\n")
	f.Fuzz(func(t *testing.T, key, text string) {
		if !utf8.ValidString(key) || !utf8.ValidString(text) {
			return
		}
		encoded, err := json.Marshal(map[string]any{key: []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		written, err := FromJSON(encoded)
		if err != nil {
			t.Fatal(err)
		}
		document, err := Read(written, Rules{})
		if err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		gotKey, got := document.Root.Content[0], document.Root.Content[1].Content[0]
		if gotKey.Value != key || got.Value != text || got.Tag != "!!str" {
			t.Fatalf("%q: %q is %s %q, want %q with %q", written, gotKey.Value, got.Tag, got.Value, key, text)
		}
	})
}

func TestMarshal(t *testing.T) {
	got, err := Marshal([]Field{
		{"b", 1},
		{"a", "x"},
		{"list", []string{"1", "y"}},
		{"none", []string{}},
		{"share", 0.5},
	})
	if want := "b: 1\na: x\nlist:\n- \"1\"\n- \"y\"\nnone: []\nshare: 0.5\n"; err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}
