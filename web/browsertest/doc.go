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
// is tested instead of a new one.
//
// TestPictures, with make check-looks, compares every view in both schemes and four widths with testdata/pictures, of
// which a pixel is the mean of 8 by 8 pixels of the page. Blocks of 16 by 16 pixels may differ by 12 of 255 in each
// colour, so that neither another edge of a letter nor a line of another colour counts, but another ground, another
// place or another text does. The pages show testdata/recordings: what servers answered once, at a clock that stands
// still. Where a page differs, the test writes it with frames around the blocks, and names the file. The pictures are
// those of the browser that make browser installs.
//
// After a change that is meant, make looks makes these pictures again, from the same recordings. make pictures records
// anew, which is needed when a page asks its server for something else, and takes the pictures of docs/dashboard.md too.
package browsertest
