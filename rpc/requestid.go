package rpc

import (
	"net/http"
	"regexp"

	"github.com/google/uuid"
)

// requestIDHeader names a call in the logs of everybody on its way. A caller may choose it; the answer tells it.
const requestIDHeader = "X-Request-Id"

// wellFormed are the ids that are taken from callers: short, and nothing that could break a line of a log.
var wellFormed = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$`)

// assignRequestID gives a call its id, for everybody below and for the caller.
func assignRequestID(w http.ResponseWriter, r *http.Request) string {
	id := r.Header.Get(requestIDHeader)
	if !wellFormed.MatchString(id) {
		id = uuid.NewString()
	}
	r.Header.Set(requestIDHeader, id)
	w.Header().Set(requestIDHeader, id)
	return id
}
