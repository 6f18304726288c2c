package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
)

// draftManifest is a manifest to begin with.
type draftManifest struct {
	tree              string
	shares            []share
	teams             []string
	policy            draftPolicy
	waiting, renewing bool
}

// share is a resource of which there is a number of base units.
type share struct {
	name   string
	unit   quoratev1.Unit
	amount int64
}

// draftPolicy is a policy with the comment that explains it.
type draftPolicy struct{ name, comment string }

var draftPolicies = map[string]draftPolicy{
	"none": {"strict", `    # Parts are fixed and add up to at most what there is. For teams that use what others leave unused: cohort, or
    # borrowing if the owner gets it back at once. For limits that may add up to more than there is: capped.
`},
	"unused": {"cohort", `    # A limit is what a team owns. It may hold more while others leave theirs unused, and nothing that runs is ended.
    # A bound: "borrow: {NAME: AMOUNT}" at a team is the most beyond its own, "lend" what others may have of it.
`},
	"reclaim": {"borrowing", `    # A limit is a share. A team may hold more while others leave theirs unused; who claims its own share back preempts
    # those who borrow it.
`},
}

func (d *draftManifest) setShares(texts []string) error {
	d.shares = nil
	for _, text := range texts {
		s, err := parseShare(text)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(d.shares, func(other share) bool { return other.name == s.name }) {
			return fmt.Errorf("%s is named twice", s.name)
		}
		d.shares = append(d.shares, s)
	}
	return nil
}

// parseShare reads NAME=AMOUNT[:UNIT]. Without a unit the amount tells it.
func parseShare(text string) (share, error) {
	name, amount, isPair := strings.Cut(text, "=")
	if !isPair || name == "" {
		return share{}, fmt.Errorf("%q is not NAME=AMOUNT, such as cores=400", text)
	}
	amount, word, hasUnit := strings.Cut(amount, ":")
	s := share{name: name, unit: guessUnit(amount)}
	if hasUnit {
		s.unit = quoratev1.Unit_UNIT_UNSPECIFIED
		for unit := range quoratev1.Unit_name {
			if unit != 0 && quantity.UnitName(quoratev1.Unit(unit)) == word {
				s.unit = quoratev1.Unit(unit)
			}
		}
		if s.unit == quoratev1.Unit_UNIT_UNSPECIFIED {
			return share{}, fmt.Errorf("%q is not a unit: write count, milli, bytes or items", word)
		}
	}
	var err error
	if s.amount, err = quantity.Parse(amount, s.unit); err != nil {
		return share{}, err
	}
	if s.amount == 0 {
		return share{}, fmt.Errorf("there are 0 of %s to share", name)
	}
	return s, nil
}

func guessUnit(amount string) quoratev1.Unit {
	switch {
	case strings.HasSuffix(amount, "m"):
		return quoratev1.Unit_UNIT_MILLI
	case strings.TrimRight(amount, "kKMGTPEiB") != amount:
		return quoratev1.Unit_UNIT_BYTES
	case strings.Contains(amount, "."):
		return quoratev1.Unit_UNIT_MILLI
	}
	return quoratev1.Unit_UNIT_COUNT
}

func (d *draftManifest) setTeams(names []string) error {
	d.teams = names
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s is named twice", name)
		}
	}
	return nil
}

func (d *draftManifest) setBorrowing(word string) error {
	policy, isKnown := draftPolicies[word]
	if !isKnown {
		return fmt.Errorf("%q is not an answer: write none, unused or reclaim", word)
	}
	d.policy = policy
	return nil
}

// text writes the manifest with its comments.
func (d *draftManifest) text() string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("# Made by \"quorate manifest create\". See what it would do: quorate plan -f FILE. Then: quorate apply -f FILE.")
	line("version: 1\ntrees:\n  %s:", yamlName(d.tree))
	text.WriteString(d.policy.comment)
	line("    policy: %s", d.policy.name)
	if d.waiting {
		line("    # Requests with --wait stay in a queue. Later ones that fit pass a larger one, for 5 minutes at most;\n" +
			"    # \"strict\" lets none pass.\n    queueing: best-effort\n    overtake: 5m")
	} else {
		line("    # Requests are granted or denied at once: do not give --wait.")
	}
	if d.renewing {
		line("    # A lease ends after this time without a renewal, and returns what a dead holder had.\n" +
			"    # \"quorate lease run\" renews.\n    leases: {default-ttl: 5m, max-ttl: 12h}")
	} else {
		line("    # What is allocated without --ttl is held until it is released: quorate release ID.")
	}
	line("    resources:")
	for _, s := range d.shares {
		if s.unit == quoratev1.Unit_UNIT_ITEMS {
			line("      # Called %s-1, %s-2 and so on; \"items: {names: [...]}\" gives names of your own.", s.name, s.name)
			line("      %s: {items: {min: %d, max: %d}}", yamlName(s.name), s.amount, s.amount)
			continue
		}
		line("      %s: {unit: %s}", yamlName(s.name), quantity.UnitName(s.unit))
	}
	if d.policy.name == draftPolicies["unused"].name {
		line("    # The root owns nothing itself: what there is, is the sum of the parts.")
	} else {
		line("    # What there is.\n    limits: %s", d.limitsText(func(s share) int64 { return s.amount }))
	}
	line("    # Equal parts, to begin with: write what each team was promised.\n    nodes:")
	for i, team := range d.teams {
		line("      %s: {limits: %s}", yamlName(team),
			d.limitsText(func(s share) int64 { return partOf(s, len(d.teams), i) }))
	}
	return text.String()
}

func (d *draftManifest) limitsText(amountOf func(share) int64) string {
	limits := make([]string, len(d.shares))
	for i, s := range d.shares {
		limits[i] = yamlName(s.name) + ": " + quantity.Format(amountOf(s), s.unit)
	}
	return "{" + strings.Join(limits, ", ") + "}"
}

// partOf is the part of one of so many teams. The parts add up to the amount and differ by one step at most: a thing,
// or of bytes and thousandths the largest round step that is less than a sixteenth of a part.
func partOf(s share, teams, index int) int64 {
	const stepsOfAPart = 16
	step := int64(1)
	for _, factor := range []int64{1 << 50, 1 << 40, 1 << 30, 1 << 20, 1 << 10, 1000} {
		isRound := s.unit == quoratev1.Unit_UNIT_BYTES || s.unit == quoratev1.Unit_UNIT_MILLI && factor == 1000
		if isRound && s.amount%factor == 0 && s.amount/factor >= int64(teams)*stepsOfAPart {
			step = factor
			break
		}
	}
	steps, count := s.amount/step, int64(teams)
	part := steps / count
	if int64(index) < steps%count {
		part++
	}
	return part * step
}

var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// wordsOfYAML are names that some readers take for something else.
var wordsOfYAML = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// yamlName writes a name so that every reader of YAML takes it for a text.
func yamlName(name string) string {
	if plainName.MatchString(name) && !slices.Contains(wordsOfYAML, strings.ToLower(name)) {
		return name
	}
	return strconv.Quote(name)
}
