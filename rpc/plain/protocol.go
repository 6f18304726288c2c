package plain

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

// servicePrefix begins the paths of all services of Quorate.
const servicePrefix = "/quorate."

// CheckProtocol returns a step that answers calls which no protocol takes: HTTP status 404 for a procedure that does
// not exist, 405 for a method, 415 for a content type. The body is an error in JSON with a Problem.
func CheckProtocol(table procedures.Table) pipeline.Step {
	return func(x *pipeline.Exchange) bool {
		r := x.Request
		known, found := table[r.URL.Path]
		if !found {
			if !strings.HasPrefix(r.URL.Path, servicePrefix) {
				return true // a page, or a service of gRPC's own
			}
			refuse(x, http.StatusNotFound, "unimplemented", "", fmt.Sprintf(
				"there is no procedure %s: procedures are /SERVICE/METHOD, such as /quorate.v1.TreeService/ListTrees, and the "+
					"page docs/api.md lists them", r.URL.Path))
			return false
		}
		if known.Kind != procedures.ServesClients {
			return true
		}
		if r.Method != http.MethodPost && !isQuery(r, known) {
			allowed := http.MethodPost
			if !known.ChangesState && !known.Streams {
				allowed = "GET, POST"
			}
			x.Writer.Header().Set("Allow", allowed)
			refuse(x, http.StatusMethodNotAllowed, "invalid_argument", "", fmt.Sprintf(
				"%s is not a call: send POST with a body of JSON and the header Content-Type: application/json, such as "+
					"curl -H 'Content-Type: application/json' -d '{}' URL", r.Method))
			return false
		}
		if r.Method == http.MethodPost && !takes(known, r.Header.Get(headerType)) {
			refuse(x, http.StatusUnsupportedMediaType, "invalid_argument", headerType, wrongType(r, known))
			return false
		}
		return true
	}
}

// AllowReads is a step before a document: it refuses other methods than GET and HEAD.
func AllowReads(x *pipeline.Exchange) bool {
	r := x.Request
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	x.Writer.Header().Set("Allow", "GET, HEAD")
	refuse(x, http.StatusMethodNotAllowed, "invalid_argument", "",
		fmt.Sprintf("%.20q is not a method of %s: GET it", r.Method, r.URL.Path))
	return false
}

func refuse(x *pipeline.Exchange, status int, code, field, text string) {
	observe.CallOf(x.Request.Context()).Code = code
	invalidArgument(code, text, field).write(x.Writer, status)
}

// isQuery reports whether a GET request is one as Connect defines it: a read with its message in the query.
func isQuery(r *http.Request, known procedures.Info) bool {
	return r.Method == http.MethodGet && !known.ChangesState && !known.Streams && r.URL.Query().Has("encoding")
}

// takes leaves the content types of gRPC to the library.
func takes(known procedures.Info, contentType string) bool {
	name, parameters, _ := strings.Cut(contentType, ";")
	if parameters = strings.ToLower(strings.TrimSpace(parameters)); parameters != "" && parameters != "charset=utf-8" {
		return false
	}
	switch name = strings.TrimSpace(name); {
	case strings.HasPrefix(name, "application/grpc"):
		return true
	case name == typeJSON:
		return !known.Uploads
	case !known.Streams:
		return name == "application/proto"
	}
	return name == typeConnect || name == "application/connect+proto"
}

func wrongType(r *http.Request, known procedures.Info) string {
	given := r.Header.Get(headerType)
	if given == "" {
		given = "the header Content-Type is missing"
	} else {
		given = fmt.Sprintf("the content type %.100q is not one of this procedure", given)
	}
	allowed := "application/json, application/proto, or those of gRPC and gRPC-Web"
	switch {
	case known.Uploads:
		allowed = "application/connect+json, application/connect+proto, or those of gRPC and gRPC-Web, because the " +
			"request is a stream"
	case known.Streams:
		allowed = "application/json for lines of JSON, application/connect+json, application/connect+proto, or those of " +
			"gRPC and gRPC-Web"
	}
	return given + ": allowed are " + allowed
}
