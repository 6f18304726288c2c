package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// browser is the context of the one browser that all tests share, a tab for each.
var browser context.Context

func startBrowser() (func(), error) {
	program, err := findBrowser()
	if err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program),
		chromedp.Flag("lang", "en"), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("js-flags", "--expose-gc"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return func() { end(); endAllocator() }, nil
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("there is no chromium-headless-shell: run make browser first")
}

// tab is a page in the browser. A test fails if anything goes wrong in one of its tabs that it did not announce.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	allowed  *regexp.Regexp
	troubles []string
	calls    map[string]int // number of calls of the API, by the name of the method
}

func openTab(t *testing.T, address string) *tab {
	t.Helper()
	b := emptyTab(t)
	b.open(address)
	return b
}

// prologue runs before the scripts of a page: what its content policy forbids becomes an error of the console.
const prologue = `document.addEventListener("securitypolicyviolation", (e) =>
	console.error("content policy violated: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample));`

func emptyTab(t *testing.T) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	b := &tab{t: t, ctx: ctx, calls: map[string]int{}}
	t.Cleanup(func() { b.close(end) })
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	b.do("opening a tab", command(network.Enable, network.EnableParams{}), command(log.Enable, struct{}{}),
		command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: prologue}))
	b.show(looks[0])
	return b
}

func (b *tab) close(end context.CancelFunc) {
	if b.t.Failed() {
		b.picture("failed-" + strings.ReplaceAll(b.t.Name(), "/", "-"))
	}
	end()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.troubles)
	for _, trouble := range slices.Compact(b.troubles) {
		b.t.Errorf("in the browser: %s", trouble)
	}
}

func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	perform(b, what, chromedp.Steps(actions...))
}

func perform[T any](b *tab, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	return value
}

// open waits until the view of the address is complete.
func (b *tab) open(address string) {
	b.t.Helper()
	b.do("opening "+address, chromedp.Navigate(address))
	b.awaitView()
}

// eval evaluates an expression, waits for it if it is a promise, and decodes its value.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return perform(b, "evaluating "+firstLine(expression), chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line[:min(len(line), 120)]
}

func (b *tab) awaitTrue(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !eval[bool](b, "!!("+expression+")") {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain until %s; the page shows:\n%s", what, b.text("body"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitView waits until the page has had an answer from its server and no part of the view is still being read.
func (b *tab) awaitView() {
	b.t.Helper()
	b.awaitTrue("the view is there", `document.querySelector("main h1") && document.querySelector("footer [data-index]")
		&& !document.querySelector("main [aria-busy=true]")`)
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}
