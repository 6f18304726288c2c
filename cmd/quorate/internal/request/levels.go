package request

import (
	"strconv"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// levelVerdicts are the words of the table of levels.
var levelVerdicts = map[quoratev1.LevelVerdict]string{
	quoratev1.LevelVerdict_LEVEL_VERDICT_FITS:       "fits",
	quoratev1.LevelVerdict_LEVEL_VERDICT_EXCEEDED:   "too little",
	quoratev1.LevelVerdict_LEVEL_VERDICT_BORROWS:    "borrows",
	quoratev1.LevelVerdict_LEVEL_VERDICT_MAKES_ROOM: "others give way",
	quoratev1.LevelVerdict_LEVEL_VERDICT_UNCHECKED:  "not checked",
}

func drawLevels(u cli.Units, p *cli.Page, answer *quoratev1.ExplainResponse) error {
	if len(answer.GetLevels()) == 0 {
		return nil
	}
	p.Linef("")
	rows := [][]string{{"AT", "LIMIT OF", "LIMIT", "USED", "ASKED", "LEFT", "VERDICT"}}
	for _, l := range answer.GetLevels() {
		rows = append(rows, levelRow(u, l))
	}
	if err := p.Table(rows); err != nil {
		return err
	}
	if answer.GetLevelsCut() {
		p.Linef("The request passes more limits than are listed.")
	}
	return nil
}

func levelRow(u cli.Units, l *quoratev1.LevelCheck) []string {
	amount := func(n int64) string { return u.FormatAmount(l.GetTree(), l.GetResource(), n) }
	at := cli.PlaceOf(l.GetTree(), l.GetNode()).String()
	if l.GetSeen() == quoratev1.TenantsSee_TENANTS_SEE_NOTHING {
		at = "a level above in " + l.GetTree()
	}
	if number := l.GetAlternative(); number > 0 {
		at = strconv.Itoa(int(number)) + ". " + at
	}
	limit, used, left := "unlimited", amount(l.GetUsed()), "-"
	switch {
	case l.Seen != nil:
		limit, used = "hidden", "hidden"
	case l.Limit != nil:
		limit, left = amount(l.GetLimit()), amount(l.GetLeft())
		if l.GetAdvisory() {
			limit = "advisory:" + limit
		}
	}
	return []string{
		at, cli.LimitText(l), limit, used, amount(l.GetRequested()), left, levelVerdicts[l.GetVerdict()],
	}
}
