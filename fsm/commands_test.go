package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// TestTheLogHasTheCommandsOfTheTable: message Command of the log has a field for each row, with its number and name.
func TestTheLogHasTheCommandsOfTheTable(t *testing.T) {
	fields := (&logv1.Command{}).ProtoReflect().Descriptor().Oneofs().ByName("command").Fields()
	rows := quota.Commands()
	if fields.Len() != len(rows) {
		t.Errorf("the log has %d commands, and the table %d", fields.Len(), len(rows))
	}
	for i := range fields.Len() {
		number, name := int32(fields.Get(i).Number()), string(fields.Get(i).Message().Name())
		j := slices.IndexFunc(rows, func(f quota.CommandFacts) bool { return f.Number == number })
		if j < 0 || rows[j].Name != name {
			t.Errorf("the log has %s at %d, and the table does not", name, number)
		}
	}
}

// TestCommandsAreWrittenAsTheTableSays: each command is encoded under its number, and its audit records are of the kind
// and the name in its row.
func TestCommandsAreWrittenAsTheTableSays(t *testing.T) {
	kinds := map[quota.AuditKind]audit.Kind{
		quota.ConfigurationRecord: audit.Configuration, quota.AccessRecord: audit.Access,
	}
	verify.Check(t, func(t *rapid.T) {
		command := anyCommand().Draw(t, "command")
		facts := quota.FactsOf(command)
		m := encodeCommand(command).ProtoReflect()
		field := m.WhichOneof(m.Descriptor().Oneofs().ByName("command"))
		if int32(field.Number()) != facts.Number {
			t.Errorf("%T is written as field %d: %+v", command, field.Number(), facts)
		}
		record, isChange := changeRecord(command)
		if isChange != (facts.Record != quota.NoRecord) || isChange && record.Kind != kinds[facts.Record] {
			t.Errorf("%T leaves the record %+v: %+v", command, record, facts)
		}
		switch command.(type) {
		case quota.ChangeAccess, quota.ManageWebhook: // their records say what they do
		default:
			if isChange && record.Action != facts.Name {
				t.Errorf("%T leaves the record %+v: %+v", command, record, facts)
			}
		}
		if intent, holds := AuditGrantIntent(nil, command); holds != facts.HoldsQuota ||
			holds && (intent.Action != facts.Name || intent.Detail == "") {
			t.Errorf("%T is announced as %+v: %+v", command, intent, facts)
		}
	})
}
