package browsertest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	// The messages of all services that the dashboard calls.
	_ "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	_ "github.com/quorate/quorate/client/gen/quorate/v1"
	_ "github.com/quorate/quorate/client/gen/quorate/v1beta1"
)

// recording is what a server answered to a page: all that is needed to show the page again without the server, with the
// same numbers, ids and times.
type recording struct {
	// At is the time of the page, in milliseconds.
	At int64
	// Position is what the stream of changes said last.
	Position json.RawMessage
	Calls    []recordedCall
}

type recordedCall struct {
	Method string // with its service
	Ask    json.RawMessage
	Status int
	Answer json.RawMessage // a message, or an error as the protocol has it
}

const watchChanges = "/quorate.v1.ChangeService/WatchChanges"

// askedKey finds the body of a request in its context, because the body itself is read by then.
type askedKey struct{}

// recorder passes calls to a server, and keeps the last answer to each question.
type recorder struct {
	at int64

	mu      sync.Mutex
	calls   map[string]recordedCall
	changes *bytes.Buffer // of the stream that was opened last
}

func newRecorder() *recorder {
	return &recorder{at: time.Now().UnixMilli(), calls: map[string]recordedCall{}, changes: &bytes.Buffer{}}
}

// listen returns the address at which a server is recorded.
func (r *recorder) listen(t *testing.T, s *server) string {
	t.Helper()
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(response *http.Response) error {
			if response.Request.Method != http.MethodPost {
				return nil
			}
			asked, _ := response.Request.Context().Value(askedKey{}).([]byte)
			return r.keep(response, asked)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // the page was closed
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), askedKey{}, body)))
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func (r *recorder) keep(response *http.Response, ask []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := response.Request.URL.Path
	if path == watchChanges {
		r.changes = &bytes.Buffer{}
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, lockedWriter{&r.mu, r.changes}), response.Body}
		return nil
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	call := recordedCall{Method: path, Status: response.StatusCode, Answer: answer}
	if call.Ask, err = question(path, ask); err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		call.Answer, err = toJSON(path, answer, protoreflect.MethodDescriptor.Output)
	}
	r.calls[path+string(call.Ask)] = call
	return err
}

type lockedWriter struct {
	mu *sync.Mutex
	io.Writer
}

func (w lockedWriter) Write(content []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Writer.Write(content)
}

// recording is all that was recorded so far.
func (r *recorder) recording(t *testing.T) recording {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := recording{At: r.at}
	for rest := r.changes.Bytes(); len(rest) >= 5; {
		end := 5 + int(binary.BigEndian.Uint32(rest[1:]))
		if len(rest) < end {
			break
		}
		position, err := toJSON(watchChanges, rest[5:end], protoreflect.MethodDescriptor.Output)
		if err != nil {
			t.Fatal(err)
		}
		all.Position, rest = position, rest[end:]
	}
	for _, call := range r.calls {
		all.Calls = append(all.Calls, call)
	}
	slices.SortFunc(all.Calls, func(a, b recordedCall) int {
		return strings.Compare(a.Method+string(a.Ask), b.Method+string(b.Ask))
	})
	return all
}

// listen returns an address at which the page is as it was recorded. A question that was not recorded fails the test.
func (r recording) listen(t *testing.T) string {
	t.Helper()
	answers := map[string]recordedCall{}
	for _, call := range r.Calls {
		ask, err := json.Marshal(call.Ask) // in one line, as question writes it
		if err != nil {
			t.Fatal(err)
		}
		answers[call.Method+string(ask)] = call
	}
	files := http.FileServer(http.Dir(root + "/web/dist"))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		path := request.URL.Path
		switch {
		case path == watchChanges:
			r.tellPosition(w, request)
		case request.Method == http.MethodPost:
			ask, err := io.ReadAll(request.Body)
			if err != nil {
				return
			}
			asked, err := question(path, ask)
			call, known := answers[path+string(asked)]
			if err != nil || !known {
				t.Errorf("no answer to %s %s is recorded (%v): record them again with make pictures", path, asked, err)
				http.Error(w, "", http.StatusNotImplemented)
				return
			}
			call.write(w)
		case strings.Contains(path, "."):
			http.StripPrefix("/ui", files).ServeHTTP(w, request)
		default:
			page, err := os.ReadFile(root + "/web/dist/index.html")
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(bytes.ReplaceAll(page, []byte("{{mode}}"), []byte("write")))
		}
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return front.URL
}

func (c recordedCall) write(w http.ResponseWriter) {
	content, kind := []byte(c.Answer), "application/json"
	if c.Status == http.StatusOK {
		kind = "application/proto"
		message, err := newMessage(c.Method, protoreflect.MethodDescriptor.Output)
		if err == nil {
			err = protojson.Unmarshal(c.Answer, message)
		}
		if err == nil {
			content, err = proto.Marshal(message)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(c.Status)
	_, _ = w.Write(content)
}

// tellPosition says again and again that nothing changes, because a page takes a stream that is silent for lost.
func (r recording) tellPosition(w http.ResponseWriter, request *http.Request) {
	message, err := newMessage(watchChanges, protoreflect.MethodDescriptor.Output)
	if err == nil {
		err = protojson.Unmarshal(r.Position, message)
	}
	content, marshalErr := proto.Marshal(message)
	if err != nil || marshalErr != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/connect+proto")
	envelope := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(content)))
	ticker := time.NewTicker(3 * time.Second)
	defer ticker.Stop()
	for {
		_, _ = w.Write(append(envelope, content...))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-request.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// question is a request as JSON without how fresh the answer must be, which depends on the time of the call.
func question(path string, content []byte) (json.RawMessage, error) {
	message, err := newMessage(path, protoreflect.MethodDescriptor.Input)
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(content, message); err != nil {
		return nil, err
	}
	m := message.ProtoReflect()
	if read := m.Descriptor().Fields().ByName("read"); read != nil {
		m.Clear(read)
	}
	return plainJSON(message)
}

func toJSON(
	path string, content []byte, side func(protoreflect.MethodDescriptor) protoreflect.MessageDescriptor,
) (json.RawMessage, error) {
	message, err := newMessage(path, side)
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(content, message); err != nil {
		return nil, err
	}
	return plainJSON(message)
}

// plainJSON removes the spaces that protojson writes at random.
func plainJSON(message proto.Message) (json.RawMessage, error) {
	content, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var plain bytes.Buffer
	err = json.Compact(&plain, content)
	return plain.Bytes(), err
}

func newMessage(
	path string, side func(protoreflect.MethodDescriptor) protoreflect.MessageDescriptor,
) (proto.Message, error) {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, err
	}
	described, ok := found.(protoreflect.ServiceDescriptor)
	if !ok || described.Methods().ByName(protoreflect.Name(method)) == nil {
		return nil, fmt.Errorf("%s is not a method", path)
	}
	name := side(described.Methods().ByName(protoreflect.Name(method))).FullName()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

// save writes a recording, compressed, because most of it repeats itself.
func (r recording) save(path string) error {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(packed).Encode(r); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func loadRecording(path string) (recording, error) {
	var r recording
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return r, err
	}
	return r, json.NewDecoder(unpacked).Decode(&r)
}
