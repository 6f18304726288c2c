package rpc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/procedures"
)

// jsonError is an error as callers with only HTTP and JSON read it.
type jsonError struct {
	Code, Message string
	Details       []struct {
		Type, Value string
		Debug       json.RawMessage
	}
}

func readJSONError(t *testing.T, body string) (e jsonError) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &e); err != nil || len(e.Details) == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	return e
}

// TestErrorsOverJSONHaveAllFields: the JSON of the details of errors has the fields that are zero, as answers have.
func TestErrorsOverJSONHaveAllFields(t *testing.T) {
	d := oneNode(t)
	long := `{"id":"a","claims":[{"tree":"cern","node":"physics/higgs","amounts":{"cores":"8000"}},` +
		`{"tree":"cern","node":"physics","amounts":{"cores":"8000"}}]}`
	unknownTree := usagePath + "?encoding=json&message=" + url.QueryEscape(`{"tree":"unknown"}`)
	for name, c := range map[string]struct{ method, path, body, encoding, has string }{
		"a denial": {"POST", allocatePath, `{"id":"a","claims":[{"tree":"cern","node":"physics/higgs","amounts":` +
			`{"cores":"8000"}}]}`, "identity", `"preempted":[]`},
		"a long denial":   {"POST", allocatePath, long, "gzip", `"preempted":[]`},
		"a refusal":       {"POST", usagePath, `{"tree":"unknown"}`, "identity", `"breaches":[]`},
		"one of a schema": {"POST", usagePath, `{}`, "identity", `"missingVerb":""`},
		"one of decoding": {"POST", usagePath, `{"trees":1}`, "identity", `"missingTree":"","missingNode":""`},
		"a GET":           {"GET", unknownTree, "", "identity", `"breaches":[]`},
		"a stream":        {"POST", watchPath, `{"node":"physics"}`, "identity", `"breaches":[]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, c.method, d.url+c.path, c.body, "Accept-Encoding", c.encoding)
			if got.status < http.StatusBadRequest || got.header.Get("Content-Encoding") != "" ||
				!strings.Contains(got.body, c.has) {
				t.Errorf("%d %v, want an error with %s: %s", got.status, got.header, c.has, got.body)
			}
			for _, detail := range readJSONError(t, got.body).Details {
				checkDetail(t, detail.Type, detail.Value, detail.Debug)
			}
		})
	}
}

func checkDetail(t *testing.T, name, value string, debug json.RawMessage) {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	message := kind.New().Interface()
	raw, err := base64.RawStdEncoding.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(raw, message); err != nil {
		t.Fatal(err)
	}
	all, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, all); err != nil || want.String() != string(debug) {
		t.Errorf("a detail is %s, want %s (%v)", debug, want.String(), err)
	}
}

// TestRevisionMismatch: every method with expected_revision answers aborted with the reason REVISION_MISMATCH if the
// configuration has another revision, and its comment says so.
func TestRevisionMismatch(t *testing.T) {
	d, calls := oneNode(t), map[string]string{
		"ApplyTrees":   `{"trees":[{"name":"new","resources":[{"name":"cores"}]}]`,
		"SetLimits":    `{"tree":"cern","node":"physics","limits":{"cores":{"amount":"7"}}`,
		"DeleteTree":   `{"name":"cern"`,
		"MoveNode":     `{"tree":"cern","node":"physics/higgs","newNode":"physics/boson"`,
		"CordonNode":   `{"tree":"cern","node":"physics"`,
		"UncordonNode": `{"tree":"cern","node":"physics"`,
		"RollBack":     `{"revision":"1"`,
	}
	for method := range methodsOfAPI() {
		if method.Input().Fields().ByName("expected_revision") == nil {
			continue
		}
		body, known := calls[string(method.Name())]
		if !known {
			t.Errorf("this test makes no call of %s", method.FullName())
			continue
		}
		delete(calls, string(method.Name()))
		path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
		got := send(t, "POST", d.url+path, body+`,"expectedRevision":"99"}`)
		problem := &quoratev1.Problem{}
		e := readJSONError(t, got.body)
		if err := protojson.Unmarshal(e.Details[0].Debug, problem); err != nil || got.status != http.StatusConflict ||
			e.Code != "aborted" || problem.GetReason() != "REVISION_MISMATCH" || !problem.GetNotApplied() {
			t.Errorf("%s: %d %s (%v)", method.Name(), got.status, got.body, err)
		}
	}
	if len(calls) > 0 {
		t.Errorf("these have no expected_revision: %v", calls)
	}
}

func methodsOfAPI() func(yield func(protoreflect.MethodDescriptor) bool) {
	return func(yield func(protoreflect.MethodDescriptor) bool) {
		for _, f := range procedures.PublicFiles() {
			for i := range f.Services().Len() {
				methods := f.Services().Get(i).Methods()
				for j := range methods.Len() {
					if !yield(methods.Get(j)) {
						return
					}
				}
			}
		}
	}
}
