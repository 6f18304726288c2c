package operate

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// insertRows bounds the rows of one INSERT.
const insertRows = 100

// exportTable is a table that is written as CSV and as SQL. A cell is a text, a number, or nil for NULL.
type exportTable struct {
	name    string
	columns []exportColumn
	key     string
	rows    [][]any
}

// exportColumn is a column with its type in SQL.
type exportColumn struct{ name, kind string }

func newLimitsTable() *exportTable {
	return &exportTable{
		name: "quorate_limits",
		columns: []exportColumn{
			{"tree", "text NOT NULL"},
			{"node", "text NOT NULL"},
			{"parent", "text"},
			{"resource", "text NOT NULL"},
			{"unit", "text NOT NULL"},
			{"limit_amount", "bigint"},
			{"held_here", "bigint NOT NULL"},
			{"held_below", "bigint NOT NULL"},
		},
		key: "tree, node, resource",
	}
}

func newHeldTable() *exportTable {
	return &exportTable{
		name: "quorate_held",
		columns: []exportColumn{
			{"namespace", "text NOT NULL"},
			{"id", "text NOT NULL"},
			{"claim", "integer NOT NULL"},
			{"tree", "text NOT NULL"},
			{"node", "text NOT NULL"},
			{"resource", "text NOT NULL"},
			{"item", "text NOT NULL"},
			{"amount", "bigint NOT NULL"},
			{"state", "text NOT NULL"},
			{"fence", "bigint NOT NULL"},
			{"user_name", "text"},
			{"user_groups", "text"},
			{"application", "text"},
			{"owner", "text"},
			{"priority", "bigint NOT NULL"},
			{"granted_at", "timestamp with time zone NOT NULL"},
			{"ends_at", "timestamp with time zone"},
			{"labels", "text NOT NULL"},
		},
		key: "namespace, id, claim, resource, item",
	}
}

func addLimitRow(to *exportTable, tree, node string, r *quoratev1.ResourceUsage) {
	var parent, limit any
	if node != "" {
		parent = strings.TrimPrefix(path.Dir(node), ".")
	}
	if amount, isAmount := r.GetEffective().GetValue().(*quoratev1.Limit_Amount); isAmount {
		limit = amount.Amount
	}
	unit := strings.ToLower(strings.TrimPrefix(r.GetUnit().String(), "UNIT_"))
	to.rows = append(to.rows,
		[]any{tree, node, parent, r.GetResource(), unit, limit, r.GetOwn(), r.GetSubtree() - r.GetOwn()})
}

// addHeldRows adds what a claim holds: a row for each item, and for each amount.
func addHeldRows(to *exportTable, a *quoratev1.Allocation, number int, claim *quoratev1.HeldClaim, ends time.Time) {
	labels, _ := json.Marshal(a.GetLabels()) //nolint:errchkjson // a map of texts
	if len(a.GetLabels()) == 0 {
		labels = []byte("{}")
	}
	p := a.GetPrincipal()
	add := func(resource, item string, amount int64) {
		to.rows = append(to.rows, []any{
			a.GetNamespace(), a.GetId(), int64(number), claim.GetTree(), claim.GetPlaced(), resource, item, amount,
			cli.StateText(a), int64(a.GetFence()), orNull(p.GetUser()), orNull(strings.Join(p.GetGroups(), ",")),
			orNull(p.GetApplication()), orNull(a.GetOwner()), a.GetPriority(),
			a.GetGrantedAt().AsTime().UTC().Truncate(time.Second).Format(time.RFC3339), timeOrNull(ends), string(labels),
		})
	}
	for _, item := range claim.GetItems() {
		add(item.GetResource(), item.GetName(), 1)
	}
	for _, resource := range slices.Sorted(maps.Keys(claim.GetAmounts())) {
		add(resource, "", claim.GetAmounts()[resource])
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func timeOrNull(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Format(time.RFC3339)
}

func (t *exportTable) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, column := range t.columns {
		names[i] = column.name
	}
	return names
}

// writeCSV writes the table with a heading (RFC 4180); NULL is an empty cell.
func (t *exportTable) writeCSV(to io.Writer) error {
	out := csv.NewWriter(to)
	_ = out.Write(t.columnNames()) // Flush keeps the error
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cell != nil {
				cells[i] = fmt.Sprint(cell)
			}
		}
		_ = out.Write(cells)
	}
	out.Flush()
	return out.Error()
}

// writeSQL writes tables as one transaction that makes and fills them.
func writeSQL(to io.Writer, tables ...*exportTable) error {
	out := bufio.NewWriter(to)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) } // Flush keeps the error
	line("-- Limits of Quorate and what is held, see docs/or-postgres.md. Amounts are in base units.")
	line("BEGIN;")
	for _, t := range tables {
		line("CREATE TABLE %s (", t.name)
		for _, column := range t.columns {
			line("    %s %s,", column.name, column.kind)
		}
		line("    PRIMARY KEY (%s)\n);", t.key)
	}
	for _, t := range tables {
		for rows := range slices.Chunk(t.rows, insertRows) {
			line("INSERT INTO %s (%s) VALUES", t.name, strings.Join(t.columnNames(), ", "))
			for i, row := range rows {
				end := ","
				if i == len(rows)-1 {
					end = ";"
				}
				line("    (%s)%s", sqlRow(row), end)
			}
		}
	}
	line("COMMIT;")
	return out.Flush()
}

func sqlRow(row []any) string {
	cells := make([]string, len(row))
	for i, cell := range row {
		switch value := cell.(type) {
		case nil:
			cells[i] = "NULL"
		case int64:
			cells[i] = strconv.FormatInt(value, 10)
		default:
			cells[i] = "'" + strings.ReplaceAll(fmt.Sprint(value), "'", "''") + "'"
		}
	}
	return strings.Join(cells, ", ")
}
