// Package plain serves callers that have no library for Connect or gRPC, only HTTP and JSON.
//
// [CheckProtocol] answers what no protocol takes (a wrong method, content type or path) with a body that says what is
// allowed. [CompleteErrors] gives errors of decoding the typed detail that all other errors have, and all details all
// fields. [StreamLines]
// serves streams as lines of JSON to callers that send an ordinary JSON request. [AllowReads] is for documents beside
// the procedures.
package plain

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Content types.
const (
	typeJSON       = "application/json"
	typeConnect    = "application/connect+json"
	typeLines      = "application/x-ndjson"
	headerType     = "Content-Type"
	headerLength   = "Content-Length"
	headerEncoding = "Content-Encoding"
)

// answerError is an error as Connect writes it in JSON.
type answerError struct {
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Details []json.RawMessage `json:"details,omitempty"`
}

// detail is a typed detail of an error as Connect writes it in JSON.
type detail struct {
	Type  string          `json:"type"`
	Value string          `json:"value"`
	Debug json.RawMessage `json:"debug"`
}

// invalidArgument is an error about the request itself: nothing was done.
func invalidArgument(code, text, field string) answerError {
	problem := &quoratev1.Problem{Reason: "INVALID", Field: field, NotApplied: true}
	value, err1 := proto.Marshal(problem)
	debug, err2 := allFields(problem)
	e := answerError{Code: code, Message: text}
	if err1 == nil && err2 == nil {
		encoded, err := json.Marshal(detail{
			Type: string(problem.ProtoReflect().Descriptor().FullName()), Value: base64.RawStdEncoding.EncodeToString(value),
			Debug: debug,
		})
		if err == nil {
			e.Details = []json.RawMessage{encoded}
		}
	}
	return e
}

// completeDetails gives the JSON of each detail all fields, and reports whether there is a detail.
func (e *answerError) completeDetails() bool {
	for i, raw := range e.Details {
		var d detail
		if json.Unmarshal(raw, &d) != nil {
			continue
		}
		value, err := base64.RawStdEncoding.DecodeString(d.Value)
		known, unknown := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(d.Type))
		if err != nil || unknown != nil {
			continue
		}
		message := known.New().Interface()
		if proto.Unmarshal(value, message) != nil {
			continue
		}
		if d.Debug, err = allFields(message); err != nil {
			continue
		}
		if complete, err := json.Marshal(d); err == nil {
			e.Details[i] = complete
		}
	}
	return len(e.Details) > 0
}

// allFields is a message in JSON as answers are: with the fields that are zero.
func allFields(message proto.Message) (json.RawMessage, error) {
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
}

func (e answerError) write(w http.ResponseWriter, status int) {
	text, err := json.Marshal(e)
	if err != nil {
		text = []byte("{}") // it has texts and encoded JSON only
	}
	w.Header().Set(headerType, typeJSON)
	w.Header().Del(headerLength)
	w.Header().Del(headerEncoding)
	w.WriteHeader(status)
	_, _ = w.Write(text) // a caller that has gone needs no answer
}
