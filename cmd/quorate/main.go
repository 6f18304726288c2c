// Command quorate is the whole of Quorate in one binary: the server, and the commands that talk to it.
package main

import "os"

// version is what this binary was built from; the build sets it.
var version = "devel"

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
