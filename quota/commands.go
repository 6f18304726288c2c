package quota

import "github.com/quorate/quorate/internal/access"

// CommandFacts are what is known about a command from its type. The log, the audit records, the check of the disk, the
// rights and the dry runs of the API read it here, so a new command states each of them once.
type CommandFacts struct {
	// Number is that of its field in message Command of the log. Numbers are never used again.
	Number int32
	// Name is the name of its type, which is also the action in its audit record.
	Name string
	// Record is the kind of audit record of a command that has changed something.
	Record AuditKind
	// HoldsQuota is true if the command asks for quota, or changes what an allocation holds: then a server can write an
	// audit record before it is proposed.
	HoldsQuota bool
	// GrowsLedger is true if the command may add data that stays: it is refused while the disk is nearly full.
	GrowsLedger bool
	// KeepsOrder is true if no proposal may overtake the command: what arrived before it must be applied before it.
	KeepsOrder bool
	// DryRun says how the API tries the command.
	DryRun DryRunKind
	// SystemTask is what a command does that only the cluster itself proposes ("ends what is due"); empty for
	// a command of clients.
	SystemTask string
	// Verb is the right that the command needs wherever it is given, if that depends on nothing but its type.
	Verb access.Verb
	// NeedsPlan is true if only the plan of the command says which rights it needs.
	NeedsPlan bool
}

// AuditKind is a kind of audit records of commands.
type AuditKind uint8

// The kinds of audit records.
const (
	// NoRecord: the command changes neither the configuration nor access.
	NoRecord AuditKind = iota
	// ConfigurationRecord: it changes the configuration.
	ConfigurationRecord
	// AccessRecord: it changes the access book.
	AccessRecord
)

// DryRunKind is how a command is tried without an effect.
type DryRunKind uint8

// The kinds of dry runs.
const (
	// NoDryRun: the API does not offer it.
	NoDryRun DryRunKind = iota
	// TriesDecision tells how the command would be decided.
	TriesDecision
	// TriesEffects also tells what it would do to requests that wait or come later.
	TriesEffects
)

type commandNumber int32

// FactsOf returns the facts of a command.
func FactsOf(c Command) *CommandFacts { return &commandTable[c.command()] }

// Commands returns the facts of all commands in the order of their numbers.
func Commands() []CommandFacts {
	var all []CommandFacts
	for _, facts := range commandTable {
		if facts.Name != "" {
			all = append(all, facts)
		}
	}
	return all
}

// commandTable has a row for each command, at its number.
var commandTable = [...]CommandFacts{
	1: {Number: 1, Name: "Allocate", HoldsQuota: true, GrowsLedger: true},
	2: {Number: 2, Name: "Release"},
	3: {
		Number: 3, Name: "ApplyTrees", Record: ConfigurationRecord, GrowsLedger: true, DryRun: TriesEffects,
		NeedsPlan: true,
	},
	4: {Number: 4, Name: "SetLimits", Record: ConfigurationRecord, GrowsLedger: true, DryRun: TriesEffects},
	5: {Number: 5, Name: "DeleteTree", Record: ConfigurationRecord, DryRun: TriesEffects},
	6: {Number: 6, Name: "Confirm"},
	7: {Number: 7, Name: "Cancel"},
	8: {Number: 8, Name: "Expire", KeepsOrder: true, SystemTask: "ends what is due"},
	9: {
		Number: 9, Name: "MoveNode", Record: ConfigurationRecord, GrowsLedger: true, DryRun: TriesEffects,
		NeedsPlan: true,
	},
	11: {
		Number: 11, Name: "RollBack", Record: ConfigurationRecord, GrowsLedger: true, DryRun: TriesEffects,
		Verb: access.ConfigRead, NeedsPlan: true,
	},
	12: {Number: 12, Name: "Renew"},
	13: {Number: 13, Name: "UpdateItems", Verb: access.ItemsClean},
	14: {Number: 14, Name: "ResetItems", DryRun: TriesDecision, Verb: access.ItemsReset},
	15: {Number: 15, Name: "ChangeAccess", Record: AccessRecord},
	17: {
		Number: 17, Name: "RequestLimits", Record: ConfigurationRecord, GrowsLedger: true, Verb: access.LimitsRequest,
	},
	18: {Number: 18, Name: "ApproveRequest", Record: ConfigurationRecord, DryRun: TriesEffects},
	19: {Number: 19, Name: "RejectRequest", Record: ConfigurationRecord},
	20: {Number: 20, Name: "WithdrawRequest", Record: ConfigurationRecord},
	21: {Number: 21, Name: "Resize", HoldsQuota: true, DryRun: TriesDecision},
	22: {Number: 22, Name: "Transfer", HoldsQuota: true, DryRun: TriesDecision},
	23: {Number: 23, Name: "Split", HoldsQuota: true, GrowsLedger: true, DryRun: TriesDecision},
	24: {Number: 24, Name: "SetCivilOffset", SystemTask: "sets civil time"},
	25: {Number: 25, Name: "ScheduleLimits", Record: ConfigurationRecord, GrowsLedger: true, DryRun: TriesDecision},
	26: {Number: 26, Name: "CancelScheduledLimit", Record: ConfigurationRecord, DryRun: TriesDecision},
	27: {Number: 27, Name: "ExtendSchedule", SystemTask: "adds windows to a scheduled limit"},
	30: {Number: 30, Name: "CordonNode", Record: ConfigurationRecord, DryRun: TriesEffects},
	31: {Number: 31, Name: "UncordonNode", Record: ConfigurationRecord, DryRun: TriesEffects},
	40: {Number: 40, Name: "SetWebhook", Record: ConfigurationRecord, GrowsLedger: true},
	41: {Number: 41, Name: "ManageWebhook", Record: ConfigurationRecord},
	42: {Number: 42, Name: "AdvanceWebhooks", SystemTask: "reports what webhooks have delivered"},
}

func (Allocate) command() commandNumber             { return 1 }
func (Release) command() commandNumber              { return 2 }
func (ApplyTrees) command() commandNumber           { return 3 }
func (SetLimits) command() commandNumber            { return 4 }
func (DeleteTree) command() commandNumber           { return 5 }
func (Confirm) command() commandNumber              { return 6 }
func (Cancel) command() commandNumber               { return 7 }
func (Expire) command() commandNumber               { return 8 }
func (MoveNode) command() commandNumber             { return 9 }
func (RollBack) command() commandNumber             { return 11 }
func (Renew) command() commandNumber                { return 12 }
func (UpdateItems) command() commandNumber          { return 13 }
func (ResetItems) command() commandNumber           { return 14 }
func (ChangeAccess) command() commandNumber         { return 15 }
func (RequestLimits) command() commandNumber        { return 17 }
func (ApproveRequest) command() commandNumber       { return 18 }
func (RejectRequest) command() commandNumber        { return 19 }
func (WithdrawRequest) command() commandNumber      { return 20 }
func (Resize) command() commandNumber               { return 21 }
func (Transfer) command() commandNumber             { return 22 }
func (Split) command() commandNumber                { return 23 }
func (SetCivilOffset) command() commandNumber       { return 24 }
func (ScheduleLimits) command() commandNumber       { return 25 }
func (CancelScheduledLimit) command() commandNumber { return 26 }
func (ExtendSchedule) command() commandNumber       { return 27 }
func (CordonNode) command() commandNumber           { return 30 }
func (UncordonNode) command() commandNumber         { return 31 }
func (SetWebhook) command() commandNumber           { return 40 }
func (ManageWebhook) command() commandNumber        { return 41 }
func (AdvanceWebhooks) command() commandNumber      { return 42 }
