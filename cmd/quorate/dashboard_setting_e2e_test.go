package main_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestTheSettingOfTheDashboard: it decides whether there is a page, and what the page offers. Browsers that open the
// address of a server are led to the page, and other callers are not.
func TestTheSettingOfTheDashboard(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"", "write", "off"} {
		t.Run("ui "+setting, func(t *testing.T) {
			t.Parallel()
			f := singleServer(t)
			if setting != "" {
				f.more = append(f.more, "--ui", setting)
			}
			startServer(t, f)
			switch setting {
			case "off":
				checkNoDashboard(t, f)
			case "write":
				checkDashboard(t, f, "write")
			default:
				checkDashboard(t, f, "read")
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		f := singleServer(t, "--ui", "admin")
		end := runCommand(t, f.commandLine()...)
		if want := `ui is "admin": allowed are off, read and write`; end.code != 2 || !strings.Contains(end.stderr, want) {
			t.Errorf("exit code %d, want 2 saying %q\n%s", end.code, want, end.stderr)
		}
	})
}

// open does not follow redirections.
func open(t *testing.T, f serverFlags, path, accept string) (int, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.baseURL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // only its header is of interest
	return answer.StatusCode, answer.Header
}

const browserAccepts = "text/html,application/xhtml+xml,*/*;q=0.8"

func checkDashboard(t *testing.T, f serverFlags, mode string) {
	t.Helper()
	if status, page := httpGet(t, f.baseURL()+"/ui/queue?tree=cern"); status != http.StatusOK ||
		!strings.Contains(page, `name="quorate-mode" content="`+mode+`"`) {
		t.Errorf("%d, without the mode %q:\n%s", status, mode, page)
	}
	status, header := open(t, f, "/", browserAccepts)
	if led := header.Get("Location"); status != http.StatusFound || led != "/ui/" {
		t.Errorf("a browser at /: %d to %q", status, led)
	}
	if status, _ := open(t, f, "/", "*/*"); status != http.StatusNotFound {
		t.Errorf("another caller at /: %d", status)
	}
	for _, path := range []string{"/ui/", "/ui/app.js", "/ui/app.css"} {
		status, header := open(t, f, path, browserAccepts)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		checkHeaders(t, path, header)
	}
}

// checkHeaders: no other site may frame the page, run code in it or guess the type of a file.
func checkHeaders(t *testing.T, path string, header http.Header) {
	t.Helper()
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: the content policy %q lacks %q", path, policy, want)
		}
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
		"Set-Cookie": "",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", path, name, got, want)
		}
	}
}

func checkNoDashboard(t *testing.T, f serverFlags) {
	t.Helper()
	for _, path := range []string{"/ui/", "/ui/app.js", "/"} {
		if status, _ := open(t, f, path, browserAccepts); status != http.StatusNotFound {
			t.Errorf("%s without a dashboard: %d", path, status)
		}
	}
}
