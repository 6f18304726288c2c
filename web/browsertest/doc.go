// Package browsertest drives the dashboard of real servers with a real browser: every view, light and dark, wide and
// narrow, by keyboard alone, and while servers are killed. It is a module of its own, so that what it needs does not
// become what Quorate needs.
//
// Every test fails if anything goes wrong in one of its tabs that it did not announce: an exception, an error or a
// warning in the console, a violation of the content policy, a request that fails, a dialog of a script. A new view joins
// TestEveryView by itself as soon as another view or the navigation leads to it.
//
// make browser installs the browser and Node, and make browser-test runs the tests. QUORATE_VERIFY=1 makes random runs
// long, QUORATE_PICTURES names a folder that keeps a picture of each view in each look, and QUORATE_BINARY a binary that
// is tested instead of a new one. make pictures takes those of docs/dashboard.md.
package browsertest
