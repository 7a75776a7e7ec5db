package program

import "github.com/ianlancetaylor/demangle"

// Readable demangles the names of C++ and Rust functions, so that they appear as in the source
// code. The command and the page use it for [ask.Run.Readable].
func Readable(name string) string { return demangle.Filter(name, demangle.NoEnclosingParams) }
