package compat

import (
	"strings"
	"testing"
)

func TestEnvelope(t *testing.T) {
	e := Envelope{Keys: []string{"queues.yaml", "configuration"}, Top: []string{"partitions"}}
	const configMapHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	for name, test := range map[string]struct{ file, text, note string }{
		"itself":   {"partitions: []\nqueues.yaml: x\n", "partitions: []\nqueues.yaml: x\n", ""},
		"empty":    {"", "", ""},
		"not YAML": {"a: [", "a: [", ""},
		"a list":   {"- a\n", "- a\n", ""},
		"a ConfigMap": {
			configMapHead + "data:\n  log: x\n  queues.yaml: |\n    a: 1\n", "\n\n\n\n\n\na: 1\n", "data.queues.yaml",
		},
		"one other key": {configMapHead + "data: {q: 'a: 1'}\n", "a: 1", "data.q"},
		"values":        {"d:\n  queues.yaml: |\n    a: 1\n", "\n\na: 1\n", "d.queues.yaml"},
		"older values":  {"x: 1\nconfiguration: 'a: 1'\n", "a: 1", "configuration"},
		"the likeliest": {"configuration: 'b: 1'\ny: {queues.yaml: 'a: 1'}\n", "a: 1", "y.queues.yaml"},
		"beside other objects": {
			"apiVersion: v1\nkind: Namespace\n---\n" + configMapHead + "data: {queues.yaml: 'a: 1'}\n", "a: 1",
			"data.queues.yaml",
		},
		"in a list of kubectl": {
			`{"apiVersion": "v1", "kind": "List", "items": [{"kind": "ConfigMap", "data": {"queues.yaml": "a: 1"}}]}`,
			"a: 1", "items[0].data.queues.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, note, err := e.Open([]byte(test.file))
			if err != nil || string(text) != test.text || (note == "") != (test.note == "") ||
				!strings.HasSuffix(note, " "+test.note) && note != "" {
				t.Errorf("Open answers %q, %q, %v; want %q and a note about %q", text, note, err, test.text, test.note)
			}
		})
	}
	for name, test := range map[string]struct{ file, want string }{
		"several": {
			"a: {queues.yaml: x}\nb: {queues.yaml: x}\n",
			"a.queues.yaml and b.queues.yaml are texts of configurations: hand over one of them",
		},
		"another object": {
			"apiVersion: v1\nkind: Secret\ndata: {a: eA==}\n",
			"a Secret, without a configuration: hand over the configuration itself, or a ConfigMap that has it below " +
				"data as queues.yaml or configuration",
		},
		"a ConfigMap without it": {configMapHead + "data: {a: x, b: x}\n", "a ConfigMap, without a configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, _, err := e.Open([]byte(test.file)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open answers %q, %v; want an error that says %q", text, err, test.want)
			}
		})
	}
}
