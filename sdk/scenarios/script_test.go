package scenarios

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// script is the file script.yaml.
type script struct {
	Scenarios []scenario `yaml:"scenarios"`
}

type scenario struct {
	Name string `yaml:"name"`
	// Knows is how many of the servers the player is told of; 0 for all.
	Knows int `yaml:"knows"`
	// Gateway makes the player know a gateway in front of the servers and nothing else.
	Gateway bool   `yaml:"gateway"`
	Steps   []step `yaml:"steps"`
}

type step struct {
	Play   map[string]any `yaml:"play"`
	Expect map[string]any `yaml:"expect"`
	// Before, if not 0, is how many seconds after the last step of the driver the answer must come at the latest.
	Before int `yaml:"before"`
	// Early requires that the holder was told before the lease may end at the servers.
	Early   bool        `yaml:"early"`
	Servers *driverStep `yaml:"servers"`
}

// driverStep has one field set, and with await an id.
type driverStep struct {
	Run      []string `yaml:"run"`
	Kill     string   `yaml:"kill"`
	Start    string   `yaml:"start"`
	Stop     string   `yaml:"stop"`
	Continue string   `yaml:"continue"`
	Await    string   `yaml:"await"`
	// Terminate ends the player by SIGTERM.
	Terminate string `yaml:"terminate"`
	// Gateway makes the gateway answer by itself.
	Gateway *gatewayStep `yaml:"gateway"`
	// CallsAtMost bounds the calls of Allocate that the gateway has seen since then.
	CallsAtMost int    `yaml:"callsAtMost"`
	ID          string `yaml:"id"`
}

// readScript reads the script with ids that begin with a prefix.
func readScript(t *testing.T, prefix string) script {
	t.Helper()
	text, err := os.ReadFile("script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s script
	decoder := yaml.NewDecoder(strings.NewReader(strings.ReplaceAll(string(text), "ID-", prefix+"-")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if len(s.Scenarios) == 0 {
		t.Fatal("script.yaml has no scenarios")
	}
	return s
}

// contains reports whether an answer has at least what is expected: objects may have further fields, lists may not be
// longer. Numbers are compared as texts, because 64-bit integers are strings in the JSON mapping of protobuf; a field
// that is absent is zero there.
func contains(answer, expected any) bool {
	switch e := expected.(type) {
	case map[string]any:
		a, ok := answer.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range e {
			if !contains(a[key], value) {
				return false
			}
		}
		return true
	case []any:
		a, ok := answer.([]any)
		if !ok || len(a) != len(e) {
			return false
		}
		for i := range e {
			if !contains(a[i], e[i]) {
				return false
			}
		}
		return true
	}
	return textOf(answer) == textOf(expected)
}

func textOf(value any) string {
	switch value {
	case nil, false, "":
		return "0"
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a value of YAML or JSON
	}
	return string(text)
}

func TestContains(t *testing.T) {
	for _, test := range []struct {
		answer, expected string
		want             bool
	}{
		{`{"a":"5","b":1}`, `{"a":5}`, true},
		{`{"a":"5"}`, `{"a":6}`, false},
		{`{}`, `{"a":0,"b":false,"c":""}`, true},
		{`{}`, `{"a":1}`, false},
		{`{"a":[1,2]}`, `{"a":[1]}`, false},
		{`{"a":[{"x":1,"y":2}]}`, `{"a":[{"x":1}]}`, true},
		{`{"a":1}`, `{"a":{"b":1}}`, false},
	} {
		var answer, expected any
		if err := json.Unmarshal([]byte(test.answer), &answer); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(test.expected), &expected); err != nil {
			t.Fatal(err)
		}
		if got := contains(answer, expected); got != test.want {
			t.Errorf("contains(%s, %s) is %v", test.answer, test.expected, got)
		}
	}
}
