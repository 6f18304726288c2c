package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// overloaded is what the browser says of calls beyond the share of one user, which overlap on a slow machine. The page
// makes them again.
var overloaded = regexp.MustCompile(`status (of )?429|Too Many Requests`)

// allow announces errors that may occur from now on; an empty pattern allows none.
func (b *tab) allow(pattern string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = nil
	if pattern != "" {
		b.allowed = regexp.MustCompile(pattern)
	}
}

func (b *tab) note(event any) {
	if e, ok := event.(*network.EventRequestWillBeSent); ok && e.Request.Method == http.MethodPost {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls[path.Base(e.Request.URL)]++
		return
	}
	said := troubleOf(event)
	if said == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !overloaded.MatchString(said) && (b.allowed == nil || !b.allowed.MatchString(said)) {
		b.troubles = append(b.troubles, said)
	}
}

func troubleOf(event any) string {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		return "exception: " + e.ExceptionDetails.Text + " " + describe(e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			return fmt.Sprintf("console.%s: %s", e.Type, describe(e.Args...))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			return fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled {
			return fmt.Sprintf("request failed: %s %s", e.ErrorText, e.BlockedReason)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			return fmt.Sprintf("status %d: %s", e.Response.Status, e.Response.URL)
		}
	case *page.EventJavascriptDialogOpening:
		return "a script opened a dialog: " + e.Message
	case *inspector.EventTargetCrashed:
		return "the page crashed"
	}
	return ""
}

func describe(objects ...*runtime.RemoteObject) string {
	var said []string
	for _, o := range objects {
		if o != nil {
			said = append(said, string(o.Value)+o.Description)
		}
	}
	return strings.Join(said, " ")
}
