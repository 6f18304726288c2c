package main

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// dailyGroup has the short forms.
const dailyGroup = "daily"

// groups are the titles of the help, in order.
var groups = []struct{ id, title string }{
	{dailyGroup, "Short forms for every day:"},
	{"allocations", "Allocations, leases and waiting:"},
	{"configuration", "Trees, limits and their configuration:"},
	{"access", "Access:"},
	{"cluster", "Servers and clusters:"},
}

// shortForms are the commands of every day, by their short forms. A tenth of the commands have one, so that the grammar
// stays the rule.
var shortForms = map[string]string{
	"allocate": "allocation create",
	"apply":    "manifest apply",
	"explain":  "allocation explain",
	"plan":     "manifest plan",
	"release":  "allocation release",
	"renew":    "allocation renew",
	"status":   "cluster status",
	"top":      "cluster top",
	"usage":    "node list",
	"watch":    "event watch",
}

// declaredNouns are all nouns, in the order of the help.
var declaredNouns = []cli.Noun{
	{Name: "allocation", Group: "allocations", Short: "What is held: ask for it, change it, end it, explain it"},
	{Name: "lease", Group: "allocations", Short: "Allocations that end unless they are renewed"},
	{Name: "item", Group: "allocations", Short: "Units with a name and a state"},
	{Name: "queue", Group: "allocations", Short: "Requests that wait"},
	{Name: "event", Group: "allocations", Short: "What happens to requests, allocations and limits"},

	{Name: "manifest", Group: "configuration", Short: "The configuration as text: apply, compare, print or convert it"},
	{Name: "revision", Group: "configuration", Short: "Changes of the configuration"},
	{Name: "tree", Group: "configuration", Short: "Hierarchies of limits"},
	{Name: "node", Group: "configuration", Short: "Places in a tree, with their limits and usage"},
	{Name: "limit", Group: "configuration", Short: "Limits of one node, its users and groups"},
	{Name: "schedule", Group: "configuration", Short: "Limits that hold from one time until another"},
	{Name: "request", Group: "configuration", Short: "Requests for other limits, and the decisions about them"},
	{Name: "policy", Group: "configuration", Short: "Policies that the configuration defines"},
	{Name: "principal", Group: "configuration", Short: "Users and groups, with their limits and usage"},
	{Name: "activity", Group: "configuration", Short: "What nodes held in the last 24 hours"},

	{
		Name: "access", Group: "access", Short: "Who you are, what you may do, and whether rights count",
		Long: `Who you are, what you may do, and whether rights count.

A command presents the token in the file that --token-file or QUORATE_TOKEN_FILE names, or the token in QUORATE_TOKEN.
Roles are given by bindings in the configuration, see "quorate manifest apply".`,
	},
	{
		Name: "account", Group: "access", Short: "Accounts, which own tokens",
		Long: `Accounts, which own tokens. The account ci is the user account/ci, and bindings name it "account ci".`,
	},
	{
		Name: "token", Group: "access", Short: "Tokens of accounts",
		Long: `Tokens of accounts. An account has at most 8 live tokens. The servers keep a hash of a token only: it is
shown once, when it is made.`,
	},
	{Name: "refusal", Group: "access", Short: "Credentials that are valid and refused nevertheless"},
	{Name: "role", Group: "access", Short: "Sets of verbs"},
	{Name: "binding", Group: "access", Short: "Who has a role where"},
	{Name: "audit", Group: "access", Short: "Records of who changed what"},

	{Name: "cluster", Group: "cluster", Short: "The cluster as a whole"},
	{
		Name: "member", Group: "cluster", Short: "Members of the cluster and their health",
		Long: `Members of the cluster and their health. Any server can be asked. The leader makes one change at a time, and a
majority has stored it before the command ends. All commands can be repeated: a change that is already in effect is
reported as unchanged, with exit code 0.`,
	},
	{Name: "level", Group: "cluster", Short: "The feature level, which decides what old versions may take part"},
	{Name: "digest", Group: "cluster", Short: "Digests of the state of members"},
	{Name: "snapshot", Group: "cluster", Short: "Backups of the whole state"},
	{Name: "webhook", Group: "cluster", Short: "Receivers to which events are delivered"},
	{Name: "server", Group: "cluster", Short: "Servers on this machine"},
	{Name: "quarantine", Group: "cluster", Short: "Stopped nodes whose state differed"},
	{Name: "log", Group: "cluster", Short: "The log of a stopped node"},
	{Name: "tls", Group: "cluster", Short: "Certificates and keys"},
	{
		Name: "context", Group: "cluster", Short: "Names of clusters with the credentials for them",
		Long: contextHelp,
	},
}

const contextHelp = `Names of clusters with the credentials for them. Commands use the current context, or the one that
--context or QUORATE_CONTEXT names. What flags and other variables of the environment name comes before that of the
context. The current context does not apply to commands for which --server or QUORATE_SERVER names other servers.

Contexts are in contexts.json in the folder quorate of the user's configuration (or the file that QUORATE_CONFIG names),
which only the user can read. They have the paths of token files and keys, no secrets.`
