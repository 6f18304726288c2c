package procedures

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestStyle keeps the rules of docs/api-style.md.
func TestStyle(t *testing.T) {
	for _, file := range PublicFiles() {
		for _, fault := range faultsOfFile(file) {
			t.Errorf("%s: see docs/api-style.md", fault)
		}
	}
}

// TestTheCoreStandsAlone: a program that uses quorate.v1 needs no message of the other packages, and the beta can
// change without the core.
func TestTheCoreStandsAlone(t *testing.T) {
	for _, file := range PublicFiles() {
		for i := range file.Imports().Len() {
			used := file.Imports().Get(i).Package()
			isOurs := strings.HasPrefix(string(used), "quorate.")
			if isOurs && used != file.Package() && used != "quorate.v1" {
				t.Errorf("%s imports %s of %s", file.Path(), file.Imports().Get(i).Path(), used)
			}
		}
	}
}

func faultsOfFile(file protoreflect.FileDescriptor) []string {
	var found []string
	for i := range file.Messages().Len() {
		found = append(found, faultsOfMessage(file.Messages().Get(i))...)
	}
	for i := range file.Enums().Len() {
		found = append(found, faultsOfEnum(file.Enums().Get(i))...)
	}
	for i := range file.Services().Len() {
		methods := file.Services().Get(i).Methods()
		for j := range methods.Len() {
			found = append(found, faultsOfMethod(methods.Get(j))...)
		}
	}
	return found
}

func faultsOfEnum(e protoreflect.EnumDescriptor) []string {
	if zero := string(e.Values().ByNumber(0).Name()); !strings.HasSuffix(zero, "_UNSPECIFIED") {
		return []string{fmt.Sprintf("2 enums: %s begins with %s", e.Name(), zero)}
	}
	return nil
}

func faultsOfMessage(m protoreflect.MessageDescriptor) []string {
	var found []string
	if forbiddenMessages[string(m.Name())] {
		found = append(found, fmt.Sprintf("13 names: message %s", m.Name()))
	}
	fields := m.Fields()
	for i := range fields.Len() {
		for _, rule := range fieldRules {
			if f := fields.Get(i); rule.isBroken(f) {
				found = append(found, fmt.Sprintf("%s: %s.%s", rule.name, m.Name(), f.Name()))
			}
		}
		if n := int(fields.Get(i).Number()); n > fields.Len() {
			found = append(found, fmt.Sprintf("15 numbers: %s.%s is number %d", m.Name(), fields.Get(i).Name(), n))
		}
	}
	return found
}

// forbiddenMessages are words that mean several things, or nothing without the page that explains them.
var forbiddenMessages = map[string]bool{
	"Mode": true, "Move": true, "Part": true, "Turn": true, "Rule": true, "Place": true, "Seat": true, "Role": true,
	"Finding": true, "Outcome": true, "Subtree": true,
}

type fieldRule struct {
	name     string
	isBroken func(f protoreflect.FieldDescriptor) bool
}

var fieldRules = []fieldRule{
	{"3 nodes: another way to name a node", func(f protoreflect.FieldDescriptor) bool {
		return isMessage(f, "quorate.v1.Place") || isMessage(f, "quorate.v1.Subtree")
	}},
	{"5 durations: not in milliseconds", func(f protoreflect.FieldDescriptor) bool {
		return isMessage(f, "google.protobuf.Duration") || strings.HasSuffix(string(f.Name()), "_seconds")
	}},
	{"6 instants: does not end in _at", func(f protoreflect.FieldDescriptor) bool {
		return isMessage(f, "google.protobuf.Timestamp") && !strings.HasSuffix(string(f.Name()), "_at")
	}},
	{"6 instants: no timestamp ends in _at", func(f protoreflect.FieldDescriptor) bool {
		return strings.HasSuffix(string(f.Name()), "_at") && !isMessage(f, "google.protobuf.Timestamp")
	}},
	{"6 instants: ledger time that does not end in _ledger_ms", func(f protoreflect.FieldDescriptor) bool {
		name := string(f.Name())
		return strings.Contains(name, "ledger") && strings.HasSuffix(name, "_ms") && !strings.HasSuffix(name, "ledger_ms") &&
			name != "ledger_time_ms"
	}},
	{"8 reads: a field read", func(f protoreflect.FieldDescriptor) bool {
		is := isMessage(f, "quorate.v1.ReadOptions") || isMessage(f, "quorate.v1.ReadInfo")
		return is != (f.Name() == "read")
	}},
	{"13 names: a keyword", func(f protoreflect.FieldDescriptor) bool { return keywords[string(f.Name())] }},
	{"13 names: a list that is not in the plural", func(f protoreflect.FieldDescriptor) bool {
		name := string(f.Name())
		return f.IsList() && !strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ed") && name != "any_of"
	}},
}

func isMessage(f protoreflect.FieldDescriptor, name protoreflect.FullName) bool {
	return !f.IsMap() && f.Message() != nil && f.Message().FullName() == name
}

func faultsOfMethod(m protoreflect.MethodDescriptor) []string {
	var found []string
	add := func(rule string) { found = append(found, fmt.Sprintf("%s: %s", rule, m.Name())) }
	in, out, name := m.Input().Fields(), m.Output().Fields(), string(m.Name())
	if string(m.Input().Name()) != name+"Request" || string(m.Output().Name()) != name+"Response" {
		add("13 names: request and response")
	}
	if strings.HasPrefix(name, "List") && (in.ByName("page_size") == nil || in.ByName("page_token") == nil ||
		out.ByName("next_page_token") == nil) {
		add("7 lists: not paged")
	}
	isStream := m.IsStreamingClient() || m.IsStreamingServer()
	if isStream || strings.HasPrefix(name, "Batch") {
		return found
	}
	if isRead(m) == (out.ByName("write") != nil) {
		add("9 writes: write")
	}
	return found
}

func isRead(m protoreflect.MethodDescriptor) bool {
	known, err := newTable([]protoreflect.FileDescriptor{m.ParentFile()}, nil, methodRules)
	if err != nil {
		return false
	}
	return !known[fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())].ChangesState
}

// keywords of the languages that docs/api-style.md names. Words that no generator has to rename (soft keywords of
// Python, contextual ones of C# and Kotlin) are not among them, nor is namespace.
var keywords = wordSet(`
and as assert async await auto bool break byte case catch chan char class const continue crate def default
defer del delete do double elif else end enum except explicit export extends extern false final finally float
fn for foreach friend from func function global go goto if impl implements import in inline instanceof int
interface is lambda let long loop map match mod module mut native new nil not null object operator or package
pass private protected protocol pub public raise range ref register rescue retry return self short signed
sizeof static strict string struct super switch template this throw throws trait true try type typedef
typename typeof union unless unsafe unsigned until use using var virtual void volatile when where while with
yield repeated to
`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}
