// Command quorate is the server and its command line client in one binary.
package main

import "os"

// version is set by the build.
var version = "devel"

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
