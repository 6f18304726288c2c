package access_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func to(role string, subjects ...string) access.Binding {
	b := access.Binding{Role: role}
	for _, text := range subjects {
		s, err := access.ParseSubject(text)
		if err != nil {
			panic(err)
		}
		b.To = append(b.To, s)
	}
	return b
}

func parse(t testing.TB, text string) access.Subject {
	t.Helper()
	s, err := access.ParseSubject(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func second[T any](_ T, err *access.Error) *access.Error { return err }

func refused(t testing.TB, err *access.Error, kind access.ErrorKind, field, text string) {
	t.Helper()
	if err == nil {
		t.Errorf("accepted, want a refusal %s that says %q", kind, text)
		return
	}
	if err.Kind != kind || err.Field != field || !strings.Contains(err.Error(), text) {
		t.Errorf("refused with %s of %q: %s; want %s of %q that says %q", err.Kind, err.Field, err, kind, field, text)
	}
}
