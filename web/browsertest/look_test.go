package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

type look struct {
	scheme        string
	width, height int64
}

func (l look) String() string { return fmt.Sprintf("%s-%d", l.scheme, l.width) }

// looks are those in which every view is checked.
var looks = []look{
	{"light", 1280, 900}, {"dark", 1280, 900}, {"dark", 390, 844}, {"light", 390, 844}, {"light", 768, 1024},
	{"dark", 1920, 1080},
}

func (b *tab) show(l look) {
	b.t.Helper()
	b.do("showing "+l.String(), chromedp.EmulateViewport(l.width, l.height),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}}))
}

func (b *tab) picture(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	content, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(pictures, name+".png"), content, 0o644)
	}
	if err != nil {
		b.t.Errorf("picture %s: %v", name, err)
	}
}

// checkWidth checks that neither the page nor a table on a narrow screen scrolls sideways; other parts of it may.
func (b *tab) checkWidth(what string) {
	b.t.Helper()
	out := eval[[]string](b, `(() => {
		const width = document.documentElement.clientWidth;
		const tables = [...document.querySelectorAll("main .scroll:has(table)")]
			.filter((e) => width < 700 && e.scrollWidth > e.clientWidth);
		if (document.documentElement.scrollWidth <= width) return tables.map((e) => e.outerHTML.slice(0, 120));
		return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 1)
			.slice(0, 8).map((e) => e.outerHTML.slice(0, 120));
	})()`)
	if len(out) > 0 {
		b.t.Errorf("%s: it scrolls sideways because of\n  %s", what, strings.Join(out, "\n  "))
	}
}

type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML, FailureSummary string
	}
}

// checkAccessibility checks the rules of axe: none that matters may be violated.
func (b *tab) checkAccessibility(what string) {
	b.t.Helper()
	if !eval[bool](b, "!!window.axe") {
		eval[bool](b, axe+"\n;!!window.axe")
	}
	said := eval[string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")))`)
	var violations []violation
	if err := json.Unmarshal([]byte(said), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			b.t.Errorf("%s: %s: %s (%s)\n  %s\n  %s", what, v.Impact, v.Help, v.ID, n.HTML, n.FailureSummary)
		}
	}
}
