package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

type table struct {
	title string
	rows  [][]string
}

// Write writes all tables as text for a terminal, or as Markdown for docs/performance.md.
func (r *Run) Write(w io.Writer, markdown bool) error {
	for _, t := range []table{r.targetTable(), r.rateTable(), r.cpuTable()} {
		if len(t.rows) < 2 {
			continue
		}
		write := t.writeText
		if markdown {
			write = t.writeMarkdown
		}
		if err := write(w); err != nil {
			return err
		}
	}
	return r.writeNotes(w)
}

func (t table) writeText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n%s\n\n", t.title); err != nil {
		return err
	}
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(aligned, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return aligned.Flush()
}

func (t table) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s:\n\n", t.title)
	for i, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Run) targetTable() table {
	heading := []string{"ratio", "target", "measured", "met"}
	hasBefore := slices.ContainsFunc(r.Targets, func(o Outcome) bool { return o.Before != nil })
	if hasBefore {
		heading = slices.Insert(heading, 2, "before")
	}
	t := table{"Ratios, median (lowest–highest)", [][]string{heading}}
	for _, o := range r.Targets {
		goal, met := "≥ ", "no"
		if o.AtMost {
			goal = "≤ "
		}
		if o.Met {
			met = "yes"
		}
		row := []string{o.What, goal + shortNumber(o.Goal)}
		if hasBefore {
			before := ""
			if o.Before != nil {
				before = o.Before.String()
			}
			row = append(row, before)
		}
		t.rows = append(t.rows, append(row, o.Ratio.String(), met))
	}
	return t
}

// String is the median with the spread in brackets.
func (s Spread) String() string {
	return fmt.Sprintf("%s (%s–%s)", shortNumber(s.Median), shortNumber(s.Low), shortNumber(s.High))
}

func (r *Run) names() (systems, cases []string) {
	for _, round := range r.counted() {
		for _, s := range round.Samples {
			if !slices.Contains(systems, s.System) {
				systems = append(systems, s.System)
			}
			if !slices.Contains(cases, s.Case) {
				cases = append(cases, s.Case)
			}
		}
	}
	order := []string{Server, Guarded, EarlierServer, prototypeWAL, prototypeBolt, etcd, postgres}
	slices.SortStableFunc(systems, func(a, b string) int {
		rank := func(system string) int {
			return slices.IndexFunc(order, func(prefix string) bool { return strings.HasPrefix(system, prefix) })
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), -strings.Compare(a, b))
	})
	return systems, cases
}

func (r *Run) rateTable() table {
	return r.caseTable("Operations a second, median (lowest–highest)", func(samples []Sample) string {
		rate := figuresOf(samples, perSecond)
		return fmt.Sprintf("%s (%s–%s)", wholeNumber(rate.Median), wholeNumber(rate.Low), wholeNumber(rate.High))
	})
}

func (r *Run) cpuTable() table {
	return r.caseTable("CPU of an operation in µs, medians: client / leader / followers", func(samples []Sample) string {
		client := figuresOf(samples, func(s Sample) float64 { return s.CPUMicros.Client })
		leader := figuresOf(samples, func(s Sample) float64 { return s.CPUMicros.Leader })
		followers := figuresOf(samples, func(s Sample) float64 { return s.CPUMicros.Followers })
		return shortNumber(client.Median) + " / " + shortNumber(leader.Median) + " / " + shortNumber(followers.Median)
	})
}

func (r *Run) caseTable(title string, cell func([]Sample) string) table {
	systems, cases := r.names()
	t := table{title, [][]string{append([]string{"case"}, systems...)}}
	for _, caseName := range cases {
		row := []string{caseName}
		for _, system := range systems {
			var samples []Sample
			for _, round := range r.counted() {
				if s, found := round.sample(system, caseName); found {
					samples = append(samples, s)
				}
			}
			if len(samples) == 0 {
				row = append(row, "")
				continue
			}
			row = append(row, cell(samples))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func figuresOf(samples []Sample, figure value) Spread {
	var values []float64
	for _, s := range samples {
		values = append(values, figure(s))
	}
	return spreadOf(values)
}

// writeNotes says what a reader must know to judge the tables.
func (r *Run) writeNotes(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nServer %s; %s, %d rounds of %s s for each case, %d CPUs shared by clients and all nodes.\n",
		r.Version, r.Started.UTC().Format("2006-01-02 15:04 UTC"), len(r.counted()), shortNumber(r.Seconds), r.CPUs)
	for _, round := range r.Rounds {
		fate := "counts"
		if round.Discarded {
			fate = "is discarded"
		}
		if len(round.Noise) > 0 || round.Discarded {
			fmt.Fprintf(&b, "Round %d %s: %s.\n", round.Number, fate,
				strings.Join(append(slices.Clone(round.Noise), round.otherCPU()), "; "))
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "Skipped %s: %s.\n", s.System, s.Reason)
	}
	for _, failure := range r.Failures() {
		fmt.Fprintf(&b, "Failed, %s\n", failure)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Round) otherCPU() string {
	return fmt.Sprintf("median CPU of other processes %.0f %%", 100*r.median(func(s Sample) float64 { return s.OtherCPU }))
}

func wholeNumber(f float64) string {
	digits := strconv.FormatInt(int64(math.Round(f)), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// shortNumber has two significant digits behind the point below 10, one below 100, and none above.
func shortNumber(f float64) string {
	switch {
	case math.Abs(f) < 10:
		return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
	case math.Abs(f) < 100:
		return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 1, 64), "0"), ".")
	default:
		return wholeNumber(f)
	}
}
