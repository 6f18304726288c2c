package main

// Execute is execute, for the tests with real servers.
var Execute = execute
