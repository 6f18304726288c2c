package wire

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/manifest"
)

// ToBindings reads the bindings of a node, in canonical form. The field is the path of the list in the request, and
// errors name the element as the caller wrote it. What depends on custom roles is left to the ledger, which knows them.
func ToBindings(field string, list []*quoratev1.Binding) ([]access.Binding, error) {
	bindings, err := toBindings(field, list)
	if err != nil {
		return nil, err
	}
	for i, b := range bindings {
		if _, builtin := (access.Roles{}).Find(b.Role); !builtin {
			continue
		}
		if err := checkBinding(b, access.Roles{}, access.NodeScope); err != nil {
			return nil, invalidAccess(ElementOf(field, i), err)
		}
	}
	return access.CanonicalBindings(bindings), nil
}

// toBindings reads bindings in the order in which they were sent, and does not check their roles.
func toBindings(field string, list []*quoratev1.Binding) ([]access.Binding, error) {
	if len(list) > access.MaxBindings {
		return nil, InvalidField(field, "there are %d bindings; at most %d are allowed at one place", len(list),
			access.MaxBindings)
	}
	var bindings []access.Binding
	for i, shown := range list {
		b, err := toBinding(ElementOf(field, i), shown)
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, b)
	}
	return bindings, nil
}

func toBinding(field string, b *quoratev1.Binding) (access.Binding, error) {
	until, err := toMillis(joinFields(field, "ends_at"), b.GetEndsAt())
	if err != nil {
		return access.Binding{}, err
	}
	if len(b.GetSubjects()) > access.MaxSubjects || len(b.GetSubjects()) == 0 {
		return access.Binding{}, InvalidField(joinFields(field, "subjects"), "there are %d subjects; 1 to %d are allowed",
			len(b.GetSubjects()), access.MaxSubjects)
	}
	binding := access.Binding{
		Role: b.GetRole(), MaxPriority: b.GetMaxPriority(), Unpreemptable: b.GetUnpreemptable(),
		HoldAs: access.Holders{Any: b.GetHoldAs().GetAny(), Names: cloneStrings(b.GetHoldAs().GetNames())},
		Until:  until,
	}
	for i, named := range b.GetSubjects() {
		subject := manifest.SubjectOf(named)
		if err := subject.Check(); err != nil {
			return access.Binding{}, invalidAccess(ElementOf(joinFields(field, "subjects"), i), err)
		}
		binding.To = append(binding.To, subject)
	}
	return binding, nil
}

// checkBinding is a refusal with a field of the binding, or nil.
func checkBinding(b access.Binding, roles access.Roles, scope access.Scope) *access.Error {
	err := access.CheckBindings([]access.Binding{b}, roles, scope)
	if err == nil {
		return nil
	}
	within := *err
	const element = "bindings[0]."
	if len(within.Field) > len(element) {
		within.Field = within.Field[len(element):]
	}
	return &within
}

// FromBindings is the inverse of ToBindings.
func FromBindings(list []access.Binding) []*quoratev1.Binding {
	var bindings []*quoratev1.Binding
	for _, b := range list {
		bindings = append(bindings, FromBinding(b))
	}
	return bindings
}

// FromBinding shows one binding.
func FromBinding(b access.Binding) *quoratev1.Binding {
	shown := &quoratev1.Binding{
		Role: b.Role, MaxPriority: b.MaxPriority, Unpreemptable: b.Unpreemptable, EndsAt: fromMillis(b.Until),
	}
	for _, s := range b.To {
		shown.Subjects = append(shown.Subjects, manifest.SubjectMessage(s))
	}
	if b.HoldAs.Any || len(b.HoldAs.Names) > 0 {
		shown.HoldAs = &quoratev1.HoldAs{Any: b.HoldAs.Any, Names: cloneStrings(b.HoldAs.Names)}
	}
	return shown
}

// toMillis reads a point of wall time in milliseconds since 1970; 0 if it is absent. Fractions of a millisecond are cut
// off, so that nothing lasts longer than was asked for.
func toMillis(field string, at *timestamppb.Timestamp) (int64, error) {
	if at == nil {
		return 0, nil
	}
	millis := at.AsTime().UnixMilli()
	if err := at.CheckValid(); err != nil || millis <= 0 {
		return 0, InvalidField(field, "%v is not a time after 1970", at)
	}
	return millis, nil
}

func fromMillis(at int64) *timestamppb.Timestamp {
	if at == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMilli(at))
}

// ElementOf is the path of an element of a list.
func ElementOf(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// cloneStrings returns nil for an empty list.
func cloneStrings(list []string) []string { return append([]string(nil), list...) }

// accessModes maps the modes.
var accessModes = map[quoratev1.AccessMode]access.Mode{
	quoratev1.AccessMode_ACCESS_MODE_OPEN:     access.Open,
	quoratev1.AccessMode_ACCESS_MODE_WATCHING: access.Watching,
	quoratev1.AccessMode_ACCESS_MODE_GUARDED:  access.Guarded,
}

// ToAccessMode reads a mode.
func ToAccessMode(field string, mode quoratev1.AccessMode) (access.Mode, error) {
	known, found := accessModes[mode]
	if !found {
		return 0, InvalidField(field, "%d is not a mode; allowed are open, watching and guarded", mode)
	}
	return known, nil
}

// FromAccessMode is the inverse of ToAccessMode.
func FromAccessMode(mode access.Mode) quoratev1.AccessMode {
	for shown, known := range accessModes {
		if known == mode {
			return shown
		}
	}
	return quoratev1.AccessMode_ACCESS_MODE_UNSPECIFIED
}

// toSpan takes 0 as the default, and refuses a span above most.
func toSpan(field string, millis, byDefault, most int64) (int64, error) {
	if millis < 0 || millis > most {
		return 0, InvalidField(field, "%d ms is not allowed; at most %d are", millis, most)
	}
	if millis == 0 {
		return byDefault, nil
	}
	return millis, nil
}

// EndOfLife is the wall time at which something ends that lives so long from now on, in milliseconds since 1970.
func EndOfLife(now time.Time, life int64) int64 {
	return now.UnixMilli() + min(life, math.MaxInt64-now.UnixMilli())
}
